//! How long a start waits for a process that others use, before another is made.
//!
//! If more starts go on at a time than there are processors, a process that waits for a processor is of no more use than a
//! start that waits for a process, and it costs what making it takes. So patience grows with the number of starts for each
//! processor. It ends early if nothing comes back meanwhile though processors are idle: then tools wait for something else.

use std::time::{Duration, Instant};

use crate::warm::policy::processors;

/// For a zygote that others use: about the time of two forks.
const ZYGOTE: Duration = Duration::from_millis(3);
/// For a persistent process that others use, or for a zygote to make one: less than it takes to make another zygote of a large
/// tool.
const WORKER: Duration = Duration::from_millis(15);
/// For a tool's first zygote. Making it takes as long as a cold start does until `main`: a start that waits loses little, and
/// one that does not would take the processor from it.
const FIRST: Duration = Duration::from_millis(60);

/// In a crowd, whoever asks first gets what comes back, so a start may have to wait for some turns.
const TURNS: u32 = 4;
/// How patience grows while nothing comes back: by one for so many starts for each processor, up to a limit.
const IDLE_EACH: u32 = 4;
const IDLE_MOST: u32 = 8;

/// What a start waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    Zygote,
    Worker,
    First,
}

/// The waiting of one start.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The key under which this start was counted.
    pub counted: Option<Vec<u8>>,
    pub for_zygote: Option<Patience>,
    pub for_worker: Option<Patience>,
}

/// How long to wait for one thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    until: Instant,
    /// How long if nothing comes back.
    idle: Duration,
    idle_until: Instant,
    /// How many processes had come back when something last did.
    seen: u64,
}

impl For {
    fn base(self) -> Duration {
        match self {
            For::Zygote => ZYGOTE,
            For::Worker => WORKER,
            For::First => FIRST,
        }
    }
}

impl Patience {
    /// From `now` on, with so many starts for each processor; so many processes have come back until now.
    pub(super) fn new(what: For, crowding: u32, came_back: u64, now: Instant) -> Self {
        let most = what.base() * if crowding > 1 { TURNS * crowding } else { 1 };
        // A tool's first zygote is the first that comes back. The others come back after their turns on a processor.
        let idle =
            if what == For::First { most } else { what.base() * (crowding / IDLE_EACH).clamp(1, IDLE_MOST) };
        Patience { until: now + most, idle, idle_until: now + idle, seen: came_back }
    }

    /// When to look again; `None` once the wait is over. All processors may be `busy`.
    pub(super) fn left(&mut self, came_back: u64, now: Instant, busy: fn() -> bool) -> Option<Instant> {
        if self.seen != came_back || (self.idle_until <= now && now < self.until && busy()) {
            self.seen = came_back;
            self.idle_until = now + self.idle;
        }
        let until = self.until.min(self.idle_until);
        (now < until).then_some(until)
    }
}

/// Whether more threads want to run than there are processors.
pub(super) fn processors_are_busy() -> bool {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    runnable(&text).is_some_and(|runnable| runnable > processors())
}

/// The fourth figure: those that run or could run, of all.
fn runnable(loadavg: &str) -> Option<usize> {
    loadavg.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: fn() -> bool = || false;
    const BUSY: fn() -> bool = || true;

    #[test]
    fn patience_lasts_while_something_comes_back_and_grows_with_the_crowd() {
        let begun = Instant::now();
        let after = |ms| begun + Duration::from_millis(ms);
        let mut alone = Patience::new(For::Worker, 1, 0, begun);
        assert_eq!(alone.left(0, after(14), IDLE), Some(after(15)));
        assert_eq!(alone.left(1, after(14), IDLE), Some(after(15)));
        assert_eq!(alone.left(2, after(15), BUSY), None);
        let mut crowded = Patience::new(For::Worker, 4, 0, begun);
        assert_eq!(crowded.left(1, after(14), IDLE), Some(after(29)));
        assert_eq!(crowded.left(1, after(29), IDLE), None, "nothing came back for so long");
        let mut first = Patience::new(For::First, 2, 0, begun);
        assert_eq!(first.left(0, after(100), IDLE), Some(after(480)), "it is being made");
    }

    #[test]
    fn nothing_need_come_back_while_processors_are_busy() {
        let begun = Instant::now();
        let after = |ms| begun + Duration::from_millis(ms);
        let mut crowded = Patience::new(For::Worker, 2, 0, begun);
        assert_eq!(crowded.left(0, after(60), BUSY), Some(after(75)));
        assert_eq!(crowded.left(0, after(110), BUSY), Some(after(120)));
        assert_eq!(crowded.left(0, after(120), BUSY), None, "not for ever");
    }

    #[test]
    fn the_kernels_count_of_runnable_threads_is_understood() {
        assert_eq!(runnable("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!(runnable(""), None);
    }
}
