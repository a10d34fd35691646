//! Versions of files, to tell later whether they are as they were.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What of a path a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Aspect {
    /// The file that the path leads to.
    Target,
    /// What is at the path: a file, a link, or a directory with its names.
    Itself,
    /// That this directory is there, whatever is in it.
    Place,
    /// That nothing is there.
    Missing,
}

/// A file, and the numbers that identify its version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub path: PathBuf,
    pub aspect: Aspect,
    /// Device, inode, size, and times of modification and change.
    pub numbers: [i64; 7],
}

impl Mark {
    /// Returns the mark of the file as it is now.
    pub fn of(path: &Path) -> Option<Mark> {
        Mark::seen(path, Aspect::Target)
    }

    /// Returns the mark of an aspect as it is now. `None` if it is another one now.
    pub fn seen(path: &Path, aspect: Aspect) -> Option<Mark> {
        Some(Mark { path: path.to_owned(), aspect, numbers: Mark::numbers(path, aspect)? })
    }

    fn numbers(path: &Path, aspect: Aspect) -> Option<[i64; 7]> {
        let found = match aspect {
            Aspect::Target => fs::metadata(path),
            _ => fs::symlink_metadata(path),
        };
        Some(match (aspect, found) {
            (Aspect::Missing, Err(error)) => {
                let is_missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
                is_missing.then_some([0; 7])?
            }
            (Aspect::Missing, Ok(_)) | (_, Err(_)) => return None,
            (Aspect::Place, Ok(found)) => {
                let what = [found.dev() as i64, found.ino() as i64, i64::from(found.mode())];
                [what[0], what[1], what[2], 0, 0, 0, 0]
            }
            (Aspect::Target | Aspect::Itself, Ok(found)) => {
                let (device, inode, size) = (found.dev() as i64, found.ino() as i64, found.size() as i64);
                let modified = [found.mtime(), found.mtime_nsec()];
                let changed = [found.ctime(), found.ctime_nsec()];
                [device, inode, size, modified[0], modified[1], changed[0], changed[1]]
            }
        })
    }

    pub fn is_current(&self) -> bool {
        Mark::numbers(&self.path, self.aspect) == Some(self.numbers)
    }
}

/// A file that the runner reads in the place of a process that would read it later.
///
/// The numbers tell of a change that was undone, and the content of one that follows another within a tick of the kernel's clock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    mark: Mark,
    content: blake3::Hash,
}

impl Seen {
    /// Returns a regular file as it is now. `None` if there is none, or it cannot be read.
    pub fn of(path: &Path) -> Option<Seen> {
        let mark = Mark::of(path).filter(|_| path.is_file())?;
        Some(Seen { mark, content: blake3::hash(&fs::read(path).ok()?) })
    }

    /// Whether a process would find the same now.
    pub fn is_current(&self) -> bool {
        Seen::of(&self.mark.path).as_ref() == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};

    use super::*;

    #[test]
    fn changes_are_seen_by_what_they_leave() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert_eq!(Seen::of(&path), None);
        assert_eq!(Seen::of(dir.path()), None);
        fs::write(&path, "one").unwrap();
        let seen = Seen::of(&path).unwrap();
        assert!(seen.is_current());
        // As if within one tick.
        let other = Seen { content: blake3::hash(b"two"), ..Seen::of(&path).unwrap() };
        assert!(!other.is_current());
        // The same again.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "one").unwrap();
        File::options().write(true).open(&path).unwrap().set_times(FileTimes::new()).unwrap();
        assert!(!seen.is_current());
        fs::remove_file(&path).unwrap();
        assert!(!seen.is_current());
    }
}
