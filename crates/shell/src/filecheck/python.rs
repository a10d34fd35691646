//! PyPI's filecheck as a program: what must hold before its battery is run.
//!
//! A script could do more than its answers show, so its answers alone are not enough. The script must be the one that an installer
//! writes; the package must be of the version whose rules the matcher has, byte by byte; and one traced run shows which files a start
//! opens, lists and misses. All of these stand for the program from then on, and so do its variables.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hotstart_inputs::{Input, Looks, State};
use hotstart_model::Environment;

use crate::interpreter::is_harmless;
use crate::mark::{Aspect, Mark};

/// What installers write after the first line: pip, older pip, uv.
const WRAPPERS: [&str; 3] = [
    "import sys\nfrom filecheck.main import main\nif __name__ == '__main__':\n    \
     sys.argv[0] = sys.argv[0].removesuffix('.exe')\n    sys.exit(main())\n",
    "# -*- coding: utf-8 -*-\nimport re\nimport sys\nfrom filecheck.main import main\nif __name__ == '__main__':\n    \
     sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n    sys.exit(main())\n",
    "# -*- coding: utf-8 -*-\nimport sys\nfrom filecheck.main import main\nif __name__ == \"__main__\":\n    \
     if sys.argv[0].endswith(\"-script.pyw\"):\n        sys.argv[0] = sys.argv[0][:-11]\n    \
     elif sys.argv[0].endswith(\".exe\"):\n        sys.argv[0] = sys.argv[0][:-4]\n    sys.exit(main())\n",
];
/// The modules of the package that a start loads.
const MODULES: &str =
    "__init__ colors compiler error finput help logging main matcher ops options parser preprocess regex";
/// The BLAKE3 hash of the sources of version 1.0.6.
const SOURCES: &str = "f3fc0c40a53cd1042a2e9dcc34d42f6b553b52a0291c98e9673d1a8beb95ba40";
/// CPythons 3.10 to 3.14.
const VERSIONS: std::ops::RangeInclusive<u32> = 10..=14;
/// Variables that lit sets anew in each run or for each test: a directory for temporary files, of which the program makes none, and the
/// test's name.
const TEMPORARY: [&str; 5] = ["TMPDIR", "TMP", "TEMP", "TEMPDIR", "LIT_CURRENT_TESTCASE"];
/// The socket of the cache of libc's name service.
const NAME_SERVICE: &str = "/var/run/nscd/socket";

/// Whether a variable is part of the identity.
pub(super) fn counts(name: &OsStr) -> bool {
    !TEMPORARY.iter().any(|temporary| name == *temporary) && !name.as_bytes().starts_with(b"HOTSTART_")
}

/// Whether a start is one of those whose answers are known.
pub(super) fn is_plain(program: &Path, env: &Environment) -> bool {
    let is_known = |(name, value): (&OsStr, &OsStr)| {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        let is_pythons = name.starts_with(b"PYTHON") && !is_harmless(name, value);
        !is_pythons && name != b"FILECHECK_FEATURE_ENABLE"
    };
    program.is_absolute() && env.iter().all(is_known)
}

/// Whether a script is one that an installer writes for the program.
pub(super) fn is_wrapper(program: &Path) -> Result<(), &'static str> {
    let text = fs::read_to_string(program).unwrap_or_default();
    let (line, rest) = text.split_once('\n').unwrap_or_default();
    let interpreter = Path::new(line.strip_prefix("#!").unwrap_or_default());
    let name = interpreter.file_name().unwrap_or_default().as_bytes();
    let is_python =
        interpreter.is_absolute() && name.starts_with(b"python") && !line.contains([' ', '\t', '\r']);
    if is_python && WRAPPERS.contains(&rest) { Ok(()) } else { Err("it is no script that pip or uv writes") }
}

/// Returns the marks of all that a run in `dir` has looked at besides its `own` files there, or the reason why the program is not believed.
pub(super) fn marks(inputs: &[Input], dir: &Path, own: &[String]) -> Result<Vec<Mark>, &'static str> {
    let mut marks = Vec::new();
    for input in inputs {
        let path = Path::new(&input.path);
        if path == dir || own.iter().any(|own| path == dir.join(own)) {
            continue;
        }
        if path.starts_with(dir) {
            return Err("it looks for other files in its working directory");
        }
        // Only such of the kernel's files as are constant are ever inputs.
        if path.starts_with("/proc") || path.starts_with("/sys") {
            continue;
        }
        // It may have been made by the run itself.
        marks.push(Mark::seen(path, aspect(input)).ok_or("a run changes what it looks at")?);
    }
    is_known(inputs)?;
    // With such a cache, the user's directories may come from there.
    marks.push(
        Mark::seen(Path::new(NAME_SERVICE), Aspect::Missing).ok_or("a cache of the name service runs")?,
    );
    Ok(marks)
}

/// Returns what of an input a mark stands for.
pub(super) fn aspect(input: &Input) -> Aspect {
    match &input.state {
        State::Missing(_) => Aspect::Missing,
        State::Directory(_, None) if !input.looks.has(Looks::NAMES) => Aspect::Place,
        State::Device(..) => Aspect::Place,
        _ => Aspect::Itself,
    }
}

/// Whether the package and the interpreter are known.
fn is_known(inputs: &[Input]) -> Result<(), &'static str> {
    let paths = || inputs.iter().map(|input| Path::new(&input.path));
    let sources: Vec<&Path> = paths().filter(|path| path.ends_with("filecheck/matcher.py")).collect();
    let [source] = sources[..] else { return Err("its package cannot be found") };
    let package = source.parent().ok_or("its package cannot be found")?;
    if hash(package).as_deref() != Some(SOURCES) {
        return Err("it is not version 1.0.6, unchanged");
    }
    let compiled = paths().filter(|path| path.starts_with(package.join("__pycache__")) && path.is_file());
    if !compiled.clone().all(is_of_source) {
        return Err("its compiled modules are not checked against their sources");
    }
    let is_cpython = |version: u32| {
        let module = format!("python3.{version}/encodings/__pycache__/__init__.cpython-3{version}.pyc");
        paths().any(|path| path.ends_with(&module))
    };
    if VERSIONS.filter(|version| is_cpython(*version)).count() == 1 {
        Ok(())
    } else {
        Err("it runs in no known Python")
    }
}

/// Returns the hash of the package's sources.
fn hash(package: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    for module in MODULES.split(' ') {
        let source = fs::read(package.join(module).with_extension("py")).ok()?;
        hasher.update(&(source.len() as u64).to_le_bytes());
        hasher.update(&source);
    }
    Some(hasher.finalize().to_string())
}

/// Whether the interpreter takes a compiled module only if the source has the size and the time that it was compiled with.
fn is_of_source(compiled: &Path) -> bool {
    fs::read(compiled).is_ok_and(|content| content.get(4..8) == Some(&[0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_change_python_are_refused() {
        let is_plain = |name: &str, value: &str| {
            super::is_plain(Path::new("/bin/filecheck"), &[(name, value)].into_iter().collect())
        };
        for (name, value) in
            [("PATH", "x"), ("PYTHONHASHSEED", "0"), ("PYTHONHASHSEED", "random"), ("PYTHONUNBUFFERED", "1")]
        {
            assert!(is_plain(name, value), "{name}");
        }
        for (name, value) in [
            ("PYTHONPATH", "/x"),
            ("PYTHONSTARTUP", "/x"),
            ("PYTHONHOME", "/x"),
            ("PYTHONOPTIMIZE", "1"),
            ("PYTHONHASHSEED", "x"),
            ("PYTHONHASHSEED", "99999999999"),
            ("FILECHECK_FEATURE_ENABLE", "MLIR_REGEX_CLS"),
        ] {
            assert!(!is_plain(name, value), "{name}");
        }
        assert!(!super::is_plain(Path::new("filecheck"), &Environment::new()));
    }

    #[test]
    fn only_what_an_installer_writes_is_a_wrapper() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("filecheck");
        let is_wrapper = |text: &str| {
            fs::write(&path, text).unwrap();
            super::is_wrapper(&path).is_ok()
        };
        for wrapper in WRAPPERS {
            assert!(is_wrapper(&format!("#!/v/bin/python3\n{wrapper}")));
            for line in ["#!/v/bin/python3 -O", "#!/usr/bin/env python3", "#!python3", "#!/bin/sh", ""] {
                assert!(!is_wrapper(&format!("{line}\n{wrapper}")), "{line}");
            }
            assert!(!is_wrapper(&format!("#!/v/bin/python3\n{wrapper}print(1)\n")));
            assert!(!is_wrapper(&format!("#!/v/bin/python3\nimport other\n{wrapper}")));
        }
    }
}
