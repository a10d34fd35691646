//! Limits the descriptors that the runner and its children may have open.
//!
//! A runner with many workers needs more than the usual soft limit of 1024, so it raises its own to the hard limit. Its
//! children get the limit that the runner was started with: a tool may print it, or keep an array of that length. Under a low
//! hard limit scripts wait for descriptors. Each reserves all that it needs at once, so that none waits while it holds a
//! part.

use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most that a runner uses, whatever the hard limit is.
const MOST: u64 = 1 << 20;
/// Interval at which a waiter checks whether it still has to wait.
const LOOK: Duration = Duration::from_millis(100);

static OWN: OnceLock<Own> = OnceLock::new();

#[derive(Debug)]
struct Own {
    inherited: Rlimit,
    limit: u64,
    budget: Budget,
}

/// Raises this process's own limit. Call it before anything is started.
pub fn take_over() {
    OWN.get_or_init(|| {
        let inherited = getrlimit(Resource::Nofile);
        let soft = inherited.current.unwrap_or(MOST);
        let wanted = inherited.maximum.unwrap_or(MOST).min(MOST).max(soft);
        let raised = Rlimit { current: Some(wanted), maximum: inherited.maximum };
        let limit = if setrlimit(Resource::Nofile, raised).is_ok() { wanted } else { soft };
        Own { inherited, limit, budget: Budget::new(for_scripts(limit)) }
    });
}

/// Returns the soft and hard limit that this process was started with, if it has changed its own.
pub fn inherited() -> Option<(Option<u64>, Option<u64>)> {
    OWN.get().map(|own| (own.inherited.current, own.inherited.maximum))
}

/// Returns the most zygotes or persistent processes of one tool. Each holds a few descriptors.
pub(crate) fn fit(per_tool: usize) -> usize {
    let limit = OWN.get().map_or(MOST, |own| own.limit);
    per_tool.min(usize::try_from(limit / 256).unwrap_or(usize::MAX)).max(1)
}

/// Returns how many files may be held open to notice changes to them.
pub(crate) fn for_held() -> usize {
    /// As many as a few dozen tools of one build have.
    const ENOUGH: u64 = 512;
    let limit =
        OWN.get().map_or_else(|| getrlimit(Resource::Nofile).current.unwrap_or(MOST), |own| own.limit);
    (limit / 16).min(ENOUGH) as usize
}

/// Returns the share of scripts: three quarters, less the descriptors for files and directories that are read one at a time.
fn for_scripts(limit: u64) -> u64 {
    (limit - limit / 4).saturating_sub(limit.min(2048) / 8).max(1)
}

/// Waits until `count` descriptors may be opened, or `is_over`. Dropping the result returns them.
pub fn reserve(count: u64, is_over: impl Fn() -> bool) -> Reserved<'static> {
    match OWN.get() {
        Some(own) => own.budget.reserve(count, is_over),
        None => Reserved(None),
    }
}

/// A number of descriptors to share.
#[derive(Debug)]
struct Budget {
    size: u64,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug)]
struct State {
    free: u64,
    waiting: usize,
}

/// Descriptors that may be opened, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Reserved<'b>(Option<(&'b Budget, u64)>);

impl Budget {
    fn new(size: u64) -> Self {
        Budget { size, state: Mutex::new(State { free: size, waiting: 0 }), freed: Condvar::new() }
    }

    fn reserve(&self, count: u64, is_over: impl Fn() -> bool) -> Reserved<'_> {
        // A script that needs more than the whole budget runs alone.
        let count = count.min(self.size);
        let mut state = self.state.lock().expect("no panic while locked");
        while state.free < count {
            if is_over() {
                return Reserved(None);
            }
            state.waiting += 1;
            state = self.freed.wait_timeout(state, LOOK).expect("no panic while locked").0;
            state.waiting -= 1;
        }
        state.free -= count;
        Reserved(Some((self, count)))
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let Some((budget, count)) = self.0.take() else { return };
        let mut state = budget.state.lock().expect("no panic while locked");
        state.free += count;
        if state.waiting > 0 {
            budget.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn no_more_are_given_than_there_are() {
        let (budget, used, most) = (Budget::new(10), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for count in 1..8 {
                let (budget, used, most) = (&budget, &used, &most);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let _room = budget.reserve(count, || false);
                        let now = used.fetch_add(count, Ordering::SeqCst) + count;
                        most.fetch_max(now, Ordering::SeqCst);
                        used.fetch_sub(count, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 10);
        assert_eq!(budget.state.lock().unwrap().free, 10);
    }

    #[test]
    fn who_needs_more_than_all_gets_all_and_who_is_over_does_not_wait() {
        let budget = Budget::new(10);
        let all = budget.reserve(100, || false);
        assert!(budget.reserve(1, || true).0.is_none());
        drop(all);
        assert!(budget.reserve(10, || true).0.is_some());
    }

    #[test]
    fn low_limits_leave_something_for_all() {
        assert_eq!(for_scripts(1024), 640);
        assert!(for_scripts(20) > 0 && for_scripts(0) > 0);
        assert_eq!(for_scripts(1 << 20), 3 * (1 << 18) - 256);
    }
}
