//! The user's interrupt. It reaches every worker and everything for which a worker waits.

use std::sync::{Arc, Mutex};

use crate::watch::Watch;

/// Set once, from any thread, to stop the run at once.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    triggered: bool,
    watches: Vec<Arc<Watch>>,
}

impl Interrupt {
    /// Creates an interrupt that has not happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the run: no further job starts, and every process started for one is killed.
    pub fn trigger(&self) {
        let mut state = self.state.lock().expect("no panic while locked");
        state.triggered = true;
        for watch in &state.watches {
            watch.kill_all();
        }
    }

    /// Returns whether the interrupt has come.
    pub fn is_triggered(&self) -> bool {
        self.state.lock().expect("no panic while locked").triggered
    }

    /// Lets the interrupt reach the processes of a run.
    pub(crate) fn reaches(&self, watch: &Arc<Watch>) {
        let mut state = self.state.lock().expect("no panic while locked");
        state.watches.push(Arc::clone(watch));
        if state.triggered {
            watch.kill_all();
        }
    }
}
