//! Ctrl-C, SIGTERM and SIGHUP during a measurement: hours of it must not be lost because a terminal was closed.
//!
//! The first signal ends the current run; the report of the runs so far is written, and then this process dies of the
//! signal. A second signal ends everything at once.

use std::sync::{Arc, Mutex};

use hotstart_bench::measure::Halt;
use hotstart_launch::signals::{self, Stop};

/// A thread that waits for signals.
pub(crate) struct Stopper {
    first: Arc<Mutex<Option<Stop>>>,
}

impl Stopper {
    /// Starts waiting. The first signal interrupts `halt`. The error is for the user.
    pub(crate) fn start(halt: Halt) -> Result<Stopper, String> {
        let first: Arc<Mutex<Option<Stop>>> = Arc::default();
        let shared = Arc::clone(&first);
        let attend = move || {
            loop {
                let stop = signals::wait_for_stop();
                if shared.lock().expect("no panic while locked").replace(stop).is_some() {
                    signals::die_of(stop.signal());
                }
                halt.interrupt();
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(attend);
        thread
            .map_err(|error| format!("cannot start a thread: {error}; allow more processes (ulimit -u)"))?;
        Ok(Stopper { first })
    }

    /// Ends this process by the signal if there was one.
    pub(crate) fn die_if_stopped(&self) {
        let first = *self.first.lock().expect("no panic while locked");
        if let Some(stop) = first {
            signals::die_of(stop.signal());
        }
    }
}
