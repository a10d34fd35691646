//! For which numbers of arguments constructors were observed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::Spec;

/// The numbers of one program under one key. They become more while it is in use.
#[derive(Debug, Default)]
pub(super) struct Numbers(Mutex<Sets>);

#[derive(Debug, Default)]
struct Sets {
    /// For tests of what does not observe.
    all: bool,
    known: BTreeSet<usize>,
    /// Those that are being observed.
    claimed: BTreeSet<usize>,
}

/// The number that constructors find: the kernel adds an empty name where there is none.
pub(super) fn of(spec: &Spec<'_>) -> usize {
    spec.argv.len().max(1)
}

impl Numbers {
    pub(super) fn of(known: impl IntoIterator<Item = usize>) -> Arc<Self> {
        let known = known.into_iter().collect();
        Arc::new(Numbers(Mutex::new(Sets { known, ..Sets::default() })))
    }

    /// As if each number had been observed.
    #[cfg(test)]
    pub(super) fn all() -> Arc<Self> {
        Arc::new(Numbers(Mutex::new(Sets { all: true, ..Sets::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Sets> {
        self.0.lock().expect("no panic while locked")
    }

    pub(super) fn has(&self, number: usize) -> bool {
        self.lock().has(number)
    }

    pub(super) fn insert(&self, number: usize) {
        self.lock().known.insert(number);
    }

    /// Those that were observed.
    pub(super) fn observed(&self) -> Vec<usize> {
        self.lock().known.iter().copied().collect()
    }

    /// The right to observe a number, until it is dropped; `None` if it is known, or another has the right.
    pub(super) fn claim(&self, number: usize) -> Option<Claim<'_>> {
        let mut sets = self.lock();
        let is_mine = !sets.has(number) && sets.claimed.insert(number);
        is_mine.then(|| Claim { numbers: self, number })
    }
}

impl Sets {
    fn has(&self, number: usize) -> bool {
        self.all || self.known.contains(&number)
    }
}

#[derive(Debug)]
pub(super) struct Claim<'n> {
    numbers: &'n Numbers,
    pub number: usize,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Not a second panic if this is dropped by one.
        let mut sets = self.numbers.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        sets.claimed.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_observes_a_number() {
        let numbers = Numbers::of([3]);
        assert!(numbers.claim(3).is_none());
        let claim = numbers.claim(4).unwrap();
        assert!(numbers.claim(4).is_none() && numbers.claim(5).is_some() && !numbers.has(4));
        drop(claim);
        assert!(numbers.claim(4).is_some());
        numbers.insert(4);
        assert!(numbers.claim(4).is_none() && numbers.has(4));
        assert_eq!(numbers.observed(), [3, 4]);
        assert!(Numbers::all().has(1000) && Numbers::all().claim(2).is_none());
    }
}
