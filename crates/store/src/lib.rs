//! A directory of segments, in which knowledge is stored between runs.
//!
//! A runner writes what is new to a segment of its own, under a temporary name, and renames it. So runners do not disturb each other, and
//! a crash loses only what was not written yet. A segment ends with a hash of its content; one that does not match is ignored. This
//! crate does not know what the segments hold.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Segments from which one is made.
pub const SEGMENTS_MAX: usize = 16;
/// A temporary file of this age belongs to no runner any more.
const ABANDONED: Duration = Duration::from_secs(3600);
const HASH: usize = 32;

/// A directory of segments of one kind.
#[derive(Clone, Debug)]
pub struct Segments {
    /// The directory.
    pub dir: PathBuf,
    /// The extension of their names.
    pub suffix: &'static str,
    /// Their first bytes, with the version of the format.
    pub magic: &'static [u8],
    /// Bytes above which the oldest segments go.
    pub size_max: u64,
}

/// A file.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its path.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    modified: SystemTime,
}

impl Segments {
    /// Returns the segments, the oldest first.
    pub fn all(&self) -> Vec<Segment> {
        let Ok(entries) = fs::read_dir(&self.dir) else { return Vec::new() };
        let segment = |entry: fs::DirEntry| {
            let path = entry.path();
            let found = entry.metadata().ok()?;
            let modified = found.modified().ok()?;
            let is_one = path.extension().is_some_and(|suffix| suffix == self.suffix) && found.is_file();
            is_one.then_some(Segment { path, size: found.len(), modified })
        };
        let mut all: Vec<Segment> = entries.flatten().filter_map(segment).collect();
        all.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
        all
    }

    /// Reads the content of a segment. `None` if it is damaged, or of another version.
    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let mut bytes = fs::read(path).ok().filter(|bytes| bytes.len() as u64 <= self.size_max)?;
        let (content, end) = bytes.split_last_chunk::<HASH>()?;
        if blake3::hash(content) != *end || !content.starts_with(self.magic) {
            return None;
        }
        bytes.truncate(bytes.len() - HASH);
        bytes.drain(..self.magic.len());
        Some(bytes)
    }

    /// Writes a segment with this content, and removes those that it replaces, and the oldest that are too much. If that fails, later runs
    /// find less.
    pub fn write(&self, content: &[u8], replaced: &[Segment]) {
        if self.put(content).is_err() {
            return;
        }
        replaced.iter().for_each(|segment| _ = fs::remove_file(&segment.path));
        let present = self.all();
        let mut size: u64 = present.iter().map(|segment| segment.size).sum();
        for segment in present {
            if size <= self.size_max {
                break;
            }
            size -= segment.size;
            let _ = fs::remove_file(&segment.path);
        }
        self.remove_abandoned();
    }

    fn put(&self, content: &[u8]) -> io::Result<()> {
        // Two threads of a runner may write at the same time.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(&self.dir)?;
        let mut bytes = [self.magic, content].concat();
        bytes.extend(blake3::hash(&bytes).as_bytes());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:x}-{}-{number}", now.as_nanos(), std::process::id());
        let (new, path) =
            (self.dir.join(format!("{name}.new")), self.dir.join(format!("{name}.{}", self.suffix)));
        let done = fs::write(&new, bytes).and_then(|()| fs::rename(&new, path));
        done.inspect_err(|_| _ = fs::remove_file(&new))
    }

    /// Removes all segments.
    pub fn clear(&self) {
        self.all().iter().for_each(|segment| _ = fs::remove_file(&segment.path));
    }

    /// Removes damaged segments.
    pub fn remove_damaged(&self) {
        let damaged = self.all().into_iter().filter(|segment| self.read(&segment.path).is_none());
        damaged.for_each(|segment| _ = fs::remove_file(segment.path));
    }

    /// Removes what runners have left that were killed while they wrote.
    fn remove_abandoned(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|found| found.modified());
            let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED));
            if is_old && entry.path().extension().is_some_and(|suffix| suffix == "new") {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(dir: &Path) -> Segments {
        Segments { dir: dir.to_owned(), suffix: "segment", magic: b"test 1\n", size_max: 4096 }
    }

    #[test]
    fn a_segment_is_whole_or_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let segments = segments(&dir.path().join("new"));
        segments.write(b"content", &[]);
        let path = segments.all().pop().unwrap().path;
        assert_eq!(segments.read(&path).unwrap(), b"content");
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(segments.read(&path), None, "cut after {length}");
        }
        segments.remove_damaged();
        assert!(segments.all().is_empty());
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let dir = tempfile::tempdir().unwrap();
        let segments = segments(dir.path());
        (0..10u8).for_each(|number| segments.write(&[number; 1000], &[]));
        let contents: Vec<u8> =
            segments.all().iter().map(|one| segments.read(&one.path).unwrap()[0]).collect();
        assert_eq!(contents, [7, 8, 9]);
    }
}
