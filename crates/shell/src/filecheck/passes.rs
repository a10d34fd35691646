//! Remembers passes of FileCheck between runs.
//!
//! FileCheck's result depends on the program, its arguments, a few variables, the check file and the input. A hash of all
//! these names a result, so a pass that was seen once is a pass again. Failures are never stored.
//!
//! The store is a directory of segments (`hotstart-store`), which several runners may write at once. Each holds hashes, one after the
//! other.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

use hotstart_store::{SEGMENTS_MAX, Segment, Segments};

/// A BLAKE3 hash. No two inputs with the same hash are known of any function of this kind, by chance or by intent.
pub(super) type Hash = [u8; 32];

const MAGIC: &[u8] = b"hotstart passes 1\n";
const SUFFIX: &str = "passes";
/// New hashes that are written at once, before the end of the run.
const BATCH: usize = 8192;
/// Size above which the oldest segments go: 2 million hashes. llvm/test has about 60,000 FileChecks.
const SIZE_MAX: u64 = 64 << 20;

/// The passes that are known. The directory is read at the first question.
#[derive(Debug)]
pub(super) struct Passes {
    segments: Segments,
    known: OnceLock<RwLock<HashSet<Hash>>>,
    fresh: Mutex<Vec<Hash>>,
    /// Chooses the sample, differently in each run.
    seed: RandomState,
    sample: u64,
}

impl Passes {
    /// The passes below a directory. One in `sample` of the remembered ones is a run of FileCheck nevertheless.
    pub fn new(dir: PathBuf, sample: u64) -> Self {
        Passes {
            segments: segments(dir),
            known: OnceLock::new(),
            fresh: Mutex::default(),
            seed: RandomState::new(),
            sample,
        }
    }

    fn known(&self) -> &RwLock<HashSet<Hash>> {
        self.known.get_or_init(|| {
            let all = self.segments.all();
            let all = all.iter().filter_map(|segment| read(&self.segments, segment));
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

    /// Forgets everything, here and in later runs.
    pub fn clear(&self) {
        self.known().write().expect("no panic while locked").clear();
        self.fresh.lock().expect("no panic while locked").clear();
        self.segments.clear();
    }

    /// Writes a segment, and tidies the directory. If that fails, a later run finds less.
    fn write(&self, hashes: &[Hash]) {
        if hashes.is_empty() {
            return;
        }
        let present = self.segments.all();
        let replaced = if present.len() >= SEGMENTS_MAX { present } else { Vec::new() };
        let mut merged: HashSet<Hash> = hashes.iter().copied().collect();
        merged.extend(replaced.iter().filter_map(|one| read(&self.segments, one)).flatten().take(CAPACITY));
        self.segments.write(&merged.into_iter().flatten().collect::<Vec<u8>>(), &replaced);
    }
}

/// Hashes that fit into a segment of half the allowed size.
const CAPACITY: usize = (SIZE_MAX / 2) as usize / size_of::<Hash>();

impl Drop for Passes {
    fn drop(&mut self) {
        self.save();
    }
}

fn segments(dir: PathBuf) -> Segments {
    Segments { dir, suffix: SUFFIX, magic: MAGIC, size_max: SIZE_MAX }
}

/// Reads a segment. `None` if it is damaged.
fn read(segments: &Segments, segment: &Segment) -> Option<Vec<Hash>> {
    let content = segments.read(&segment.path)?;
    let hashes = content.chunks_exact(size_of::<Hash>());
    let is_whole = hashes.remainder().is_empty();
    is_whole.then(|| hashes.map(|hash| hash.try_into().expect("of that size")).collect())
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
    let segments = segments(dir.to_owned());
    segments.all().iter().fold(PassesReport::default(), |mut report, segment| {
        let hashes = read(&segments, segment);
        report.segments[usize::from(hashes.is_none())] += 1;
        report.hashes += hashes.map_or(0, |hashes| hashes.len());
        report.bytes += segment.size;
        report
    })
}

/// Removes damaged segments there.
pub fn remove_damaged_passes(dir: &Path) {
    segments(dir.to_owned()).remove_damaged();
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let segments = segments(dir.path().to_owned());
        let segment = segments.all().pop().unwrap();
        let path = segment.path.clone();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            for bytes in [&changed[..], &whole[..at]] {
                fs::write(&path, bytes).unwrap();
                assert_eq!(read(&segments, &segment), None, "at {at}");
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
        let segments = segments(dir.path().to_owned());
        let all = segments.all();
        let stored: HashSet<Hash> =
            all.iter().flat_map(|segment| read(&segments, segment).unwrap()).collect();
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
