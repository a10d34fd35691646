//! Files and directories that are held open to tell whether anything at some paths has changed.
//!
//! In a traced process each question about a path costs as much as a switch to another process and back. A question about an open file is
//! not traced. A change to what is at a path shows in the times of the file, or of a directory on the way to it; or it is a mount.
//!
//! An open file keeps its file system from being unmounted, which a test may want to do. So nothing is held in any but that of the root and
//! that of the program, nor where times do not show each change.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hotstart_launch::stamps_changes;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, StatxFlags, fstat, openat, statat, statx};

use super::store::RECENT;
use super::trust::Mark;

/// The kernel's list of mounts.
const MOUNTS: &str = "/proc/self/mountinfo";

/// Everything on the way to some paths, and what the kernel says of it.
#[derive(Debug)]
pub(super) struct Held {
    files: Vec<(OwnedFd, [i64; 8])>,
    mounts: Mounts,
}

/// The list of mounts, as it was when it was opened.
#[derive(Debug)]
struct Mounts(File, Vec<u8>);

impl Mounts {
    fn now() -> Option<Mounts> {
        let mut file = File::open(MOUNTS).ok()?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).ok()?;
        Some(Mounts(file, text))
    }

    fn are_unchanged(&self) -> bool {
        let (mut at, mut part) = (0, [0; 4096]);
        loop {
            match self.0.read_at(&mut part, at as u64) {
                Ok(0) => return at == self.1.len(),
                Ok(read) if self.1[at..].starts_with(&part[..read]) => at += read,
                _ => return false,
            }
        }
    }
}

/// Returns the number of the mount in which something lies.
fn mount(path: &Path) -> Option<u64> {
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID).ok()?;
    (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id)
}

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
    /// Holds what is on the way to these marks of a program, which must be current. `None` if it cannot be held, or has changed just now.
    pub(super) fn new(program: &Path, marks: &[Mark]) -> Option<Held> {
        let mounts = Mounts::now()?;
        let places = [mount(Path::new("/"))?, mount(program)?];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs() as i64;
        let mut paths = BTreeSet::new();
        for mark in marks {
            let end = mark.path.canonicalize().ok();
            for path in [Some(&mark.path), end.as_ref()].into_iter().flatten() {
                paths.extend(path.ancestors().filter(|path| path.is_absolute()).map(Path::to_owned));
            }
        }
        let mut files = Vec::new();
        for path in paths.iter().flat_map(|path| way(path)).collect::<BTreeSet<PathBuf>>() {
            // A link itself, and what is missing, show in the directory.
            let Ok(seen) = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(CWD, &path, flags, Mode::empty()).ok()?;
            let found = numbers(&fstat(&file).ok()?);
            // A link lies in a directory that is held as well.
            let is_link = FileType::from_raw_mode(seen.st_mode).is_symlink();
            let shows_changes = places.contains(&mount(&path)?) && (is_link || stamps_changes(&path));
            let is_recent = seen.st_mtime.max(seen.st_ctime) + RECENT > now;
            if found != numbers(&seen) || !shows_changes || is_recent {
                return None;
            }
            files.push((file, found));
        }
        let held = Held { files, mounts };
        // All were what they are while they were opened.
        (marks.iter().all(Mark::is_current) && held.mounts.are_unchanged()).then_some(held)
    }

    /// Returns whether nothing has changed.
    pub(super) fn is_unchanged(&self) -> bool {
        let is_as_before =
            |(file, before): &(OwnedFd, _)| fstat(file).is_ok_and(|now| numbers(&now) == *before);
        self.files.iter().all(is_as_before) && self.mounts.are_unchanged()
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

    /// Holds what is at or below `dir`. Other tests change what is above it.
    fn hold(dir: &Path, marks: &[Mark]) -> Held {
        // What has changed just now is not held: the times of the last change cannot be set.
        assert!(Held::new(&marks[0].path, marks).is_none());
        let mut files = Vec::new();
        let paths = marks.iter().flat_map(|mark| mark.path.ancestors().flat_map(way).collect::<Vec<_>>());
        for path in paths.filter(|path| path.starts_with(dir)) {
            let Ok(file) =
                openat(CWD, &path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
            else {
                continue;
            };
            let found = numbers(&fstat(&file).unwrap());
            files.push((file, found));
        }
        Held { files, mounts: Mounts::now().unwrap() }
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
            let held = hold(&dir, &marks(&dir));
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

    #[test]
    fn another_list_of_mounts_is_a_change() {
        let Mounts(file, text) = Mounts::now().unwrap();
        let with = |text: Vec<u8>| Mounts(file.try_clone().unwrap(), text).are_unchanged();
        let one_more = [&text[..], b"one more\n"].concat();
        let other = [b"other".as_slice(), &text[5..]].concat();
        assert!(with(text.clone()) && with(text.clone()));
        assert!(!with(one_more) && !with(other) && !with(text[..text.len() - 1].to_vec()));
    }
}
