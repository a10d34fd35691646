//! Digests of files, kept from run to run for large ones: a tool with its libraries has hundreds of megabytes.
//!
//! A file is known again by what the config cache compares: device, inode, size, and the times of content and inode, of which
//! programs cannot set the last. A file that changed just now may change again within the same tick, so its digest is not kept.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hotstart_remote::Digest;
use serde::{Deserialize, Serialize};

/// Files from this size on are kept between runs.
const LARGE: u64 = 256 << 10;
/// A file whose inode changed within this time is not kept.
const SETTLED: Duration = Duration::from_secs(60);
/// Most files that are kept.
const MOST: usize = 4096;

/// The state by which a file is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &Metadata) -> Stamp {
        Stamp {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            written: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.changed.0 >= 0 && Duration::from_secs(self.changed.0 as u64) + SETTLED < now
    }
}

/// Stamp and digest of each file, and whether it was settled when it was read: one that was not may have changed since with the same stamp.
type Known = HashMap<PathBuf, (Stamp, String, bool)>;

/// Digests of files that were read.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    file: Option<PathBuf>,
    known: Mutex<Known>,
}

impl Digests {
    /// Begins with those that are kept in this directory.
    pub fn kept_in(dir: Option<PathBuf>) -> Digests {
        let file = dir.map(|dir| dir.join("digests.json"));
        let text = file.as_ref().and_then(|file| fs::read(file).ok()).unwrap_or_default();
        // A damaged file holds nothing.
        let known = serde_json::from_slice(&text).unwrap_or_default();
        Digests { file, known: Mutex::new(known) }
    }

    /// Returns the digest of a file.
    pub fn of(&self, path: &Path, found: &Metadata) -> io::Result<Digest> {
        let stamp = Stamp::of(found);
        if let Some((known, hex, _)) = self.known.lock().expect("no panic while locked").get(path) {
            if let Some(digest) = Digest::from_hex(hex, stamp.size).filter(|_| *known == stamp) {
                return Ok(digest);
            }
        }
        let is_settled = stamp.is_settled();
        let digest = Digest::of_file(path)?;
        let known = (stamp, digest.hex(), is_settled);
        self.known.lock().expect("no panic while locked").insert(path.to_owned(), known);
        Ok(digest)
    }

    /// Keeps those of large files. Without them the next run is slower, and nothing else.
    pub fn save(&self) {
        let Some(file) = &self.file else { return };
        let known = self.known.lock().expect("no panic while locked");
        let is_kept = |(_, (stamp, _, is_settled)): &(&PathBuf, &(Stamp, String, bool))| {
            stamp.size >= LARGE && *is_settled
        };
        let kept: HashMap<_, _> = known.iter().filter(is_kept).take(MOST).collect();
        let Ok(text) = serde_json::to_vec(&kept) else { return };
        let fresh = file.with_extension(format!("{}.new", std::process::id()));
        let written = fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))
            .and_then(|()| fs::write(&fresh, text))
            .and_then(|()| fs::rename(&fresh, file));
        if written.is_err() {
            let _ = fs::remove_file(&fresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, digests) = (dir.path().join("f"), Digests::default());
        let of = |digests: &Digests| digests.of(&path, &fs::metadata(&path).unwrap()).unwrap();
        fs::write(&path, "one").unwrap();
        assert_eq!(of(&digests), Digest::of(b"one"));
        fs::write(&path, "other").unwrap();
        assert_eq!(of(&digests), Digest::of(b"other"));
    }

    #[test]
    fn large_files_are_kept_once_they_are_settled() {
        let dir = tempfile::tempdir().unwrap();
        let mut digests = Digests::kept_in(Some(dir.path().to_owned()));
        let known = |is_settled, size| {
            let stamp = Stamp { device: 1, inode: 2, size, written: (0, 0), changed: (1, 0) };
            (stamp, Digest::of(b"").hex(), is_settled)
        };
        for (name, is_settled, size) in
            [("old", true, LARGE), ("new", false, LARGE), ("small", true, LARGE - 1)]
        {
            digests.known.get_mut().unwrap().insert(name.into(), known(is_settled, size));
        }
        digests.save();
        let kept = Digests::kept_in(Some(dir.path().to_owned())).known.into_inner().unwrap();
        assert_eq!(kept.into_keys().collect::<Vec<_>>(), [PathBuf::from("old")]);
    }
}
