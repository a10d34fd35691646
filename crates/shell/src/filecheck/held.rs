//! Files and directories that are held open to tell whether anything at some paths has changed.
//!
//! In a traced process each question about a path costs as much as a switch to another process and back. A question about an open file is
//! not traced. A change to what is at a path shows in the times of the file, or of a directory on the way to it.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, openat, statat};

use super::store::RECENT;
use super::trust::Mark;

/// Everything on the way to some paths, and what the kernel says of it.
#[derive(Debug)]
pub(super) struct Held(Vec<(OwnedFd, [i64; 8])>);

fn numbers(found: &Stat) -> [i64; 8] {
    [
        found.st_dev as i64,
        found.st_ino as i64,
        found.st_nlink as i64,
        i64::from(found.st_mode),
        found.st_mtime,
        found.st_mtime_nsec as i64,
        found.st_ctime,
        found.st_ctime_nsec as i64,
    ]
}

impl Held {
    /// Holds what is on the way to these marks, which must be current. `None` if it cannot be held, or has changed just now.
    pub(super) fn new(marks: &[Mark]) -> Option<Held> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs() as i64;
        let mut paths = BTreeSet::new();
        for mark in marks {
            let end = mark.path.canonicalize().ok();
            for path in [Some(&mark.path), end.as_ref()].into_iter().flatten() {
                paths.extend(path.ancestors().filter(|path| path.is_absolute()).map(Path::to_owned));
            }
        }
        let mut held = Vec::new();
        for path in paths.iter().flat_map(|path| way(path)).collect::<BTreeSet<PathBuf>>() {
            // A link itself, and what is missing, show in the directory.
            let Ok(seen) = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(CWD, &path, flags, Mode::empty()).ok()?;
            let found = numbers(&fstat(&file).ok()?);
            if found != numbers(&seen) || seen.st_mtime.max(seen.st_ctime) + RECENT > now {
                return None;
            }
            held.push((file, found));
        }
        // All were what they are while they were opened.
        marks.iter().all(Mark::is_current).then_some(Held(held))
    }

    /// Returns whether nothing has changed.
    pub(super) fn is_unchanged(&self) -> bool {
        self.0.iter().all(|(file, before)| fstat(file).is_ok_and(|now| numbers(&now) == *before))
    }
}

/// Returns a path, and that by which its directory is reached without links.
fn way(path: &Path) -> Vec<PathBuf> {
    let real =
        path.parent().zip(path.file_name()).and_then(|(dir, name)| Some(dir.canonicalize().ok()?.join(name)));
    let real = real.into_iter().flat_map(|path| path.ancestors().map(Path::to_owned).collect::<Vec<_>>());
    [path.to_owned()].into_iter().chain(real).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filecheck::trust::Aspect;
    use std::fs::{self, File, FileTimes};
    use std::os::unix::fs::symlink;

    /// A directory whose content is a minute old, as far as its owner can say so.
    fn marks(dir: &Path) -> Vec<Mark> {
        fs::create_dir_all(dir.join("v1")).unwrap();
        fs::write(dir.join("v1/tool"), "").unwrap();
        symlink("v1", dir.join("tool")).unwrap();
        let missing = Mark::seen(&dir.join("v1/lib"), Aspect::Missing).unwrap();
        vec![Mark::of(&dir.join("tool/tool")).unwrap(), missing]
    }

    fn hold(marks: &[Mark]) -> Held {
        // What has changed just now is not held: the times of the last change cannot be set.
        assert!(Held::new(marks).is_none());
        let mut held = Vec::new();
        for path in marks.iter().flat_map(|mark| mark.path.ancestors().flat_map(way).collect::<Vec<_>>()) {
            let Ok(file) =
                openat(CWD, &path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
            else {
                continue;
            };
            let found = numbers(&fstat(&file).unwrap());
            held.push((file, found));
        }
        Held(held)
    }

    #[test]
    fn changes_on_the_way_are_seen() {
        let changes: [fn(&Path); 6] = [
            |dir| fs::write(dir.join("v1/lib"), "").unwrap(),
            |dir| fs::write(dir.join("v1/tool"), "x").unwrap(),
            |dir| fs::remove_file(dir.join("v1/tool")).unwrap(),
            |dir| {
                fs::remove_file(dir.join("tool")).unwrap();
                symlink("v1", dir.join("tool")).unwrap();
            },
            |dir| fs::rename(dir.join("v1"), dir.join("v2")).unwrap(),
            |dir| {
                let file = File::options().write(true).open(dir.join("v1/tool")).unwrap();
                file.set_times(FileTimes::new().set_modified(UNIX_EPOCH)).unwrap();
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let place = tempfile::tempdir().unwrap();
            let dir = place.path().canonicalize().unwrap();
            let held = hold(&marks(&dir));
            // Until the clock of files has gone on.
            let before = fs::metadata(dir.join("v1/tool")).unwrap().modified().unwrap();
            let probe = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
            while fs::write(probe.path(), "x").is_ok()
                && fs::metadata(probe.path()).unwrap().modified().unwrap() <= before
            {}
            assert!(held.is_unchanged() || number > 0, "nothing has happened");
            change(&dir);
            assert!(!held.is_unchanged(), "change {number}");
        }
    }
}
