//! Finds the interpreter of a Python script in the way of the kernel, of `env` and of the interpreter's own command line.
//!
//! Three kinds of starts run a script: its first line names the interpreter, its first line has `env` look for it along PATH, or the
//! start is the interpreter's, with the script as an argument. A script of the last kind is a tool of its own, whose name has both.
//!
//! Nothing here decides whether the interpreter can be stopped.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::Policy;
use crate::Spec;

/// Most bytes of a script's first line that the kernel reads.
const LINE_MAX: usize = 256;
/// Letters of options before the script that change nothing else than is known. Others may read no variables, or draw another seed.
const OPTIONS: &[u8] = b"BOPsu";
const FINDERS: [&str; 2] = ["/usr/bin/env", "/bin/env"];

/// A Python script, as a start runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub interpreter: PathBuf,
    /// The first arguments of the interpreter's process: its name, its options and the script.
    head: Vec<OsString>,
    /// Number of arguments of the start that `head` replaces.
    replaced: usize,
    /// Whether the kernel itself finds the interpreter.
    by_kernel: bool,
    /// Paths that `env` has tried, itself first; none without it.
    pub tried: Vec<PathBuf>,
}

impl Script {
    /// Returns the script that `spec` runs, if it runs one that may be warm.
    pub(crate) fn of(spec: &Spec<'_>, policy: &Policy) -> Option<Script> {
        if !policy.python {
            return None;
        }
        if let Some(last) = argument(spec, policy) {
            let head = spec.argv[..=last].to_vec();
            let interpreter = spec.program.clone();
            // To open a pipe would take what is in it.
            std::fs::metadata(&head[last]).ok().filter(std::fs::Metadata::is_file)?;
            return Some(Script { interpreter, head, replaced: last + 1, ..Script::default() });
        }
        let line = first_line(&spec.program)?;
        let path = |word: &[u8]| PathBuf::from(OsStr::from_bytes(word));
        let script = |name: OsString| vec![name, spec.program.clone().into_os_string()];
        match words(&line) {
            (interpreter, None) if interpreter.starts_with(b"/") && is_python(&path(interpreter)) => {
                Some(Script {
                    interpreter: path(interpreter),
                    head: script(path(interpreter).into()),
                    replaced: 1,
                    by_kernel: true,
                    tried: Vec::new(),
                })
            }
            (env, Some(name)) if FINDERS.iter().any(|finder| finder.as_bytes() == env) => {
                let plain = is_name_of_python(name) && is_executable(&spec.program);
                let name = path(name);
                let (interpreter, tried) = plain.then(|| find(&name, spec)).flatten()?;
                let tried = std::iter::once(path(env)).chain(tried).collect();
                Some(Script { interpreter, head: script(name.into()), replaced: 1, by_kernel: false, tried })
            }
            _ => None,
        }
    }

    /// Returns the program and the first arguments by which the interpreter is started without arguments of the script's.
    pub(crate) fn command(&self, spec: &Spec<'_>) -> (PathBuf, Vec<OsString>) {
        match self.by_kernel {
            true => (spec.program.clone(), spec.argv.iter().take(1).cloned().collect()),
            false => (self.interpreter.clone(), self.head.clone()),
        }
    }

    /// Returns the script's own arguments.
    pub(crate) fn arguments<'s>(&self, spec: &'s Spec<'_>) -> &'s [OsString] {
        spec.argv.get(self.replaced..).unwrap_or_default()
    }

    /// Returns the start as the interpreter sees it.
    pub(crate) fn as_interpreter<'a>(&self, spec: &Spec<'a>) -> Spec<'a> {
        let argv = self.head.iter().chain(self.arguments(spec)).cloned().collect();
        Spec { argv, ..spec.clone() }
    }

    /// Returns the name of the tool that `spec`, a start of this script, is of.
    pub(crate) fn tool<'s>(&self, spec: &'s Spec<'_>) -> Cow<'s, Path> {
        if self.by_kernel || !self.tried.is_empty() {
            Cow::Borrowed(&spec.program)
        } else {
            joined(&self.head, spec)
        }
    }

    /// Returns the path of the script.
    pub(crate) fn file(&self) -> &Path {
        self.head.last().map_or(Path::new(""), Path::new)
    }
}

/// Returns the name of the tool that a start is of: the program's path, or that of the interpreter with its options and its script, with
/// NULs between.
pub(crate) fn tool<'s>(spec: &'s Spec<'_>, policy: &Policy) -> Cow<'s, Path> {
    match argument(spec, policy) {
        Some(last) => joined(&spec.argv[..=last], spec),
        None => Cow::Borrowed(&spec.program),
    }
}

fn joined<'s>(head: &[OsString], spec: &Spec<'_>) -> Cow<'s, Path> {
    let mut name = spec.program.as_os_str().as_bytes().to_vec();
    for word in &head[1..] {
        name.push(0);
        name.extend_from_slice(word.as_bytes());
    }
    Cow::Owned(OsString::from_vec(name).into())
}

/// Returns the index of the script among the interpreter's arguments. Its path is absolute, or it would depend on the directory. The
/// policy may refuse it, such as one that a test has written.
fn argument(spec: &Spec<'_>, policy: &Policy) -> Option<usize> {
    let is_option = |word: &OsStr| {
        word.as_bytes().strip_prefix(b"-").is_some_and(|letters| {
            !letters.is_empty() && letters.iter().all(|letter| OPTIONS.contains(letter))
        })
    };
    if !policy.python || !is_python(&spec.program) {
        return None;
    }
    let first = spec.argv.iter().skip(1).position(|word| !is_option(word))? + 1;
    let script = Path::new(&spec.argv[first]);
    (script.is_absolute() && policy.refuses(script).is_none()).then_some(first)
}

/// Returns whether a program is called `python`, perhaps with a version.
fn is_python(program: &Path) -> bool {
    // What follows the last slash: `Path` would take `python3/` and `python3/.` for the same.
    program.as_os_str().as_bytes().rsplit(|&byte| byte == b'/').next().is_some_and(is_name_of_python)
}

fn is_name_of_python(name: &[u8]) -> bool {
    let version = name.strip_prefix(b"python");
    version.is_some_and(|version| version.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'))
}

/// Splits a first line as the kernel does: into the interpreter and one argument, which is all the rest. Nothing but spaces and tabs
/// separates them, and only these are removed at the ends.
fn words(line: &[u8]) -> (&[u8], Option<&[u8]>) {
    let line = trim(line);
    let (interpreter, rest) = line.split_at(line.iter().position(is_space).unwrap_or(line.len()));
    (interpreter, Some(trim(rest)).filter(|argument| !argument.is_empty()))
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().take_while(|byte| is_space(byte)).count();
    let end = text.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// Returns the text of a script's first line after `#!`.
fn first_line(script: &Path) -> Option<Vec<u8>> {
    let mut line = [0; LINE_MAX];
    let size = File::open(script).and_then(|mut file| file.read(&mut line)).ok()?;
    let line = line[..size].split(|&byte| byte == b'\n').next()?;
    // A longer one is cut off by the kernel.
    let text = line.strip_prefix(b"#!").filter(|text| line.len() < size && !text.contains(&0))?;
    Some(text.to_vec())
}

/// Returns whether the kernel would start it, script or not.
fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Finds a program along PATH, as `execvp` does. Returns its path, and all paths that were tried. Where it is not certain, there is none.
fn find(name: &Path, spec: &Spec<'_>) -> Option<(PathBuf, Vec<PathBuf>)> {
    let path = spec.env.strings().find_map(|assignment| assignment.strip_prefix(b"PATH="))?;
    let mut tried = Vec::new();
    for dir in path.split(|&byte| byte == b':').map(|dir| Path::new(OsStr::from_bytes(dir))) {
        let is_plain = dir.is_absolute() && !dir.as_os_str().as_bytes().ends_with(b"/");
        let file = is_plain.then(|| dir.join(name))?;
        tried.push(file.clone());
        match std::fs::metadata(&file) {
            Ok(meta) if meta.is_file() => {
                return is_executable(&file).then_some((file, tried));
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;

    use hotstart_model::Environment;

    use super::*;
    use crate::{Choice, EnvBlock, ProcessGroup};

    fn policy() -> Policy {
        // The default is another one for each kind of processor.
        Policy { choice: Choice::Eager, python: true, ..Policy::default() }
    }

    fn judge(program: &Path, args: &[&str], path: &str, policy: &Policy) -> (Option<Script>, PathBuf) {
        let null = File::open("/dev/null").unwrap();
        let env: Environment = [("PATH", path)].into_iter().collect();
        let spec = Spec {
            program: program.to_owned(),
            argv: args.iter().map(OsString::from).collect(),
            env: EnvBlock::new(&env),
            cwd: Path::new("/").into(),
            stdio: [null.as_fd(); 3],
            extra_fds: Vec::new(),
            umask: None,
            limits: Vec::new(),
            ignored: None,
            keep_cold: false,
            process_group: ProcessGroup::New,
        };
        (Script::of(&spec, policy), tool(&spec, policy).into_owned())
    }

    /// Returns the interpreter that the first line of a script leads to, and the paths that were tried.
    fn of_line(line: &str, path: &str) -> Option<(PathBuf, Vec<PathBuf>)> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        std::fs::write(&file, line).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (script, name) = judge(&file, &["script", "x"], path, &policy());
        assert_eq!(name, file, "{line}");
        script.map(|script| {
            assert_eq!((script.file(), script.replaced), (&*file, 1), "{line}");
            (script.interpreter, script.tried)
        })
    }

    #[test]
    fn only_a_plain_line_that_names_python_makes_a_python_script() {
        let found = Some(("/x/python3.99".into(), Vec::new()));
        assert_eq!(of_line("#! /x/python3.99 \nx", ""), found);
        let long = format!("#!{}/x/python3\n", "/.".repeat(LINE_MAX));
        for other in [
            "#!/x/python3 -O\n",
            "#!/x/python3",
            "/x/python3\n",
            "#!python3\n",
            "#!/bin/sh\n",
            "#!/usr/bin/python-config\n",
            "#!/usr/bin/env -S python3\n",
            "#!/usr/bin/env python3 -u\n",
            "#!/opt/env python3\n",
            "#!/usr/bin/env x/python3\n",
            "#!/usr/bin/env python3/\n",
            "#!/x/python3/.\n",
            // The kernel separates and removes spaces and tabs, and nothing else.
            "#!/x/python3\r\n",
            "#!\x0c/x/python3\n",
            "#!/usr/bin/env python3\r\n",
            "#!/usr/bin/env python3\x0c\n",
            "#!/usr/bin/env\x0cpython3\n",
            &long,
        ] {
            assert_eq!(of_line(other, "/usr/bin"), None, "{other}");
        }
    }

    #[test]
    fn env_takes_the_first_program_along_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        ["a", "b", "c"].iter().for_each(|name| std::fs::create_dir(at(name)).unwrap());
        for dir in ["b", "c"] {
            let file = at(dir).join("python3");
            std::fs::write(&file, "x").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let [a, b, c] = ["a", "b", "c"].map(|name| at(name).display().to_string());
        let find = |path: &str| of_line("#!/usr/bin/env python3\n", path);
        let tried = ["/usr/bin/env".into(), at("a/python3"), at("b/python3")].to_vec();
        assert_eq!(find(&format!("{a}:{b}:{c}")), Some((at("b/python3"), tried)));
        let spaced = of_line("#! \t/usr/bin/env \t python3\t \n", &b);
        assert_eq!(spaced.map(|(file, _)| file), Some(at("b/python3")));
        assert_eq!(find(&format!("{a}:x:{b}")), None, "a relative directory");
        assert_eq!(find(&format!("{a}::{b}")), None, "the working directory");
        assert_eq!(find(&a), None, "nowhere");
        assert_eq!(find(&format!("{b}/")), None, "another path of the same file");
        std::fs::create_dir(at("a/python3")).unwrap();
        assert_eq!(find(&format!("{a}:{b}")), None, "a directory, which cannot be run");
    }

    #[test]
    fn an_interpreters_script_is_a_tool_of_its_own() {
        let python = Path::new("/usr/bin/python3");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.py");
        std::fs::write(&file, "").unwrap();
        let args = ["py", "-Bs", "-u", file.to_str().unwrap(), "b"];
        let (script, name) = judge(python, &args, "", &policy());
        assert_eq!(name.display().to_string(), format!("/usr/bin/python3\0-Bs\0-u\0{}", args[3]));
        let script = script.unwrap();
        assert_eq!((&*script.interpreter, script.file(), script.replaced), (python, &*file, 4));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(judge(python, &args, "", &policy()), (None, name), "its name does not depend on the file");
        let below = Policy { cold_below: vec!["/x".into()], ..policy() };
        for (args, policy) in [
            (&["py", "a.py"][..], &policy()),
            (&["py", "-c", "/x/a.py"], &policy()),
            (&["py", "-m", "/x/a.py"], &policy()),
            (&["py", "-I", "/x/a.py"], &policy()),
            (&["py", "-", "/x/a.py"], &policy()),
            (&["py", "-u"], &policy()),
            (&["py", "/x/a.py"], &Policy { python: false, ..policy() }),
            (&["py", "/x/a.py"], &below),
        ] {
            assert_eq!(judge(python, args, "", policy), (None, python.to_owned()), "{args:?}");
        }
    }
}
