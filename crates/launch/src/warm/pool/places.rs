//! The places of one tool's processes of one kind: zygotes, or persistent processes.
//!
//! A place is claimed before its process is made, and stays taken until that process is gone, so the number of places bounds
//! the number of processes. [`Places::set`] is the only code that changes the state of a place. A process in use, or one
//! being made, has a [`super::permit::Permit`] for its place. An idle process lies in its place, and has no permit.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Unit;

/// Identifies a place of one tool for ever: numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(u64);

impl Id {
    /// The number of no place.
    pub(crate) const NONE: Id = Id(0);
}

/// The reason for giving up a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// No process was made, or it ended.
    #[default]
    Gone,
    /// Its memory layout was used as often as allowed.
    Worn,
    /// A file that it was made of has changed, or a run of it is doubted.
    Outdated,
    /// All processes together own more than allowed.
    Memory,
    /// A process of another key needed the place.
    Room,
    /// A clone of a process that has learned more takes its place.
    Outdone,
    /// The tool is now cold, or only forked, or its keys have changed.
    Unfit,
}

/// The state of a place.
#[derive(Debug)]
enum State<P> {
    /// Claimed for a process that is being made.
    Building,
    /// Its process is idle here.
    Idle(Unit<P>),
    /// The holder of the permit has its process.
    InUse,
    /// Given up. Such a place is removed at once.
    Retired(Why),
}

/// A place with its state.
#[derive(Debug)]
struct Place<P> {
    id: Id,
    /// The key of its process, or of the start for which that is made.
    key: Arc<[u8]>,
    /// The number of its process; 0 before it is made.
    pid: i32,
    state: State<P>,
}

/// All places of one kind.
#[derive(Debug)]
pub(crate) struct Places<P> {
    next: u64,
    places: Vec<Place<P>>,
    retired: BTreeMap<Why, u64>,
}

impl<P> Default for Places<P> {
    fn default() -> Self {
        Places { next: 0, places: Vec::new(), retired: BTreeMap::new() }
    }
}

impl<P> Places<P> {
    /// Changes the state of a place, as the only code that does. Returns the process that was in it, to be dropped when
    /// nothing is locked.
    fn set(&mut self, id: Id, to: State<P>) -> Option<Unit<P>> {
        let at =
            self.places.iter().position(|place| place.id == id).expect("a place lives as long as its permit");
        let is_legal = match (&self.places[at].state, &to) {
            (State::Building | State::InUse, State::Idle(_) | State::InUse | State::Retired(_)) => true,
            (State::Idle(_), State::InUse | State::Retired(_)) => true,
            (State::Idle(_), State::Idle(_)) | (_, State::Building) | (State::Retired(_), _) => false,
        };
        assert!(is_legal, "{id:?} cannot change so");
        let retired = if let State::Retired(why) = to { Some(why) } else { None };
        let before = std::mem::replace(&mut self.places[at].state, to);
        if let Some(why) = retired {
            self.places.swap_remove(at);
            *self.retired.entry(why).or_default() += 1;
        }
        if let State::Idle(unit) = before { Some(unit) } else { None }
    }

    /// Claims a place for a process with this key. The caller has checked that there is room.
    pub(crate) fn claim(&mut self, key: Arc<[u8]>) -> Id {
        self.next += 1;
        let id = Id(self.next);
        self.places.push(Place { id, key, pid: 0, state: State::Building });
        id
    }

    /// Records that the claimed process exists, and is in use.
    pub(crate) fn made(&mut self, id: Id, key: &Arc<[u8]>, pid: i32) {
        if let Some(place) = self.places.iter_mut().find(|place| place.id == id) {
            place.key = Arc::clone(key);
            place.pid = pid;
        }
        self.set(id, State::InUse);
    }

    /// Records the number that the process in use has now.
    pub(crate) fn renumbered(&mut self, id: Id, pid: i32) {
        if let Some(place) = self.places.iter_mut().find(|place| place.id == id) {
            place.pid = pid;
        }
    }

    /// Puts a process back into its place.
    pub(crate) fn park(&mut self, id: Id, unit: Unit<P>) {
        self.set(id, State::Idle(unit));
    }

    /// Takes the idle process out of a place.
    pub(crate) fn take(&mut self, id: Id) -> Option<Unit<P>> {
        self.set(id, State::InUse)
    }

    /// Gives up a place, and returns the process that is idle in it.
    pub(crate) fn retire(&mut self, id: Id, why: Why) -> Option<Unit<P>> {
        self.set(id, State::Retired(why))
    }

    /// Gives up all places with idle processes.
    pub(crate) fn retire_idle(&mut self, why: Why) -> Vec<Unit<P>> {
        let ids: Vec<Id> = self.idle().map(|(id, _)| id).collect();
        ids.into_iter().filter_map(|id| self.retire(id, why)).collect()
    }

    /// Returns the idle processes with their places, in the order in which the places were claimed.
    pub(crate) fn idle(&self) -> impl DoubleEndedIterator<Item = (Id, &Unit<P>)> {
        self.places.iter().filter_map(|place| match &place.state {
            State::Idle(unit) => Some((place.id, unit)),
            _ => None,
        })
    }

    /// Returns the place of the idle process that was unused for longest, and its last use.
    pub(crate) fn oldest(&self) -> Option<(Id, u64)> {
        self.idle().map(|(id, unit)| (id, unit.last_use())).min_by_key(|(_, last_use)| *last_use)
    }

    /// Returns the number of taken places.
    pub(crate) fn live(&self) -> usize {
        self.places.len()
    }

    /// Returns the number of places that are taken for this key.
    pub(crate) fn live_of(&self, key: &[u8]) -> usize {
        self.places.iter().filter(|place| *place.key == *key).count()
    }

    /// Returns whether a process with this key is in use, or being made.
    pub(crate) fn is_in_use(&self, key: &[u8]) -> bool {
        self.places.iter().any(|place| !matches!(place.state, State::Idle(_)) && *place.key == *key)
    }

    /// Returns the numbers of the processes with this key that are in use.
    pub(crate) fn pids_in_use(&self, key: &[u8]) -> Vec<i32> {
        let of_key = self.places.iter().filter(|place| *place.key == *key && place.pid > 0);
        of_key.filter(|place| matches!(place.state, State::InUse)).map(|place| place.pid).collect()
    }

    /// Returns whether a process is being made for this key.
    pub(crate) fn is_being_made(&self, key: &[u8]) -> bool {
        self.places.iter().any(|place| matches!(place.state, State::Building) && *place.key == *key)
    }

    /// Returns how many places were given up for this reason.
    pub(crate) fn retired(&self, why: Why) -> u64 {
        self.retired.get(&why).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warm::observe::Observed;
    use crate::warm::pool::memory::{Base, Budget};

    fn unit(name: u32, key: &[u8]) -> Unit<u32> {
        Unit::zygote(name, key.into(), Arc::new(Observed::nothing()), Base::new(Budget::default().take(0)))
    }

    #[test]
    fn a_place_is_taken_from_its_claim_to_its_end() {
        let mut places = Places::default();
        let key: Arc<[u8]> = (*b"key").into();
        let id = places.claim(Arc::clone(&key));
        assert_eq!((places.live(), places.idle().count(), places.is_in_use(b"key")), (1, 0, true));
        places.made(id, &key, 1);
        places.park(id, unit(7, b"key"));
        assert_eq!((places.live(), places.idle().count(), places.is_in_use(b"key")), (1, 1, false));
        assert_eq!(places.take(id).unwrap().process, 7);
        assert!(places.retire(id, Why::Worn).is_none());
        assert_eq!((places.live(), places.retired(Why::Worn)), (0, 1));
    }

    #[test]
    fn what_is_idle_is_given_back_with_its_place() {
        let mut places = Places::default();
        let ids: Vec<Id> = (0..3).map(|_| places.claim((*b"").into())).collect();
        places.park(ids[0], unit(0, b""));
        places.park(ids[2], unit(2, b""));
        let units = places.retire_idle(Why::Unfit);
        assert_eq!(units.iter().map(|unit| unit.process).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(places.live(), 1);
    }

    #[test]
    #[should_panic(expected = "cannot change so")]
    fn nothing_is_parked_twice() {
        let mut places = Places::default();
        let id = places.claim((*b"").into());
        places.park(id, unit(0, b""));
        places.park(id, unit(1, b""));
    }
}
