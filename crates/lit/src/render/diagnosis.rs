//! Diagnosis of a failing test: the command that failed, and a line to paste that runs it again.
//!
//! The line is for the POSIX shell in which the user started hotstart, so it sets only the differences: directory,
//! variables, `pipefail`. The internal shell reports each pipeline. Of a script in an external shell only the RUN line
//! is known, but not how earlier lines changed the shell's state; if they may have changed it, the line runs the
//! whole script.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

use hotstart_model::{Again, Command, Dialect, Environment, ExternalShell, Interpreter, Script, Transcript};
use hotstart_python::{shlex, text};

use super::failure_summary;

/// The data needed beside the transcript.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    interpreter: Interpreter,
    dialect: Dialect,
    pipefail: bool,
    cwd: std::path::PathBuf,
    env: std::sync::Arc<Environment>,
    /// The environment of the user's shell.
    outside: std::sync::Arc<Environment>,
    lit_package_dir: Option<std::path::PathBuf>,
}

impl Scene {
    pub fn new(script: &Script, outside: std::sync::Arc<Environment>) -> Self {
        Scene {
            interpreter: script.interpreter.clone(),
            dialect: script.dialect,
            pipefail: script.pipefail,
            cwd: script.cwd.clone(),
            env: std::sync::Arc::clone(&script.env),
            outside,
            lit_package_dir: script.lit_package_dir.clone(),
        }
    }

    /// Returns the lines; empty if no command of the script can be blamed.
    pub fn diagnosis(&self, commands: &[Command], transcript: &Transcript) -> String {
        if let Some(summary) = failure_summary(commands, transcript) {
            let again = transcript.again.as_deref().map(|again| self.again(again));
            return lines(&summary.to_string(), again);
        }
        match &self.interpreter {
            Interpreter::External(shell) => self.external(shell, commands, transcript),
            _ => String::new(),
        }
    }

    fn again(&self, again: &Again) -> String {
        self.paste(&again.cwd, &again.env, self.pipefail && again.is_piped, &again.command)
    }

    fn external(&self, shell: &ExternalShell, commands: &[Command], transcript: &Transcript) -> String {
        let announced = |command: &Command| {
            let line = self.announcement(command);
            transcript.stderr.lines().any(|told| told == line)
        };
        let Some(failed) = commands.iter().rposition(announced) else { return String::new() };
        if transcript.exit_code == Some(0) {
            return String::new();
        }
        let end = match transcript.exit_code {
            _ if transcript.timed_out => "ran out of time".to_owned(),
            Some(code) => format!("ended with status {code}"),
            None => "did not end".to_owned(),
        };
        let text = &commands[failed].text;
        let again = if commands[..failed].iter().any(|earlier| changes_state(&earlier.text)) {
            let words = [shell.shell.to_string_lossy(), shell.script_path.to_string_lossy()];
            let whole = words.each_ref().map(|word| shlex::quote(word)).join(" ");
            self.paste(&self.cwd, &self.env, false, &whole)
        } else {
            self.paste(&self.cwd, &self.env, self.pipefail, text)
        };
        lines(&format!("{}: {} {end}", commands[failed].label, shortened(text)), Some(again))
    }

    /// Returns the text that the script writes to standard error before it runs a command.
    fn announcement(&self, command: &Command) -> String {
        let text = text::strip_start(&command.text);
        match self.dialect {
            Dialect::V19 => format!("{}: {text}", command.label),
            Dialect::V23 => format!("{text} # {}", command.label),
        }
    }

    /// Returns a subshell that changes to the directory, sets the variables that differ, and runs the command.
    fn paste(&self, cwd: &Path, env: &Environment, pipefail: bool, command: &str) -> String {
        let mut text = format!("( cd {} && ", quoted(cwd.as_os_str()));
        let (set, unset) = self.changes(env);
        if !set.is_empty() {
            let _ = write!(text, "export{set} && ");
        }
        if !unset.is_empty() {
            let _ = write!(text, "unset{unset} && ");
        }
        if pipefail {
            text.push_str("set -o pipefail && ");
        }
        // Braces keep the preceding `&&` from binding to a part of the command, as with `;` or `||`.
        match command.contains([';', '|', '&']) {
            true => text.push_str(&format!("{{ {command}; }} )")),
            false => text.push_str(&format!("{command} )")),
        }
        text
    }

    /// Returns the variables to set (` NAME=VALUE…`) and to remove (` NAME…`).
    fn changes(&self, env: &Environment) -> (String, String) {
        let (mut set, mut unset) = (String::new(), String::new());
        for (name, value) in env.iter() {
            let Some(shown) = name.to_str().filter(|name| is_name(name)) else { continue };
            if self.outside.get(name) == Some(value) || self.is_ours(shown, value) {
                continue;
            }
            let _ = match self.outside.get(name).filter(|_| shown == "PATH").and_then(|old| added(value, old))
            {
                Some(dirs) => write!(set, " PATH={}:\"$PATH\"", shlex::quote(&dirs)),
                None => write!(set, " {shown}={}", quoted(value)),
            };
        }
        for (name, _) in self.outside.iter() {
            let shown = name.to_string_lossy();
            let was_removed = self.env.get(name).is_some() || STEERING.iter().any(|p| shown.starts_with(p));
            if was_removed && env.get(name).is_none() && is_name(&shown) {
                let _ = write!(unset, " {shown}");
            }
        }
        (set, unset)
    }

    /// Returns whether lit sets this variable for itself.
    fn is_ours(&self, name: &str, value: &OsStr) -> bool {
        let is_tmp_dir = || {
            Path::new(value).file_name().is_some_and(|dir| {
                // The directory is removed when the run ends.
                dir.as_encoded_bytes().starts_with(b"lit-tmp-")
            })
        };
        name == "LIT_CURRENT_TESTCASE"
            || matches!(name, "TMP" | "TMPDIR" | "TEMP" | "TEMPDIR") && is_tmp_dir()
            || name == "PYTHONPATH"
                && self.lit_package_dir.as_ref().is_some_and(|dir| dir == Path::new(value))
    }
}

/// Prefixes of variables that change tools' behaviour. Such a variable is removed if tests do not get it.
const STEERING: [&str; 6] = ["LD_", "LC_", "LANG", "LLVM_", "FILECHECK_", "CLANG"];

/// Returns the directories that precede the old value in a list.
fn added(value: &OsStr, old: &OsStr) -> Option<String> {
    let dirs = value.to_str()?.strip_suffix(old.to_str()?)?.strip_suffix(':')?;
    (!dirs.is_empty() && !old.is_empty()).then(|| dirs.to_owned())
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn quoted(text: &OsStr) -> String {
    shlex::quote(&text.to_string_lossy()).into_owned()
}

/// Returns whether later commands in the same shell may depend on this one other than by files.
fn changes_state(text: &str) -> bool {
    const WORDS: [&str; 12] =
        ["cd", "pushd", "popd", "export", "set", "unset", "umask", "ulimit", "source", ".", "shopt", "read"];
    let first_words =
        text.split([';', '|', '&', '{', '\n']).filter_map(|part| part.split_whitespace().next());
    text.contains("()")
        || first_words.into_iter().any(|word| {
            let is_assignment = word.split_once('=').is_some_and(|(name, _)| is_name(name));
            WORDS.contains(&word) || is_assignment
        })
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 100;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("({})", shown.replace(['\n', '\r'], " "))
}

fn lines(what: &str, again: Option<String>) -> String {
    match again {
        Some(again) => format!("hotstart: {what}\nhotstart: to run it again in a shell, paste:\n{again}\n"),
        None => format!("hotstart: {what}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn scene(external: bool, env: &[(&str, &str)], outside: &[(&str, &str)]) -> Scene {
        let of = |vars: &[(&str, &str)]| Arc::new(vars.iter().copied().collect::<Environment>());
        let shell = ExternalShell {
            shell: "/bin/bash".into(),
            script_path: "/o/t.script".into(),
            prefix: Vec::new(),
            may_be_native: false,
        };
        Scene {
            interpreter: if external { Interpreter::External(shell) } else { Interpreter::Internal },
            dialect: Dialect::V19,
            pipefail: true,
            cwd: "/o".into(),
            env: of(env),
            outside: of(outside),
            lit_package_dir: Some("/lit".into()),
        }
    }

    fn commands(texts: &[&str]) -> Vec<Command> {
        let command = |(i, text): (usize, &&str)| Command {
            label: format!("RUN: at line {}", i + 1),
            text: (*text).to_owned(),
        };
        texts.iter().enumerate().map(command).collect()
    }

    #[test]
    fn only_what_differs_from_the_users_shell_is_set() {
        let outside = [("PATH", "/bin"), ("HOME", "/h"), ("LD_PRELOAD", "x"), ("EDITOR", "vi")];
        let env = [
            ("PATH", "/t:/bin"),
            ("HOME", "/h"),
            ("A", "it's"),
            ("PYTHONPATH", "/lit"),
            ("a-b", "1"),
            ("TMP", "/tmp/lit-tmp-x"),
        ];
        let scene = scene(false, &env, &outside);
        assert_eq!(
            scene.paste(Path::new("/o/a b"), &scene.env, true, "x | y"),
            "( cd '/o/a b' && export PATH=/t:\"$PATH\" A='it'\"'\"'s' && unset LD_PRELOAD && \
             set -o pipefail && { x | y; } )"
        );
        assert_eq!(scene.paste(Path::new("/"), &scene.outside, false, "x"), "( cd / && x )");
    }

    #[test]
    fn what_the_script_removed_is_removed() {
        let scene = scene(false, &[("A", "1")], &[("A", "1")]);
        assert_eq!(scene.paste(Path::new("/"), &Environment::new(), false, "x"), "( cd / && unset A && x )");
    }

    #[test]
    fn of_an_external_script_the_last_line_announced_failed() {
        let commands = commands(&["a", "b | c", "d"]);
        let stderr = "RUN: at line 1: a\n+ a\nRUN: at line 2: b | c\n+ b\n".to_owned();
        let transcript = Transcript { exit_code: Some(3), stderr, ..Transcript::default() };
        assert_eq!(
            scene(true, &[], &[]).diagnosis(&commands, &transcript),
            "hotstart: RUN: at line 2: (b | c) ended with status 3\nhotstart: to run it again in a shell, paste:\n\
             ( cd /o && set -o pipefail && { b | c; } )\n"
        );
    }

    #[test]
    fn after_a_line_that_changed_the_shell_the_whole_script_is_run() {
        let commands = commands(&["mkdir d; cd d", "b"]);
        let stderr = "RUN: at line 2: b\n".to_owned();
        let transcript = Transcript { exit_code: Some(1), stderr, ..Transcript::default() };
        let text = scene(true, &[], &[]).diagnosis(&commands, &transcript);
        assert!(text.ends_with("\n( cd /o && /bin/bash /o/t.script )\n"), "{text}");
        for text in ["export A=1", "A=1; b", "true && set -e", "f() { b; }"] {
            assert!(changes_state(text), "{text}");
        }
        assert!(!changes_state("a -o set x=1 | b"), "arguments");
    }
}
