//! The state of a test's own files before it runs.
//!
//! lit removes no files, so a test may pass or fail by what earlier invocations have left. A run that repeats another one has to find what
//! that one found. So these files are read before the first attempt, and restored before each further run: content, modes, times, links
//! and directories. Few tests have any when a suite runs for the first time.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use hotstart_model::Script;
use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps, UTIME_OMIT};

/// Most bytes of one test's files. Larger ones are not kept: they are removed where a run has changed them.
const BYTES_MAX: u64 = 16 << 20;
/// The end of the name of a test in the names of its own files.
const OWN: &[u8] = b".tmp";

/// The files of one test, each directory before what is in it.
#[derive(Debug, Default)]
pub(crate) struct Kept(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    path: PathBuf,
    before: Metadata,
    what: What,
}

#[derive(Debug)]
enum What {
    Directory,
    Link(PathBuf),
    File(Vec<u8>),
    Fifo,
    /// Something that is too large, cannot be read, or cannot be made.
    Unkept,
}

impl Kept {
    /// Reads the files at these paths.
    pub(crate) fn read(paths: Vec<PathBuf>) -> Kept {
        let mut kept = Kept::default();
        let mut left = BYTES_MAX;
        paths.into_iter().for_each(|path| kept.add(path, &mut left));
        kept
    }

    /// Reads the script's files as they are now.
    pub(crate) fn of(script: &Script) -> Kept {
        Kept::read(own(script))
    }

    fn add(&mut self, path: PathBuf, left: &mut u64) {
        let Ok(before) = path.symlink_metadata() else { return };
        let kind = before.file_type();
        let what = if kind.is_symlink() {
            fs::read_link(&path).map_or(What::Unkept, What::Link)
        } else if kind.is_dir() {
            What::Directory
        } else if kind.is_fifo() {
            What::Fifo
        } else if kind.is_file() && before.len() <= *left {
            match fs::read(&path) {
                Ok(bytes) => {
                    *left = left.saturating_sub(bytes.len() as u64);
                    What::File(bytes)
                }
                Err(_) => What::Unkept,
            }
        } else {
            What::Unkept
        };
        let inside = matches!(what, What::Directory).then(|| entries(&path));
        self.0.push(Entry { path, before, what });
        inside.into_iter().flatten().for_each(|path| self.add(path, left));
    }

    /// Makes the script's files what they were. Fails if one cannot be made; those after it are made all the same.
    pub(crate) fn restore(&self, script: &Script) -> io::Result<()> {
        let known: HashMap<&Path, &Entry> =
            self.0.iter().map(|entry| (entry.path.as_path(), entry)).collect();
        own(script).iter().for_each(|path| remove_changed(path, &known));
        let made = self.0.iter().map(Entry::make).fold(Ok(()), io::Result::and);
        // What was made in a directory has changed its time, and may need its mode.
        let finished = self.0.iter().rev().map(Entry::finish).fold(Ok(()), io::Result::and);
        made.and(finished)
    }
}

/// Removes what was not there, or is something else now.
fn remove_changed(path: &Path, known: &HashMap<&Path, &Entry>) {
    let Ok(found) = path.symlink_metadata() else { return };
    let is_same = known.get(path).is_some_and(|entry| entry.is_untouched(&found));
    // What cannot be removed shows up as a difference, or does not matter.
    if !found.is_dir() {
        if !is_same {
            let _ = fs::remove_file(path);
        }
    } else if known.get(path).is_some_and(|entry| matches!(entry.what, What::Directory)) {
        // It may have been closed.
        let _ = fs::set_permissions(path, Permissions::from_mode(found.mode() | 0o700));
        entries(path).iter().for_each(|path| remove_changed(path, known));
    } else {
        let _ = fs::remove_dir_all(path);
    }
}

impl Entry {
    /// Whether nothing has happened to the file since. Each change sets the time of the inode's change.
    fn is_untouched(&self, now: &Metadata) -> bool {
        let of = |data: &Metadata| {
            (data.dev(), data.ino(), data.ctime(), data.ctime_nsec(), data.len(), data.mode())
        };
        of(&self.before) == of(now)
    }

    fn make(&self) -> io::Result<()> {
        let path = &self.path;
        match (&self.what, path.symlink_metadata()) {
            (What::Directory, Ok(found)) if found.is_dir() => Ok(()),
            (_, Ok(found)) if self.is_untouched(&found) => Ok(()),
            (_, Ok(_)) => Err(io::Error::new(ErrorKind::AlreadyExists, "it cannot be removed")),
            (What::Directory, Err(_)) => fs::create_dir(path),
            (What::Link(target), Err(_)) => symlink(target, path),
            (What::File(bytes), Err(_)) => fs::write(path, bytes),
            (What::Fifo, Err(_)) => {
                rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
                    .map_err(io::Error::from)
            }
            (What::Unkept, Err(_)) => Ok(()),
        }
        .map_err(|error| io::Error::new(error.kind(), format!("'{}': {error}", path.display())))
    }

    /// Gives it its mode and its times.
    fn finish(&self) -> io::Result<()> {
        let Ok(found) = self.path.symlink_metadata() else { return Ok(()) };
        if self.is_untouched(&found) {
            return Ok(());
        }
        if !found.is_symlink() {
            fs::set_permissions(&self.path, Permissions::from_mode(self.before.mode() & 0o7777))?;
        }
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: self.before.mtime(), tv_nsec: self.before.mtime_nsec() },
        };
        rustix::fs::utimensat(CWD, &self.path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Returns the paths of the script's own files, which begin with its `%t`.
pub(crate) fn own(script: &Script) -> Vec<PathBuf> {
    let (Some(dir), Some(name)) = (script.tmp_base.parent(), script.tmp_base.file_name()) else {
        return Vec::new();
    };
    let prefix = [name.as_bytes(), OWN].concat();
    let is_own = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(&prefix));
    entries(dir).into_iter().filter(is_own).collect()
}

/// The directories of outputs, each listed when the first of its tests begins: a folder may have thousands of tests, and to list it for
/// each of them would take longer than they run.
#[derive(Debug, Default)]
pub(crate) struct Directories(Mutex<HashMap<PathBuf, Arc<Directory>>>);

#[derive(Debug, Default)]
struct Directory {
    /// Names of files, by the name of the test that they may belong to.
    names: OnceLock<HashMap<Vec<u8>, Vec<OsString>>>,
    /// Tests that have begun: the list does not have what they have made since.
    begun: Mutex<HashSet<OsString>>,
}

impl Directories {
    /// Returns the paths of the script's own files as it begins.
    pub(crate) fn own(&self, script: &Script) -> Vec<PathBuf> {
        let (Some(dir), Some(name)) = (script.tmp_base.parent(), script.tmp_base.file_name()) else {
            return Vec::new();
        };
        let directory = {
            let mut all = self.0.lock().expect("no panic while locked");
            Arc::clone(all.entry(dir.to_owned()).or_default())
        };
        let is_first = directory.begun.lock().expect("no panic while locked").insert(name.to_owned());
        if !is_first {
            return own(script);
        }
        let names = directory.names.get_or_init(|| by_test(dir));
        names.get(name.as_bytes()).into_iter().flatten().map(|name| dir.join(name)).collect()
    }
}

fn by_test(dir: &Path) -> HashMap<Vec<u8>, Vec<OsString>> {
    let mut names: HashMap<Vec<u8>, Vec<OsString>> = HashMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let bytes = name.as_bytes();
        for at in (0..bytes.len()).filter(|&at| bytes[at..].starts_with(OWN)) {
            names.entry(bytes[..at].to_owned()).or_default().push(name.clone());
        }
    }
    names
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
