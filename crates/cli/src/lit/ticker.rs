//! Calls a view regularly during other work, so that it can show the time.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Does `work`, and meanwhile calls `tick` on another thread, about once per `every`.
pub(super) fn while_ticking<T>(every: Duration, tick: &(dyn Fn() + Sync), work: impl FnOnce() -> T) -> T {
    let (working, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // Best effort: without a thread, nothing is redrawn meanwhile.
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                tick();
            }
        });
        let result = work();
        // A panic drops it too, so the other thread never outlives the work.
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
