//! Repeats runs for which the system lacked descriptors, processes or memory.
//!
//! Such a run proves nothing about the test. It waits until another has ended, and is then repeated from a clean start, one
//! at a time. It is given up only if it fails so while no other is running.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Interval at which a waiter checks whether the whole run was ended.
const LOOK: Duration = Duration::from_millis(100);

/// The runs in progress.
#[derive(Debug, Default)]
pub(crate) struct Room {
    state: Mutex<State>,
    left: Condvar,
    /// Held by a worker that repeats a run.
    again: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    inside: usize,
    ended: u64,
}

/// A run in progress, until it is dropped.
pub(crate) struct Inside<'r>(&'r Room);

impl Room {
    pub(crate) fn enter(&self) -> Inside<'_> {
        self.state.lock().expect("no panic while locked").inside += 1;
        Inside(self)
    }

    /// Returns the right to repeat a run, which one worker has at a time.
    pub(crate) fn again(&self) -> MutexGuard<'_, ()> {
        self.again.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits until a run ends, or `is_over`. Returns `false` if no run is in progress.
    pub(crate) fn await_end(&self, is_over: impl Fn() -> bool) -> bool {
        let mut state = self.state.lock().expect("no panic while locked");
        let before = state.ended;
        while state.inside > 0 && state.ended == before && !is_over() {
            state = self.left.wait_timeout(state, LOOK).expect("no panic while locked").0;
        }
        state.ended != before || state.inside > 0
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().expect("no panic while locked");
        state.inside -= 1;
        state.ended += 1;
        self.0.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_waits_for_another_and_for_nobody_if_there_is_none() {
        let room = Room::default();
        assert!(!room.await_end(|| false));
        let other = room.enter();
        assert!(room.await_end(|| true), "somebody is inside");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| room.await_end(|| false));
            drop(other);
            // Whichever comes first, the wait ends.
            let _ = waiting.join().unwrap();
        });
    }
}
