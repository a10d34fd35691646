//! Stems: persistent processes that have learned their deferred snapshots, run nothing any more, and make clones of themselves.
//!
//! A process learns for itself only while its tool has no stem. One of the first to have learned makes a clone that becomes the stem. From
//! then on each further process is a clone of the stem, and so knows what that knows; one that has learned less is replaced when it is used
//! next. A stem has one key, and none of the tool's places, since it serves no start.
//!
//! What a process has learned may contain its number, for example in a lock that is held. So a clone begins its first run at `main`, and
//! checks that it comes to the same state (`runtime/deferred/point.c`).
//! If one does not come to that state, its tool has no clones any more. If requests have come to have another environment than those from
//! which the stem has learned, the stem ends, and the clone that finds this learns anew.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::memory::Share;
use super::{Unit, Worker};
use crate::warm::request::Failure;
use crate::warm::wire::Knowledge;

/// Runs without a deferred snapshot after which a tool is not expected to get one: it takes six if all have as many arguments.
const FUTILE_MAX: u32 = 16;
/// In place of that count: processes with this key have their number in what they know, so there are no clones of them.
const REFUSED: u32 = u32::MAX;
/// Most keys for which runs are counted.
const KEYS_MAX: usize = 1024;

/// One stem.
#[derive(Debug)]
pub(crate) struct Stem<W> {
    key: Arc<[u8]>,
    knows: Knowledge,
    last_use: AtomicU64,
    /// It makes one clone at a time.
    unit: Mutex<Unit<W>>,
}

/// The stems of a tool, one for each key.
#[derive(Debug)]
pub(super) struct Stems<W> {
    all: Vec<Arc<Stem<W>>>,
    /// By key, runs after which a process had learned nothing, while there was no stem.
    futile: HashMap<Arc<[u8]>, u32>,
}

impl<W> Default for Stems<W> {
    fn default() -> Self {
        Stems { all: Vec::new(), futile: HashMap::new() }
    }
}

/// Returns the numbers of arguments of which a process can know by its mask (`hs_end::learned`), as a bit.
pub(super) fn bit_of(arguments: usize) -> u64 {
    u32::try_from(arguments).ok().and_then(|shift| 1u64.checked_shl(shift)).unwrap_or(0)
}

impl<W: Worker> Stem<W> {
    /// Has `source`, which waits, make a clone that becomes its stem. Until one of them runs, the two share all memory.
    pub(super) fn of(source: &mut Unit<W>, share: Share) -> Result<Stem<W>, Failure> {
        let process = source.process.clone_process()?;
        let unit = Unit { own: Some(share), ..Unit::clone_of(process, source) };
        let (key, knows) = (Arc::clone(&source.key), source.knows);
        Ok(Stem { key, knows, last_use: AtomicU64::new(source.last_use), unit: Mutex::new(unit) })
    }

    /// Makes a clone; `None` if it can serve no more.
    pub(super) fn make(&self, starts: u32, now: u64) -> Option<Unit<W>> {
        let mut unit = self.unit.lock().unwrap_or_else(PoisonError::into_inner);
        if !unit.process.is_current() || unit.process.is_worn(starts) {
            return None;
        }
        let process = unit.process.clone_process().ok()?;
        self.last_use.fetch_max(now, Ordering::Relaxed);
        unit.touch(now);
        Some(Unit::clone_of(process, &unit))
    }
}

impl<W> Stem<W> {
    /// Returns whether it could have begun a run later than `unit`.
    pub(super) fn knows_more(&self, unit: &Unit<W>, bit: u64) -> bool {
        self.knows.learned & bit != 0 && unit.knows.learned & bit == 0
    }
}

impl<W> Stems<W> {
    pub(super) fn of(&self, key: &[u8]) -> Option<&Arc<Stem<W>>> {
        self.all.iter().find(|stem| *stem.key == *key)
    }

    /// Returns whether a process that knows this would be a better stem, or the first.
    pub(super) fn want(&self, key: &[u8], knows: Knowledge) -> bool {
        knows.learned.count_ones() > self.of(key).map_or(0, |stem| stem.knows.learned.count_ones())
            && !self.are_refused(key)
    }

    fn are_refused(&self, key: &[u8]) -> bool {
        self.futile.get(key) == Some(&REFUSED)
    }

    /// Adds a stem in the place of the one with its key, or of the oldest if there are `most`.
    pub(super) fn put(&mut self, stem: Stem<W>, most: usize) {
        self.all.retain(|other| other.key != stem.key);
        if self.all.len() >= most {
            self.drop_oldest();
        }
        self.all.push(Arc::new(stem));
    }

    /// Records a run with this key, and what its process knows now.
    pub(super) fn ran(&mut self, key: &Arc<[u8]>, knows: Knowledge) {
        if self.futile.len() >= KEYS_MAX {
            self.futile.clear();
        }
        if knows.is_unlike {
            self.all.retain(|stem| stem.key != *key);
            self.futile.insert(Arc::clone(key), REFUSED);
        } else if knows.is_outdated {
            self.all.retain(|stem| stem.key != *key);
        } else if knows.learned == 0 && self.of(key).is_none() {
            let runs = self.futile.entry(Arc::clone(key)).or_default();
            *runs = runs.saturating_add(1);
        }
    }

    /// Returns whether a process with this key is expected to learn soon, and to become the first stem.
    pub(super) fn are_hoped_for(&self, key: &[u8]) -> bool {
        self.of(key).is_none() && self.futile.get(key).is_none_or(|runs| *runs < FUTILE_MAX)
    }

    pub(super) fn remove(&mut self, stem: &Arc<Stem<W>>) {
        self.all.retain(|other| !Arc::ptr_eq(other, stem));
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// Returns the last use of the one that was unused for longest.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.all.iter().map(|stem| stem.last_use.load(Ordering::Relaxed)).min()
    }

    /// Ends that one. Returns whether there was one.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let oldest = self.oldest();
        let at = self.all.iter().position(|stem| Some(stem.last_use.load(Ordering::Relaxed)) == oldest);
        at.map(|at| self.all.swap_remove(at)).is_some()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
