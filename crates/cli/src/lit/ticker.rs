//! Lets time pass for a view that shows it, while something else is at work.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Does `work`, and calls `tick` on another thread about this often until it is done.
pub(super) fn while_ticking<T>(every: Duration, tick: &(dyn Fn() + Sync), work: impl FnOnce() -> T) -> T {
    let (working, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // Without a thread, nothing is redrawn in between.
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                tick();
            }
        });
        let result = work();
        // Also dropped by a panic, so the other thread never outlives the work.
        drop(working);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn it_ticks_until_the_work_is_done() {
        let ticked = AtomicBool::new(false);
        let work = || {
            while !ticked.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            7
        };
        assert_eq!(
            while_ticking(Duration::from_millis(1), &|| ticked.store(true, Ordering::Relaxed), work),
            7
        );
    }
}
