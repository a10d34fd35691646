//! Ctrl-C, SIGTERM and SIGHUP while `hotstart lit` runs.
//!
//! Before the first test there is nothing to summarize, so the process ends as if it had not caught the signal. During the
//! run, Ctrl-C ends it early with a summary; a second Ctrl-C, or another signal, ends it at once.

use std::io;
use std::sync::{Arc, Mutex};

use hotstart_launch::signals::{self, Stop};
use hotstart_run::Interrupt;

/// A thread that waits for signals.
pub(super) struct Stopper {
    current: Arc<Mutex<Option<Interrupt>>>,
}

impl Stopper {
    /// Starts waiting. Fails if the thread cannot be started, since nothing would then handle the signals.
    pub(super) fn start() -> io::Result<Self> {
        let current: Arc<Mutex<Option<Interrupt>>> = Arc::default();
        let shared = Arc::clone(&current);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || attend(&shared))?;
        Ok(Stopper { current })
    }

    /// Announces a run that signals should stop.
    pub(super) fn running(&self) -> Interrupt {
        let interrupt = Interrupt::new();
        *self.current.lock().expect("no panic while locked") = Some(interrupt.clone());
        interrupt
    }
}

fn attend(current: &Mutex<Option<Interrupt>>) {
    loop {
        let stop = signals::wait_for_stop();
        let interrupt = current.lock().expect("no panic while locked").clone();
        let was_stopped = interrupt.as_ref().is_none_or(Interrupt::is_triggered);
        if let Some(interrupt) = &interrupt {
            interrupt.trigger();
        }
        if was_stopped || stop != Stop::Interrupt {
            signals::die_of(stop.signal());
        }
    }
}
