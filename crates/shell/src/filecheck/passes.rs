//! Remembers passes of FileCheck between runs.
//!
//! FileCheck's result depends on the program, its arguments, a few variables, the check file and the input. A hash of all
//! these names a result, so a pass that was seen once is a pass again. Failures are never stored.
//!
//! The store is a directory of segments. A runner writes its new hashes to a segment of its own, under a temporary name, and
//! renames it. So runners do not disturb each other, and a crash loses only what was not written yet. A segment ends with a
//! hash of its content; one that does not match is ignored.

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A BLAKE3 hash. No two inputs with the same hash are known of any function of this kind, by chance or by intent.
pub(super) type Hash = [u8; 32];

const MAGIC: &[u8] = b"hotstart passes 1\n";
const SUFFIX: &str = "passes";
/// New hashes that are written at once, before the end of the run.
const BATCH: usize = 8192;
/// Segments from which one is made.
const SEGMENTS_MAX: usize = 16;
/// Size above which the oldest segments go: 2 million hashes. llvm/test has about 60,000 FileChecks.
const SIZE_MAX: u64 = 64 << 20;
/// A temporary file of this age belongs to no runner any more.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The passes that are known. The directory is read at the first question.
#[derive(Debug)]
pub(super) struct Passes {
    dir: PathBuf,
    known: OnceLock<RwLock<HashSet<Hash>>>,
    fresh: Mutex<Vec<Hash>>,
    /// Chooses the sample, differently in each run.
    seed: RandomState,
    sample: u64,
}

impl Passes {
    /// The passes below a directory. One in `sample` of the remembered ones is a run of FileCheck nevertheless.
    pub fn new(dir: PathBuf, sample: u64) -> Self {
        Passes { dir, known: OnceLock::new(), fresh: Mutex::default(), seed: RandomState::new(), sample }
    }

    fn known(&self) -> &RwLock<HashSet<Hash>> {
        self.known.get_or_init(|| {
            let all = segments(&self.dir).into_iter().filter_map(|segment| read(&segment.path));
            RwLock::new(all.flatten().collect())
        })
    }

    pub fn has(&self, hash: &Hash) -> bool {
        self.known().read().expect("no panic while locked").contains(hash)
    }

    /// Returns whether FileCheck should run although its pass is remembered.
    pub fn samples(&self, hash: &Hash) -> bool {
        self.seed.hash_one(hash) % self.sample == 0
    }

    /// Remembers these, from now on and for later runs.
    pub fn add(&self, hashes: &[Hash]) {
        let mut known = self.known().write().expect("no panic while locked");
        let mut fresh = self.fresh.lock().expect("no panic while locked");
        fresh.extend(hashes.iter().filter(|hash| known.insert(**hash)));
        drop(known);
        if fresh.len() >= BATCH {
            let batch = std::mem::take(&mut *fresh);
            drop(fresh);
            self.write(&batch);
        }
    }

    /// Writes what is new.
    pub fn save(&self) {
        let fresh = std::mem::take(&mut *self.fresh.lock().unwrap_or_else(PoisonError::into_inner));
        self.write(&fresh);
    }

    /// Writes a segment, and tidies the directory. If that fails, a later run finds less.
    fn write(&self, hashes: &[Hash]) {
        if hashes.is_empty() || fs::create_dir_all(&self.dir).is_err() {
            return;
        }
        let mut present = segments(&self.dir);
        let mut merged: HashSet<Hash> = hashes.iter().copied().collect();
        let old = if present.len() >= SEGMENTS_MAX { std::mem::take(&mut present) } else { Vec::new() };
        merged.extend(old.iter().filter_map(|segment| read(&segment.path)).flatten().take(CAPACITY));
        if put(&self.dir, &merged).is_ok() {
            // What they hold is in the new segment, or too old.
            old.iter().for_each(|segment| _ = fs::remove_file(&segment.path));
        }
        let mut size: u64 = segments(&self.dir).iter().map(|segment| segment.size).sum();
        for segment in present {
            if size <= SIZE_MAX {
                break;
            }
            size -= segment.size;
            let _ = fs::remove_file(&segment.path);
        }
        remove_abandoned(&self.dir);
    }
}

/// Hashes that fit into a segment of half the allowed size.
const CAPACITY: usize = (SIZE_MAX / 2) as usize / size_of::<Hash>();

impl Drop for Passes {
    fn drop(&mut self) {
        self.save();
    }
}

/// A file of hashes.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    size: u64,
    modified: SystemTime,
}

/// Returns the segments, the oldest first.
fn segments(dir: &Path) -> Vec<Segment> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let segment = |entry: fs::DirEntry| {
        let path = entry.path();
        let found = entry.metadata().ok()?;
        let modified = found.modified().ok()?;
        let is_one = path.extension().is_some_and(|suffix| suffix == SUFFIX) && found.is_file();
        is_one.then_some(Segment { path, size: found.len(), modified })
    };
    let mut all: Vec<Segment> = entries.flatten().filter_map(segment).collect();
    all.sort_by_key(|segment| segment.modified);
    all
}

/// Reads a segment. `None` if it is damaged.
fn read(path: &Path) -> Option<Vec<Hash>> {
    let bytes = fs::read(path).ok().filter(|bytes| bytes.len() as u64 <= SIZE_MAX)?;
    let (content, end) = bytes.split_last_chunk::<32>()?;
    if blake3::hash(content) != *end {
        return None;
    }
    let hashes = content.strip_prefix(MAGIC)?.chunks_exact(size_of::<Hash>());
    let is_whole = hashes.remainder().is_empty();
    is_whole.then(|| hashes.map(|hash| hash.try_into().expect("of that size")).collect())
}

fn put(dir: &Path, hashes: &HashSet<Hash>) -> std::io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    hashes.iter().for_each(|hash| bytes.extend(hash));
    bytes.extend(blake3::hash(&bytes).as_bytes());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!("{:x}-{}", now.as_nanos(), std::process::id());
    let (new, path) = (dir.join(format!("{name}.new")), dir.join(format!("{name}.{SUFFIX}")));
    let done = fs::write(&new, bytes).and_then(|()| fs::rename(&new, path));
    done.inspect_err(|_| _ = fs::remove_file(&new))
}

/// Removes what runners have left that were killed while they wrote.
fn remove_abandoned(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|found| found.modified());
        let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED));
        if is_old && entry.path().extension().is_some_and(|suffix| suffix == "new") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The state of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassesReport {
    /// Segments that are in order, and those that are damaged.
    pub segments: [usize; 2],
    /// Hashes in segments that are in order; some may be there more than once.
    pub hashes: usize,
    /// Bytes of all segments.
    pub bytes: u64,
}

/// Reads all remembered passes below a directory of [`passes_directory`](super::passes_directory).
pub fn passes_report(dir: &Path) -> PassesReport {
    segments(dir).iter().fold(PassesReport::default(), |mut report, segment| {
        let hashes = read(&segment.path);
        report.segments[usize::from(hashes.is_none())] += 1;
        report.hashes += hashes.map_or(0, |hashes| hashes.len());
        report.bytes += segment.size;
        report
    })
}

/// Removes damaged segments there.
pub fn remove_damaged_passes(dir: &Path) {
    let damaged = segments(dir).into_iter().filter(|segment| read(&segment.path).is_none());
    damaged.for_each(|segment| _ = fs::remove_file(segment.path));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: usize) -> Hash {
        *blake3::hash(&number.to_ne_bytes()).as_bytes()
    }

    fn with(dir: &Path, numbers: std::ops::Range<usize>) {
        let passes = Passes::new(dir.to_owned(), 200);
        passes.add(&numbers.map(hash).collect::<Vec<_>>());
    }

    #[test]
    fn what_one_run_saw_later_runs_know() {
        let dir = tempfile::tempdir().unwrap();
        with(dir.path(), 0..5);
        with(dir.path(), 3..9);
        let passes = Passes::new(dir.path().to_owned(), 200);
        assert!((0..9).all(|number| passes.has(&hash(number))) && !passes.has(&hash(9)));
        // Only what was new has been written.
        assert_eq!(passes_report(dir.path()).hashes, 9);
    }

    #[test]
    fn damage_makes_a_store_smaller_and_never_wrong() {
        let dir = tempfile::tempdir().unwrap();
        with(dir.path(), 0..3);
        let path = segments(dir.path()).pop().unwrap().path;
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            for bytes in [&changed[..], &whole[..at]] {
                fs::write(&path, bytes).unwrap();
                assert_eq!(read(&path), None, "at {at}");
            }
        }
        assert_eq!(passes_report(dir.path()).segments, [0, 1]);
        remove_damaged_passes(dir.path());
        assert_eq!(passes_report(dir.path()), PassesReport::default());
    }

    #[test]
    fn many_segments_become_one_and_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let runs = SEGMENTS_MAX * 3;
        (0..runs).for_each(|run| with(dir.path(), run * 10..run * 10 + 10));
        let found = passes_report(dir.path());
        assert!(found.segments[0] <= SEGMENTS_MAX && found.hashes == runs * 10, "{found:?}");
    }

    #[test]
    fn runners_at_once_never_make_up_a_pass() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for runner in 0..16 {
                let dir = dir.path();
                scope.spawn(move || {
                    (0..20).for_each(|run| with(dir, (runner * 20 + run) * 3..(runner * 20 + run) * 3 + 3))
                });
            }
        });
        let seen: HashSet<Hash> = (0..16 * 20 * 3).map(hash).collect();
        let stored: HashSet<Hash> =
            segments(dir.path()).iter().flat_map(|segment| read(&segment.path).unwrap()).collect();
        assert!(
            stored.is_subset(&seen) && stored.len() > seen.len() / 2,
            "{} of {}",
            stored.len(),
            seen.len()
        );
    }

    #[test]
    fn what_cannot_be_written_is_not_missed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        with(&dir.path().join("file/below"), 0..3);
        let passes = Passes::new(dir.path().join("file/below"), 200);
        assert!(!passes.has(&hash(0)));
    }
}
