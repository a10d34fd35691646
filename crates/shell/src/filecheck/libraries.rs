//! LD_LIBRARY_PATH: the directories in which the loader looks first for a FileCheck's libraries.
//!
//! A part that is empty or relative means another directory in each working directory. Suites have one because they join a directory and
//! a variable that was not set, as compiler-rt's do. As a rule the loader finds nothing there. Then it takes the same libraries as without
//! these parts, and the FileCheck is the one that the battery has tested without them.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hotstart_launch::is_missed_by_loader;
use hotstart_model::Environment;

const NAME: &str = "LD_LIBRARY_PATH";

/// An environment, split into what holds in each directory and what does not.
#[derive(Debug)]
pub(super) struct Search<'e> {
    /// The environment without relative parts.
    pub env: Cow<'e, Environment>,
    /// The directories that depend on the working directory.
    pub relative: Vec<PathBuf>,
}

impl<'e> Search<'e> {
    /// `None` if a part that is not absolute begins with one of the loader's variables, as `$ORIGIN`: nobody but the loader knows where
    /// that is.
    pub fn of(env: &'e Environment) -> Option<Self> {
        let value = env.get(NAME).map(OsStr::as_bytes).unwrap_or_default();
        let plain = Search { env: Cow::Borrowed(env), relative: Vec::new() };
        // The loader takes an empty value for none.
        if value.is_empty() {
            return Some(plain);
        }
        let parts = value.split(|byte| b":;".contains(byte));
        let (fixed, relative): (Vec<&[u8]>, Vec<&[u8]>) = parts.partition(|part| part.starts_with(b"/"));
        if relative.is_empty() {
            return Some(plain);
        }
        if relative.iter().any(|part| part.contains(&b'$')) {
            return None;
        }
        let mut env = env.clone();
        match fixed.is_empty() {
            true => drop(env.unset(NAME)),
            false => env.set(NAME, OsStr::from_bytes(&fixed.join(&b':'))),
        }
        let relative = relative.into_iter().map(|part| PathBuf::from(OsStr::from_bytes(part))).collect();
        Some(Search { env: Cow::Owned(env), relative })
    }

    /// Returns whether the loader finds none of these libraries in a directory that depends on `cwd`.
    pub fn finds_nothing_in(&self, cwd: &str, libraries: &[String]) -> bool {
        let names = || libraries.iter().map(OsStr::new);
        self.relative.iter().all(|dir| is_missed_by_loader(&Path::new(cwd).join(dir), names()))
    }
}

/// Returns the names that the loader looks for, from the output with LD_TRACE_LOADED_OBJECTS. Empty if they cannot be told, or if it
/// is not glibc's loader, whose rules these are.
pub(super) fn wanted(output: &str) -> Vec<String> {
    let lines = output.lines().filter_map(|line| line.trim().split(" (").next());
    let (mut names, mut is_glibc) = (Vec::new(), false);
    for line in lines {
        let (name, path) = line.split_once(" => ").unwrap_or(("", line));
        let loader = Path::new(path).file_name().unwrap_or_default();
        is_glibc |= loader.as_bytes().starts_with(b"ld-linux");
        if !name.is_empty() && !name.contains('/') {
            names.push(name.to_owned());
        }
    }
    if is_glibc { names } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(value: &str) -> Option<(Option<String>, Vec<PathBuf>)> {
        let env: Environment = [("A", "1"), (NAME, value)].into_iter().collect();
        let search = Search::of(&env)?;
        assert_eq!(search.env.get("A"), Some(OsStr::new("1")));
        Some((search.env.get(NAME).map(|value| value.to_str().unwrap().to_owned()), search.relative))
    }

    #[test]
    fn parts_that_depend_on_the_directory_are_told_apart() {
        let fixed = |value: &str| Some((Some(value.to_owned()), Vec::new()));
        for value in ["", "/lib", "/lib:/usr/lib", "/lib;/opt", "/opt/$LIB"] {
            assert_eq!(split(value), fixed(value), "{value}");
        }
        let some = |value: Option<&str>, relative: &[&str]| {
            Some((value.map(str::to_owned), relative.iter().map(PathBuf::from).collect()))
        };
        assert_eq!(split("/lib:"), some(Some("/lib"), &[""]));
        assert_eq!(split(":/lib"), some(Some("/lib"), &[""]));
        assert_eq!(split("/lib::/opt;a/b"), some(Some("/lib:/opt"), &["", "a/b"]));
        assert_eq!(split(":"), some(None, &["", ""]));
        assert_eq!(split("lib"), some(None, &["lib"]));
        for value in ["$ORIGIN/lib", "/lib:lib/$LIB", "${ORIGIN}"] {
            assert_eq!(split(value), None, "{value}");
        }
        assert!(Search::of(&Environment::new()).unwrap().relative.is_empty());
    }

    #[test]
    fn a_library_in_the_working_directory_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().to_str().unwrap();
        let libraries = ["libLLVM.so.1".to_owned()];
        let of = |value: &str| {
            let env: Environment = [(NAME, value)].into_iter().collect();
            Search::of(&env).unwrap().finds_nothing_in(cwd, &libraries)
        };
        std::fs::write(dir.path().join("libOther.so"), "").unwrap();
        assert!(of("/x:") && of("sub") && of("/x"));
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("sub/libLLVM.so.1")).unwrap();
        assert!(of("/x:") && !of("sub"));
        std::fs::create_dir(dir.path().join("glibc-hwcaps")).unwrap();
        assert!(!of("/x:") && of("/x"));
        assert!(!of("libOther.so"), "another error than that nothing is there");
    }

    #[test]
    fn the_names_are_those_that_the_loader_is_asked_for() {
        let output = "\tlinux-vdso.so.1 (0x7ffc0a3f2000)\n\tlibLLVM-19.so.1 => /opt/llvm/libother.so (0x7f00)\n\
            \t/opt/by-path.so (0x7f01)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f02)\n";
        assert_eq!(wanted(output), Vec::<String>::new(), "no loader of glibc's");
        let output = format!("{output}\t/lib64/ld-linux-x86-64.so.2 (0x7f03)\n");
        assert_eq!(wanted(&output), ["libLLVM-19.so.1", "libc.so.6"]);
        assert_eq!(wanted("\tnot a dynamic executable\n"), Vec::<String>::new());
    }
}
