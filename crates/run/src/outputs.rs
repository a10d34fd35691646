//! The files of a test's own, by name: those that begin with its `%t`.
//!
//! By lit's convention all tests of a folder write to one directory, and each under names of its own. Looking there leaves no trace: a test
//! may ask when its files were last read.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The end of the name of a test in the names of its own files.
const OWN: &[u8] = b".tmp";
/// Names in a directory up to which it is listed for each test. A few hundred take less time than a process.
const FEW: usize = 256;

/// Opens a file without a trace in its time of the last access, if it is this user's.
pub(crate) fn open(path: &Path, more: OFlags) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | more;
    let opened = match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => rustix::fs::open(path, flags, Mode::empty()),
        opened => opened,
    };
    Ok(File::from(opened?))
}

/// Opens the directory of outputs, which may be a link.
pub(crate) fn open_outputs(dir: &Path) -> io::Result<File> {
    open(dir, OFlags::DIRECTORY)
}

/// Returns the names in a directory.
pub(crate) fn names(dir: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Returns the directory of a test's own files, and how their names begin before `.tmp`.
pub(crate) fn place(base: &Path) -> Option<(&Path, &OsStr)> {
    Some((base.parent()?, base.file_name()?))
}

/// Returns the paths of a test's own files, which begin with its `%t`: `base` and `.tmp`.
pub(crate) fn own(base: &Path) -> io::Result<Vec<PathBuf>> {
    let Some((dir, test)) = place(base) else { return Ok(Vec::new()) };
    Ok(of_test(dir, test, all_names(dir)?))
}

/// Returns the names in a directory of outputs, which need not be there.
fn all_names(dir: &Path) -> io::Result<Vec<OsString>> {
    match open_outputs(dir).and_then(names) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        names => names,
    }
}

fn of_test(dir: &Path, test: &OsStr, names: Vec<OsString>) -> Vec<PathBuf> {
    let prefix = [test.as_bytes(), OWN].concat();
    let own = names.into_iter().filter(|name| name.as_bytes().starts_with(&prefix));
    own.map(|name| dir.join(name)).collect()
}

/// The directories of outputs. One that is large, or has become large, is not listed for each test: a folder may have thousands of tests,
/// and that would take longer than they run. The list that was made when its first test began has what later tests find.
#[derive(Debug, Default)]
pub(crate) struct Directories(Mutex<HashMap<PathBuf, Arc<Directory>>>);

#[derive(Debug, Default)]
struct Directory {
    /// Names of files when the first test began, by the name of the test that they may belong to.
    names: OnceLock<HashMap<Vec<u8>, Vec<OsString>>>,
    /// Whether it had more than `FEW` names when it was last listed.
    is_large: AtomicBool,
    /// Tests that have begun: the list does not have what they have made since.
    begun: Mutex<HashSet<OsString>>,
}

impl Directories {
    /// Returns the paths of a test's own files as it begins.
    pub(crate) fn own(&self, base: &Path) -> io::Result<Vec<PathBuf>> {
        let Some((dir, test)) = place(base) else { return Ok(Vec::new()) };
        let directory = {
            let mut all = self.0.lock().expect("no panic while locked");
            Arc::clone(all.entry(dir.to_owned()).or_default())
        };
        let is_first = directory.begun.lock().expect("no panic while locked").insert(test.to_owned());
        let list = || {
            let found = all_names(dir)?;
            directory.is_large.fetch_or(found.len() > FEW, Ordering::Relaxed);
            Ok::<_, io::Error>(found)
        };
        if directory.names.get().is_none() {
            let found = list()?;
            directory.names.get_or_init(|| by_test(&found));
        }
        match directory.names.get() {
            Some(names) if is_first && directory.is_large.load(Ordering::Relaxed) => {
                let own = names.get(test.as_bytes()).into_iter().flatten();
                Ok(own.map(|name| dir.join(name)).collect())
            }
            _ => Ok(of_test(dir, test, list()?)),
        }
    }
}

fn by_test(all: &[OsString]) -> HashMap<Vec<u8>, Vec<OsString>> {
    let mut names: HashMap<Vec<u8>, Vec<OsString>> = HashMap::new();
    for name in all {
        let bytes = name.as_bytes();
        for at in (0..bytes.len()).filter(|&at| bytes[at..].starts_with(OWN)) {
            names.entry(bytes[..at].to_owned()).or_default().push(name.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_large_directory_is_listed_once_and_a_test_that_has_begun_is_looked_for() {
        for count in [0, FEW] {
            let dir = tempfile::tempdir().unwrap();
            for number in 0..count {
                fs::write(dir.path().join(format!("{number}.tmp")), "").unwrap();
            }
            lists(dir.path(), count >= FEW);
        }
    }

    fn lists(dir: &Path, is_large: bool) {
        let directories = Directories::default();
        let names = |test: &str| {
            let own = directories.own(&dir.join(test)).unwrap();
            let mut names: Vec<_> = own.iter().map(|path| path.file_name().unwrap().to_owned()).collect();
            names.sort();
            names
        };
        for name in ["a.tmp", "a.tmp.tmp1", "b.tmp.o", "c"] {
            fs::write(dir.join(name), "").unwrap();
        }
        assert_eq!(names("a"), ["a.tmp", "a.tmp.tmp1"]);
        assert_eq!(names("a.tmp"), ["a.tmp.tmp1"]);
        fs::write(dir.join("a.tmp2"), "").unwrap();
        fs::write(dir.join("b.tmp.new"), "").unwrap();
        assert_eq!(names("a"), ["a.tmp", "a.tmp.tmp1", "a.tmp2"]);
        assert_eq!((names("b").len(), names("c").len()), (if is_large { 1 } else { 2 }, 0));
    }

    /// It is not listed for each of its tests from then on.
    #[test]
    fn a_directory_that_has_become_large_is_known_from_its_first_list() {
        let dir = tempfile::tempdir().unwrap();
        let directories = Directories::default();
        let count = |test: &str| directories.own(&dir.path().join(test)).unwrap().len();
        fs::write(dir.path().join("last.tmp"), "").unwrap();
        assert_eq!(count("first"), 0);
        for number in 0..=FEW {
            fs::write(dir.path().join(format!("{number}.tmp")), "").unwrap();
        }
        fs::write(dir.path().join("late.tmp"), "").unwrap();
        assert_eq!(count("second"), 0);
        assert_eq!((count("late"), count("last"), count("0")), (0, 1, 0));
        assert_eq!(count("0"), 1);
    }
}
