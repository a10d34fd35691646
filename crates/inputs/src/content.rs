//! Hashes of files, each computed once as long as the file looks the same.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::input::Stamp;

/// A BLAKE3 hash.
pub type Hash = [u64; 4];

/// A file that changed this shortly ago may change again without a trace: clocks of files tick in steps of some milliseconds, and what is
/// written through a mapping is stamped at the first write to a page that was written back, which takes up to 30 s.
const TICK: Duration = Duration::from_secs(60);

/// The contents that this process has read.
#[derive(Debug, Default)]
pub struct Contents(Mutex<HashMap<Stamp, Hash>>);

impl Contents {
    /// Returns the hash of the regular file that looks like `stamp`; `None` if it looks otherwise, or cannot be read.
    pub fn of(&self, path: &Path, stamp: &Stamp) -> Option<Hash> {
        if let Some(hash) = self.0.lock().expect("no panic while locked").get(stamp) {
            return Some(*hash);
        }
        let hash = of_file(path, stamp)?;
        if is_settled(stamp) {
            self.0.lock().expect("no panic while locked").insert(*stamp, hash);
        }
        Some(hash)
    }
}

/// Returns whether the file's last change lies so far back that a further one would be seen.
pub(crate) fn is_settled(stamp: &Stamp) -> bool {
    // The clock of files, which is also the one that a process that traces can read.
    let now = clock_gettime(ClockId::RealtimeCoarse);
    let before = now.tv_sec.saturating_sub(TICK.as_secs() as i64);
    stamp.changed < before.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// Returns whether the stamp alone tells later that the file is still the same.
pub(crate) fn is_told_by_stamp(path: &Path, stamp: &Stamp) -> bool {
    is_settled(stamp) && hotstart_launch::stamps_changes(path)
}

/// Reads the file; it must look like `stamp` before and after.
pub(crate) fn of_file(path: &Path, stamp: &Stamp) -> Option<Hash> {
    let is_same = || Stamp::of(path).is_ok_and(|now| now == *stamp);
    if !is_same() {
        return None;
    }
    let hash = hash(path).ok()?;
    is_same().then_some(hash)
}

/// Hashes a file of any size.
pub(crate) fn hash(path: &Path) -> io::Result<Hash> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 128 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(words(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        };
    }
}

/// Hashes a list of names.
pub(crate) fn hash_names(names: &[(String, u8)]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    for (name, kind) in names {
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(&[*kind]);
    }
    words(&hasher.finalize())
}

pub(crate) fn words(hash: &blake3::Hash) -> Hash {
    let word =
        |at: usize| u64::from_le_bytes(hash.as_bytes()[at * 8..at * 8 + 8].try_into().expect("8 bytes"));
    [word(0), word(1), word(2), word(3)]
}
