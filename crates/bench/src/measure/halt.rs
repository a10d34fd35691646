//! Ends a run from outside: at a deadline, or at Ctrl-C.
//!
//! The watching thread is not woken when a run starts or ends, since that would disturb the measurement. It sleeps for as
//! long as the limit, then checks the current run, and sleeps until that run's deadline.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hotstart_launch::Group;

/// Shared by the session, the watching thread and the Ctrl-C handler.
#[derive(Clone, Debug, Default)]
pub struct Halt(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    interrupted: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Arc<Running>>,
    watched: bool,
    over: bool,
}

/// A run that may have to be ended.
#[derive(Debug, Default)]
pub(super) struct Running {
    pub group: Group,
    deadline: Option<Instant>,
    timed_out: AtomicBool,
}

impl Running {
    /// Returns whether its time was up.
    pub(super) fn timed_out(&self) -> bool {
        self.timed_out.load(Ordering::SeqCst)
    }
}

impl Halt {
    /// Creates a state in which nothing runs and nobody has interrupted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the current run and lets no further one begin.
    pub fn interrupt(&self) {
        self.0.interrupted.store(true, Ordering::SeqCst);
        if let Some(running) = &self.lock().current {
            running.group.kill();
        }
    }

    /// Returns whether [`Halt::interrupt`] was called.
    pub fn is_interrupted(&self) -> bool {
        self.0.interrupted.load(Ordering::SeqCst)
    }

    /// Registers a new run, which is ended after `limit` at the latest.
    pub(super) fn begin(&self, limit: Option<Duration>) -> Arc<Running> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        let running = Arc::new(Running { deadline, ..Running::default() });
        let mut state = self.lock();
        if let (Some(limit), false) = (limit, state.watched) {
            state.watched = true;
            let halt = self.clone();
            std::thread::spawn(move || halt.watch(limit));
        }
        state.current = Some(Arc::clone(&running));
        // An interrupt between two runs found no run to end.
        if self.is_interrupted() {
            running.group.kill();
        }
        running
    }

    /// Removes the current run, which has ended.
    pub(super) fn end(&self) {
        self.lock().current = None;
    }

    /// Ends the watching thread.
    pub(super) fn finish(&self) {
        self.lock().over = true;
        self.0.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no panic while locked")
    }

    fn watch(&self, limit: Duration) {
        let mut state = self.lock();
        while !state.over {
            let now = Instant::now();
            let left = match state.current.as_ref().and_then(|running| Some((running, running.deadline?))) {
                Some((running, deadline)) if deadline <= now => {
                    running.timed_out.store(true, Ordering::SeqCst);
                    running.group.kill();
                    limit
                }
                Some((_, deadline)) => deadline - now,
                None => limit,
            };
            state = self.0.changed.wait_timeout(state, left).expect("no panic while locked").0;
        }
        state.watched = false;
        state.over = false;
    }
}
