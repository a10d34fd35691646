//! LD_LIBRARY_PATH with parts that mean another directory in each working directory.
//!
//! Suites have an empty part because they join a directory and a variable that was not set, as compiler-rt's do. As a rule the loader
//! finds nothing there. The battery runs in a directory that has nothing either, and a traced start tells all names that it looks for,
//! anywhere. Where none of them is in the directories of a use, that use finds what the battery has found.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotstart_inputs::{Input, Looks, State};
use hotstart_launch::is_missed_by_loader;
use hotstart_model::Environment;

use crate::mark::{Mark, Seen};

const NAME: &str = "LD_LIBRARY_PATH";

/// Returns the parts that depend on the working directory. `None` if one has a variable of the loader's, as `$ORIGIN`: only the loader
/// knows where that is.
pub(super) fn relative_parts(env: &Environment) -> Option<Vec<PathBuf>> {
    let value = env.get(NAME).map(OsStr::as_bytes).unwrap_or_default();
    // The loader takes an empty value for none.
    let parts = value.split(|byte| b":;".contains(byte)).filter(|_| !value.is_empty());
    let relative = parts.filter(|part| !part.starts_with(b"/"));
    relative.map(|part| (!part.contains(&b'$')).then(|| PathBuf::from(OsStr::from_bytes(part)))).collect()
}

/// Adds the names by which a file may be found elsewhere: its own, and where it lies in one of these directories, those on the way.
pub(super) fn add_names(names: &mut BTreeSet<String>, path: &Path, dirs: &[PathBuf]) {
    let text = |part: &OsStr| part.to_string_lossy().into_owned();
    names.extend(path.file_name().map(text));
    let below = dirs.iter().filter_map(|dir| path.strip_prefix(dir).ok());
    names.extend(below.flat_map(Path::iter).map(text));
}

/// Returns whether a program found nothing below one of these directories, or only passed through one of them or its parents.
pub(super) fn is_vain(input: &Input, dirs: &[PathBuf]) -> bool {
    let path = Path::new(&input.path);
    match input.state {
        State::Missing(0) => dirs.iter().any(|dir| path.starts_with(dir)),
        State::Directory(_, None) => {
            input.looks == Looks::EXISTS && dirs.iter().any(|dir| dir.starts_with(path))
        }
        _ => false,
    }
}

/// Directories in which the loader looks for these names, and finds none.
#[derive(Clone, Debug)]
pub(super) struct Missed {
    pub dirs: Vec<PathBuf>,
    pub names: Arc<[String]>,
}

impl Missed {
    /// The directories have to be there, as in the battery.
    fn is_current(&self) -> bool {
        let is_as_tested =
            |dir: &PathBuf| dir.is_dir() && is_missed_by_loader(dir, self.names.iter().map(OsStr::new));
        self.dirs.iter().all(is_as_tested)
    }
}

/// The files that a FileCheck would have found if it had started with its command. A later start may find others.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(super) check: Seen,
    /// Its files; while the battery tests it, the program alone.
    pub(super) files: Arc<[Mark]>,
    pub(super) missed: Option<Missed>,
}

impl Scene {
    /// Whether a start would find the same now.
    pub(crate) fn is_current(&self) -> bool {
        self.has_check_file() && self.files.iter().all(Mark::is_current) && self.has_libraries()
    }

    /// Whether nothing is known that the loader looks for in such a directory.
    pub(super) fn names_nothing(&self) -> bool {
        self.missed.as_ref().is_some_and(|missed| missed.names.is_empty())
    }

    /// Whether the check file is as it was, and has not been another one for a moment.
    pub(crate) fn has_check_file(&self) -> bool {
        self.check.is_current()
    }

    /// Whether no library has appeared in a directory that depends on the working directory.
    pub(super) fn has_libraries(&self) -> bool {
        self.missed.as_ref().is_none_or(Missed::is_current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_depend_on_the_directory_are_told_apart() {
        let relative = |value: &str| {
            let parts = relative_parts(&[("A", "b:"), (NAME, value)].into_iter().collect())?;
            Some(parts.into_iter().map(|part| part.to_str().unwrap().to_owned()).collect::<Vec<_>>())
        };
        let some = |parts: &[&str]| Some(parts.iter().map(|part| (*part).to_owned()).collect());
        for value in ["", "/lib", "/lib:/usr/lib", "/lib;/opt", "/opt/$LIB"] {
            assert_eq!(relative(value), some(&[]), "{value}");
        }
        for (value, parts) in [("/lib:", [""]), (":/lib", [""]), ("lib", ["lib"]), ("/x;../y", ["../y"])] {
            assert_eq!(relative(value), some(&parts), "{value}");
        }
        assert_eq!(relative("/lib::/opt;a/b"), some(&["", "a/b"]));
        assert_eq!(relative(":"), some(&["", ""]));
        for value in ["$ORIGIN/lib", "/lib:lib/$LIB", "${ORIGIN}"] {
            assert_eq!(relative(value), None, "{value}");
        }
        assert_eq!(relative_parts(&Environment::new()), Some(Vec::new()));
    }

    #[test]
    fn a_library_in_the_working_directory_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let is_missed = |part: &str| {
            let names = ["libLLVM.so.1".to_owned(), " lib.so".to_owned()].into();
            Missed { dirs: vec![dir.path().join(part)], names }.is_current()
        };
        std::fs::write(dir.path().join("libOther.so"), "").unwrap();
        assert!(is_missed("") && !is_missed("sub"), "it has to be there");
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        assert!(is_missed("sub"));
        std::os::unix::fs::symlink("nowhere", dir.path().join("sub/libLLVM.so.1")).unwrap();
        assert!(is_missed("") && !is_missed("sub"), "it leads nowhere, and is found");
        std::fs::create_dir(dir.path().join("glibc-hwcaps")).unwrap();
        assert!(!is_missed(""));
        std::fs::remove_dir(dir.path().join("glibc-hwcaps")).unwrap();
        std::fs::write(dir.path().join(" lib.so"), "").unwrap();
        assert!(!is_missed(""));
        assert!(!is_missed("libOther.so"), "no directory");
    }

    #[test]
    fn only_looks_for_nothing_in_these_directories_are_vain() {
        let dirs = ["/t/sub/lib", "/t/x"].map(PathBuf::from);
        let is_vain = |path: &str, state: State| {
            super::is_vain(&Input { path: path.into(), looks: Looks::EXISTS, state }, &dirs)
        };
        for path in ["/t/sub/lib/libz.so", "/t/x/tls", "/t/x"] {
            assert!(is_vain(path, State::Missing(0)), "{path}");
        }
        for path in ["/t/libz.so", "/t/sub/libz.so", "/t/xy"] {
            assert!(!is_vain(path, State::Missing(0)), "{path}");
        }
        assert!(!is_vain("/t/x/made", State::Missing(0o644)));
        assert!(!is_vain("/t/x/null", State::Device(259, [0o666, 0, 0])));
    }

    #[test]
    fn names_are_those_of_files_and_all_on_the_way_from_the_directory() {
        let mut names = BTreeSet::new();
        for path in ["/lib/libc.so.6", "/t/dir/tls/x86_64/libz.so", "/t/direct/libx.so"] {
            add_names(&mut names, Path::new(path), &[PathBuf::from("/t/dir")]);
        }
        assert_eq!(Vec::from_iter(names), ["libc.so.6", "libx.so", "libz.so", "tls", "x86_64"]);
    }
}
