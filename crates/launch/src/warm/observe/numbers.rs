//! The numbers of arguments for which constructors were observed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::Spec;
use crate::warm::refused::Size;

/// The numbers of one program under one key. The set grows while the program is in use.
#[derive(Debug, Default)]
pub(super) struct Numbers(Mutex<Sets>);

#[derive(Debug, Default)]
struct Sets {
    known: BTreeSet<usize>,
    /// Numbers that are being observed.
    claimed: BTreeSet<usize>,
}

/// Returns the number that constructors find. The kernel adds an empty name if there is none.
pub(crate) fn of(spec: &Spec<'_>) -> usize {
    spec.argv.len().max(1)
}

/// Returns the number that constructors find in the zygote that serves the start.
pub(crate) fn of_zygote(spec: &Spec<'_>) -> usize {
    Size::of(spec).arguments()
}

/// Returns both.
pub(crate) fn needed(spec: &Spec<'_>) -> [usize; 2] {
    [of(spec), of_zygote(spec)]
}

impl Numbers {
    pub(super) fn of(known: impl IntoIterator<Item = usize>) -> Arc<Self> {
        let known = known.into_iter().collect();
        Arc::new(Numbers(Mutex::new(Sets { known, claimed: BTreeSet::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Sets> {
        self.0.lock().expect("no panic while locked")
    }

    pub(super) fn has(&self, number: usize) -> bool {
        self.lock().known.contains(&number)
    }

    pub(super) fn insert(&self, number: usize) {
        self.lock().known.insert(number);
    }

    /// Returns the observed numbers.
    pub(super) fn observed(&self) -> Vec<usize> {
        self.lock().known.iter().copied().collect()
    }

    /// Claims the right to observe a number, until the claim is dropped. `None` if the number is known or claimed by another.
    pub(super) fn claim(&self, number: usize) -> Option<Claim<'_>> {
        let mut sets = self.lock();
        let is_mine = !sets.known.contains(&number) && sets.claimed.insert(number);
        is_mine.then(|| Claim { numbers: self, number })
    }
}

#[derive(Debug)]
pub(super) struct Claim<'n> {
    numbers: &'n Numbers,
    pub number: usize,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // If a panic drops this, a second panic would abort.
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
    }
}
