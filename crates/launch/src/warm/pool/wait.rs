//! How long a start waits for a process that others use, before it makes another.
//!
//! If more starts go on at a time than there are processors, a process that waits for a processor is no better than a start
//! that waits for a process, and making the process costs extra. So patience grows with the number of starts for each
//! processor. A wait ends early if nothing comes back because tools wait for something other than a processor.

use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::sys::clock;
use crate::warm::policy::processors;
use crate::warm::wire;

/// Base wait for a zygote that others use: about the time of two forks.
const ZYGOTE: Duration = Duration::from_millis(3);
/// Base wait for a persistent process that others use, or for a zygote to make one: less than the time to make another zygote
/// of a large tool.
const WORKER: Duration = Duration::from_millis(15);

/// Longest wait for a process that learns, and how seldom to look at it. It takes some eight runs, and waits for a processor, too.
const LEARNED: Duration = Duration::from_millis(1500);
const LEARNED_LOOK: Duration = Duration::from_millis(30);
/// A process that has used so much CPU time, and has not learned, has long runs, of which a deferred snapshot saves little.
const LEARNING: Duration = Duration::from_millis(250);

/// Factor on the wait in a crowd, beside the number of starts for each processor.
const TURNS: u32 = 8;
/// How seldom a start checks whether to go on waiting: one more unit for each `LOOK_EACH` starts for each processor, up to
/// `LOOK_MOST`.
const LOOK_EACH: u32 = 2;
const LOOK_MOST: u32 = 8;

/// The target of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    Zygote,
    Worker,
    /// The first process that has learned, of which others are then cloned.
    Learned,
    /// A tool's first zygote, with the longest wait for it.
    First(Duration),
}

/// The state of one start's waits.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The key under which this start was counted.
    pub counted: Option<Vec<u8>>,
    /// Its ticket in the queue, once it has waited.
    pub ticket: Option<u64>,
    pub for_zygote: Option<Patience>,
    pub for_worker: Option<Patience>,
    pub for_learned: Option<Patience>,
}

/// The waiting starts of one tool, in the order in which they began to wait. Without the order, some starts would wait so
/// long that they made another process.
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
    /// Returns whether a start with this key may take an idle process now.
    pub(super) fn is_next(&self, key: &[u8], ticket: Option<u64>) -> bool {
        self.first(key).is_none_or(|first| Some(first.ticket) == ticket)
    }

    fn first(&self, key: &[u8]) -> Option<&Queued> {
        self.starts.iter().find(|queued| queued.key == key)
    }

    /// Queues this thread's start for a process with `key`, or keeps its place if it has a ticket.
    pub(super) fn join(&mut self, key: &[u8], ticket: &mut Option<u64>) {
        if let Some(queued) = self.starts.iter_mut().find(|queued| Some(queued.ticket) == *ticket) {
            queued.key = key.into();
            return;
        }
        self.next += 1;
        *ticket = Some(self.next);
        self.starts.push(Queued { ticket: self.next, key: key.into(), thread: std::thread::current() });
    }

    /// Removes a start from the queue.
    pub(super) fn leave(&mut self, ticket: Option<u64>) {
        self.starts.retain(|queued| Some(queued.ticket) != ticket);
    }

    /// Wakes the start that waits longest for something with `key`.
    pub(super) fn wake(&self, key: &[u8]) {
        self.first(key).into_iter().for_each(|queued| queued.thread.unpark());
    }

    /// Wakes all starts.
    pub(super) fn wake_all(&self) {
        self.starts.iter().for_each(|queued| queued.thread.unpark());
    }
}

/// The patience of a wait for one thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    until: Instant,
    /// Interval after which to check whether waiting is of use.
    look: Duration,
    look_at: Instant,
    /// Whether nothing was busy at the last check. A process may sleep only for a moment.
    was_calm: bool,
}

impl For {
    fn base(self) -> Duration {
        match self {
            For::Zygote => ZYGOTE,
            For::Worker => WORKER,
            For::First(patience) => patience,
            For::Learned => LEARNED,
        }
    }
}

impl Patience {
    /// Begins a wait at `now`, with `crowding` starts for each processor.
    pub(super) fn new(what: For, crowding: u32, now: Instant) -> Self {
        let is_longer = crowding > 1 && what != For::Learned;
        let most = what.base() * if is_longer { TURNS * crowding } else { 1 };
        let look = match what {
            // The zygote is being made.
            For::First(_) => most,
            For::Learned => LEARNED_LOOK,
            _ => what.base() * (crowding / LOOK_EACH).clamp(1, LOOK_MOST),
        };
        Patience { until: now + most, look, look_at: now + look, was_calm: false }
    }

    /// Returns when to check again; `None` once the wait is over. The wait goes on while its target is `busy`.
    pub(super) fn left(&mut self, now: Instant, busy: impl FnOnce() -> bool) -> Option<Instant> {
        if self.look_at <= now && now < self.until {
            let is_calm = !busy();
            if !(is_calm && self.was_calm) {
                self.look_at = now + if is_calm { self.look / 2 } else { self.look };
            }
            self.was_calm = is_calm;
        }
        let until = self.until.min(self.look_at);
        (now < until).then_some(until)
    }
}

/// Returns whether more threads can run than there are processors, and one of these processes is slowed down by that.
pub(super) fn are_busy(pids: &[i32]) -> bool {
    let file = |pid: &i32, name: &str| read(&format!("/proc/{pid}/{name}"));
    let is_busy = |pid: &i32| is_busy(&file(pid, "stat"), || file(pid, "syscall"));
    runnable(&read("/proc/loadavg")).is_some_and(|runnable| runnable > processors())
        && (pids.is_empty() || pids.iter().any(is_busy))
}

/// Returns whether one of these processes, of which none has learned yet, is about to.
pub(super) fn are_learning(pids: &[i32]) -> bool {
    let file = |pid: &i32, name: &str| read(&format!("/proc/{pid}/{name}"));
    let is_early = |pid: &i32| clock::of_process(*pid) < LEARNING;
    pids.is_empty()
        || pids.iter().any(|pid| is_early(pid) && is_busy(&file(pid, "stat"), || file(pid, "syscall")))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Returns whether the process is one that could run, that reads its standard input, which the stage before it has still to
/// write, or that already waits for its next request (the thread that records this could run). A process that sleeps for
/// another reason ends no sooner if nothing else runs.
fn is_busy(stat: &str, call: impl FnOnce() -> String) -> bool {
    // The state is the field after the name, which may contain spaces and parentheses.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    match state {
        Some('R' | 'D') => true,
        Some('S') => {
            let (call, requests) = (call(), format!("{:#x}", wire::CONTROL_FD));
            let is_input = call.starts_with(&format!("{} 0x0 ", libc::SYS_read));
            is_input || call.split(' ').nth(1) == Some(&requests)
        }
        _ => false,
    }
}

/// Returns the running and runnable threads, from the fourth figure.
fn runnable(loadavg: &str) -> Option<usize> {
    loadavg.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: fn() -> bool = || false;
    const BUSY: fn() -> bool = || true;

    #[test]
    fn patience_lasts_while_processes_are_busy_and_grows_with_the_crowd() {
        let begun = Instant::now();
        let after = |ms| begun + Duration::from_millis(ms);
        let mut alone = Patience::new(For::Worker, 1, begun);
        assert_eq!(alone.left(after(14), IDLE), Some(after(15)));
        assert_eq!(alone.left(after(15), BUSY), None, "not in a crowd");
        let mut crowded = Patience::new(For::Worker, 4, begun);
        assert_eq!(crowded.left(after(29), IDLE), Some(after(30)));
        assert_eq!(crowded.left(after(30), BUSY), Some(after(60)));
        assert_eq!(crowded.left(after(60), IDLE), Some(after(75)), "one look may deceive");
        assert_eq!(crowded.left(after(75), IDLE), None);
        assert_eq!(crowded.left(after(479), BUSY), Some(after(480)));
        assert_eq!(crowded.left(after(480), BUSY), None, "not for ever");
        let mut first = Patience::new(For::First(Duration::from_millis(60)), 2, begun);
        assert_eq!(first.left(after(100), IDLE), Some(after(960)), "it is being made");
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
    fn a_process_is_busy_that_could_run_or_waits_for_another_stage() {
        let input = || format!("{} 0x0 0x7f 0x1000\n", libc::SYS_read);
        assert!(is_busy("7 (a) S b) R 1 7", String::new));
        assert!(is_busy("7 (a) S 1 7", input));
        assert!(is_busy("7 (a) S 1 7", || format!("{} 0x3e 0x7f\n", libc::SYS_recvmsg)));
        assert!(!is_busy("7 (a) S 1 7", || format!("{} 0x3 0x7f\n", libc::SYS_read)));
        assert!(!is_busy("7 (a) Z 1 7", input) && !is_busy("", input));
    }

    #[test]
    fn the_kernels_count_of_runnable_threads_is_understood() {
        assert_eq!(runnable("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!(runnable(""), None);
    }
}
