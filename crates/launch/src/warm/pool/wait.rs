//! How long a start waits for a process that others use, before another is made.
//!
//! If more starts go on at a time than there are processors, a process that waits for a processor is of no more use than a
//! start that waits for a process, and it costs what making it takes. So patience grows with the number of starts for each
//! processor. It ends early if nothing comes back meanwhile though processors are idle: then tools wait for something else.

use std::thread::Thread;
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

/// In a crowd, how many times as long a start waits as its share of the processors explains.
const TURNS: u32 = 8;
/// How patience grows while nothing comes back: by one for so many starts for each processor, up to a limit.
const IDLE_EACH: u32 = 2;
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
    /// Its place in the queue, once it has waited.
    pub ticket: Option<u64>,
    pub for_zygote: Option<Patience>,
    pub for_worker: Option<Patience>,
}

/// The starts of one tool that wait, in the order in which they began to. If whoever asks first got what comes back, some starts
/// would wait so long that they had another process made.
#[derive(Debug, Default)]
pub(super) struct Queue {
    next: u64,
    starts: Vec<Queued>,
}

#[derive(Debug)]
struct Queued {
    ticket: u64,
    key: Vec<u8>,
    thread: Thread,
}

impl Queue {
    /// Whether a start with this key may have what is idle now.
    pub(super) fn is_next(&self, key: &[u8], ticket: Option<u64>) -> bool {
        self.first(key).is_none_or(|first| Some(first.ticket) == ticket)
    }

    fn first(&self, key: &[u8]) -> Option<&Queued> {
        self.starts.iter().find(|queued| queued.key == key)
    }

    /// This thread's start waits for something with `key`, and did so before with its ticket.
    pub(super) fn join(&mut self, key: &[u8], ticket: &mut Option<u64>) {
        if let Some(queued) = self.starts.iter_mut().find(|queued| Some(queued.ticket) == *ticket) {
            queued.key = key.into();
            return;
        }
        self.next += 1;
        *ticket = Some(self.next);
        self.starts.push(Queued { ticket: self.next, key: key.into(), thread: std::thread::current() });
    }

    /// It waits no more.
    pub(super) fn leave(&mut self, ticket: Option<u64>) {
        self.starts.retain(|queued| Some(queued.ticket) != ticket);
    }

    /// Wakes the start that waits longest for something with `key`.
    pub(super) fn wake(&self, key: &[u8]) {
        self.first(key).into_iter().for_each(|queued| queued.thread.unpark());
    }

    /// Wakes all.
    pub(super) fn wake_all(&self) {
        self.starts.iter().for_each(|queued| queued.thread.unpark());
    }
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
        assert_eq!(crowded.left(1, after(14), IDLE), Some(after(44)));
        assert_eq!(crowded.left(1, after(44), IDLE), None, "nothing came back for so long");
        let mut first = Patience::new(For::First, 2, 0, begun);
        assert_eq!(first.left(0, after(100), IDLE), Some(after(960)), "it is being made");
    }

    #[test]
    fn what_comes_back_is_for_the_one_that_waits_longest() {
        let (mut queue, [mut first, mut second, mut other]) = (Queue::default(), [None; 3]);
        assert!(queue.is_next(b"a", None));
        queue.join(b"a", &mut first);
        queue.join(b"a", &mut second);
        queue.join(b"b", &mut other);
        queue.join(b"a", &mut first);
        let is_next = |queue: &Queue| [first, second, other, None].map(|ticket| queue.is_next(b"a", ticket));
        assert_eq!(is_next(&queue), [true, false, false, false]);
        assert!(queue.is_next(b"b", other) && queue.is_next(b"c", None));
        queue.leave(first);
        assert_eq!(is_next(&queue), [false, true, false, false]);
    }

    #[test]
    fn nothing_need_come_back_while_processors_are_busy() {
        let begun = Instant::now();
        let after = |ms| begun + Duration::from_millis(ms);
        let mut crowded = Patience::new(For::Worker, 2, 0, begun);
        assert_eq!(crowded.left(0, after(60), BUSY), Some(after(75)));
        assert_eq!(crowded.left(0, after(230), BUSY), Some(after(240)));
        assert_eq!(crowded.left(0, after(240), BUSY), None, "not for ever");
    }

    #[test]
    fn the_kernels_count_of_runnable_threads_is_understood() {
        assert_eq!(runnable("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!(runnable(""), None);
    }
}
