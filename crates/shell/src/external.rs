//! The external shell: the commands become a script file as lit writes it, and the suite's shell runs that.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;

use hotstart_launch::{Group, Launcher};
use hotstart_model::{Dialect, ExternalShell, Script, Transcript};
use hotstart_python::shlex::quote;
use hotstart_python::text::is_space;

use crate::expand::readfile_external;
use crate::halt::Halt;
use crate::lookup::which;
use crate::program::{self, Process};

/// Runs one attempt.
pub(crate) fn run(script: &Script, shell: &ExternalShell, launcher: &Launcher, group: &Group) -> Transcript {
    program::conclude(script, launcher, group, || {
        fs::write(&shell.script_path, compose(script))
            .map_err(|error| Halt::file(&error, &shell.script_path))?;
        let mut argv: Vec<OsString> = shell.prefix.iter().map(OsString::from).collect();
        argv.extend([shell.shell.clone().into(), shell.script_path.clone().into()]);
        Ok(Process { file: program(script, shell, &argv), argv, merges_errors: false })
    })
}

/// Returns the file to execute: the shell, or the program that starts it (valgrind), found along PATH.
fn program(script: &Script, shell: &ExternalShell, argv: &[OsString]) -> OsString {
    if shell.prefix.is_empty() {
        return shell.shell.clone().into();
    }
    let path = script.env.get("PATH").map(|path| path.to_string_lossy()).unwrap_or_default();
    which(&argv[0].to_string_lossy(), &path).map_or_else(|| argv[0].clone(), OsString::from)
}

/// Returns the script file's text. It announces each command on standard error, and hides the shell's own trace of
/// that.
fn compose(script: &Script) -> String {
    let mut out = String::with_capacity(4096);
    if script.pipefail {
        out.push_str("set -o pipefail;");
    }
    if script.dialect == Dialect::V23 {
        out.push_str(&loader_exports(script));
    }
    out.push_str("set -x;{ ");
    for (index, command) in script.commands.iter().enumerate() {
        if index > 0 {
            out.push_str("; } &&\n{ ");
        }
        let text = match script.dialect {
            Dialect::V19 => Cow::Borrowed(command.text.as_str()),
            Dialect::V23 => Cow::Owned(readfile_external(&command.text)),
        };
        let text = text.trim_start_matches(is_space);
        let label = &command.label;
        let message = match (text.is_empty(), script.dialect) {
            (true, _) => format!("'{label}' has no command after substitutions"),
            (false, Dialect::V19) => format!("'{label}': {}", quote(text)),
            (false, Dialect::V23) => format!("{} \\# '{label}'", quote(text)),
        };
        let _ = write!(out, "{{ set +x; }} 2>/dev/null && echo {message} >&2 && {{ set -x; }} 2>/dev/null");
        if !text.is_empty() {
            let _ = write!(out, " && {{  {text}; }}");
        }
    }
    out.push_str("; }\n");
    out
}

/// Exports variables that some systems' loaders hide from a shell's children unless the shell exports them itself.
fn loader_exports(script: &Script) -> String {
    let vars = script.env.iter().filter(|(key, _)| key.to_string_lossy().starts_with("DYLD_"));
    let export = |(key, value): (&std::ffi::OsStr, &std::ffi::OsStr)| {
        format!("export {}={};", key.to_string_lossy(), quote(&value.to_string_lossy()))
    };
    vars.map(export).collect::<Vec<_>>().join("\n")
}
