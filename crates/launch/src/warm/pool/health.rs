//! Decides whether a tool may run in persistent processes, by its runs so far.
//!
//! The first runs in persistent processes are audited, and a sample of the later ones. A difference is a fault of hotstart,
//! and after one the tool is only forked. A tool whose persistent processes retire often is forked for each run instead,
//! since that is then cheaper. A tool whose runs are often doubtful is cold for a while (`doubt.rs`).

use std::collections::BTreeMap;
use std::fmt;

use super::doubt::Doubted;
use super::foresight::Foresight;
use crate::warm::OnDoubt;
use crate::warm::worker::Doubts;

/// Runs whose audits must be clean before others go unaudited.
const FIRST_AUDITS: u32 = 3;
/// Number of retired processes from which their share of all runs decides, and the number that suffices if none was ever reset.
const RETIRED_MIN: u64 = 4;
const RETIRED_ALL: u64 = 2;
/// Forks before a tool whose processes have retired often gets another: twice as many each time, up to the second number.
const FORKS_FIRST: u32 = 16;
const FORKS_MOST: u32 = 1024;
/// The first number for children: a driver of compilers can be reset once all the tools that it starts are warm.
const FORKS_OF_STARTER: u32 = 4;
/// The largest share, as one in this many runs. Making a persistent process costs about as much as a few forks.
const RETIRED_ONE_IN: u64 = 8;

/// The reason for which a persistent process could not be used again (`enum hs_retirement`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Retirement {
    /// Threads were left.
    Threads,
    /// Child processes were left, or may have left something.
    Children,
    /// A timer was armed.
    Timers,
    /// Signals kept coming.
    Signals,
    /// A limit could not be raised again.
    Limits,
    /// Memory was mapped or protected in a way that cannot be undone.
    Mappings,
    /// The tool has looked at its process number.
    Number,
    /// The tool made a system call that is not known to be harmless. Its run is not believed.
    Calls,
    /// The process ended in a way that no reset follows: by a signal, or as another program.
    Ended,
}

const RETIREMENTS: [Retirement; 8] = [
    Retirement::Threads,
    Retirement::Children,
    Retirement::Timers,
    Retirement::Signals,
    Retirement::Limits,
    Retirement::Mappings,
    Retirement::Number,
    Retirement::Calls,
];

impl Retirement {
    fn first(bits: u32) -> Self {
        RETIREMENTS.get(bits.trailing_zeros() as usize).copied().unwrap_or(Retirement::Ended)
    }

    /// Returns whether it is among the reasons that these bits tell.
    pub(crate) fn is_in(self, bits: u32) -> bool {
        RETIREMENTS.iter().position(|why| *why == self).is_some_and(|bit| bits >> bit & 1 == 1)
    }
}

impl fmt::Display for Retirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Retirement::Threads => "it leaves threads",
            Retirement::Children => "it leaves child processes",
            Retirement::Timers => "it leaves timers",
            Retirement::Signals => "signals keep coming",
            Retirement::Limits => "its limits or its priority are changed for good",
            Retirement::Mappings => "it changes mappings that cannot be put back",
            Retirement::Number => "it looks at its process number",
            Retirement::Calls => "it makes system calls that are not known to be harmless",
            Retirement::Ended => "its process ends by a signal or as another program",
        })
    }
}

/// Names of the bits of `enum hs_difference`.
const DIFFERENCES: [&str; 14] = [
    "memory",
    "mappings",
    "descriptors",
    "signals",
    "limits",
    "name",
    "what main does before it looks at its request",
    "a fault there",
    "mappings, descriptors or signals there",
    "pointers there",
    "what the kernel or libc keeps there",
    "the size of the stack there",
    "memory there",
    "registers there",
];

/// Returns the findings of an audit in words.
fn differences(bits: u32) -> String {
    let names = DIFFERENCES.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name);
    names.collect::<Vec<_>>().join(", ")
}

/// The reason for which a tool no longer runs in persistent processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The tool cannot run in one, here.
    Impossible,
    /// Too many of its persistent processes retired; this is the most common cause.
    Retires(Retirement),
    /// An audit found that this was not reset: a fault of hotstart.
    Differs(String),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Impossible => f.write_str("it cannot be stopped or patched for that here"),
            Stopped::Retires(why) => why.fmt(f),
            Stopped::Differs(what) => write!(f, "an audit found that this was not restored: {what}"),
        }
    }
}

/// The record of one tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    clean_audits: u32,
    claimed: u64,
    pub retired: BTreeMap<Retirement, u64>,
    pub stopped: Option<Stopped>,
    /// Runs since the last trial, and how many of them retired and were reset.
    since: Since,
    /// Forks before the next trial of a tool that has stopped, and before the last one.
    forks_left: u32,
    forks_last: u32,
    is_trial: bool,
    pub doubted: Doubted,
    /// Whether the tool has become one that is doubtful in most runs, or is none any more, until somebody remembers it.
    pub news: Option<bool>,
    /// Which requests make it look at its process number.
    pub foresight: Foresight,
    /// Whether the tool is cold because one of its runs proves nothing and cannot be repeated.
    pub is_doubtful: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Since {
    runs: u64,
    retired: u64,
    reset: u64,
}

impl Health {
    /// Returns whether the next run may be in a persistent process. A tool whose processes have retired often tries again
    /// seldom: a driver's first runs may have children, and its later ones none.
    pub(crate) fn resets_next(&mut self) -> bool {
        match self.stopped {
            None => true,
            Some(Stopped::Retires(_)) if self.forks_left == 0 => {
                // Starts at the same time are no further trials.
                self.forks_left = self.forks_last;
                self.is_trial = true;
                true
            }
            Some(Stopped::Retires(_)) => {
                self.forks_left -= 1;
                false
            }
            Some(_) => false,
        }
    }

    /// Counts the next run, and returns whether it is audited. `one_in` is the sample's period, 0 for none.
    pub(crate) fn audits_next(&mut self, one_in: u64) -> bool {
        self.claimed += 1;
        self.clean_audits < FIRST_AUDITS || (one_in > 0 && self.claimed % one_in == 0)
    }

    /// Records a run that ended with a reset.
    pub(crate) fn was_reset(&mut self, audited: bool, differs: u32) {
        self.ran(false);
        if differs != 0 {
            self.stopped = Some(Stopped::Differs(differences(differs)));
            return;
        }
        self.clean_audits += u32::from(audited);
        if matches!(self.stopped, Some(Stopped::Retires(_))) {
            self.stopped = None;
            self.is_trial = false;
            self.since = Since::default();
        }
        self.since.runs += 1;
        self.since.reset += 1;
    }

    /// Records a run after which the persistent process retired.
    pub(crate) fn retired(&mut self, bits: u32, doubts: Doubts) {
        // Such a run is not believed, and each further one would be another to repeat.
        let is_at_once = doubts.of_past() && self.stopped.is_none();
        let why = Retirement::first(bits);
        *self.retired.entry(why).or_default() += 1;
        self.since.runs += 1;
        self.since.retired += 1;
        let Since { runs, retired, reset } = self.since;
        let least = if reset == 0 { RETIRED_ALL } else { RETIRED_MIN };
        let is_often = retired >= least && retired * RETIRED_ONE_IN > runs;
        let was_trial = std::mem::take(&mut self.is_trial);
        if was_trial || is_at_once || (is_often && self.stopped.is_none()) {
            let most = self.retired.iter().max_by_key(|(_, count)| **count);
            self.stopped = most.map(|(why, _)| Stopped::Retires(*why));
            let first = if why == Retirement::Children { FORKS_OF_STARTER } else { FORKS_FIRST };
            self.forks_last = (2 * self.forks_last).clamp(first, FORKS_MOST);
            self.forks_left = self.forks_last;
        }
    }

    fn ran(&mut self, is_doubtful: bool) {
        if let Some(news) = self.doubted.ran(is_doubtful) {
            self.news = Some(news);
        }
    }

    /// Records the doubts about a run, or that there are none.
    pub(crate) fn doubted(&mut self, doubts: Doubts, on_doubt: OnDoubt) {
        match on_doubt {
            OnDoubt::Repeat => self.ran(doubts.of_run()),
            OnDoubt::Stop => self.is_doubtful |= doubts.of_calls(),
            OnDoubt::Bear => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warm::wire;

    const NONE: Doubts = Doubts::NONE;

    #[test]
    fn first_runs_are_audited_and_then_a_sample() {
        let mut record = Health::default();
        for _ in 0..3 {
            assert!(record.audits_next(0));
            record.was_reset(true, 0);
        }
        assert!(!record.audits_next(0));
        let audited = (0..100).filter(|_| record.audits_next(10)).count();
        assert_eq!(audited, 10);
    }

    #[test]
    fn one_difference_stops_it() {
        let mut record = Health::default();
        record.was_reset(true, 0b101);
        let what = record.stopped.unwrap().to_string();
        assert_eq!(what, "an audit found that this was not restored: memory, descriptors");
    }

    #[test]
    fn retiring_often_stops_it_and_seldom_does_not() {
        let mut often = Health::default();
        (0..2).for_each(|_| often.retired(1, NONE));
        assert_eq!(often.stopped, Some(Stopped::Retires(Retirement::Threads)));
        let mut seldom = Health::default();
        for run in 0..1000 {
            if run % 20 == 0 { seldom.retired(0b10, NONE) } else { seldom.was_reset(false, 0) }
        }
        assert_eq!(seldom.stopped, None);
        assert_eq!(seldom.retired[&Retirement::Children], 50);
    }

    #[test]
    fn a_tool_that_has_stopped_tries_again_ever_less_often() {
        let mut record = Health::default();
        (0..2).for_each(|_| record.retired(0b100, NONE));
        let mut forks = |works: bool| {
            let forks = (0..5000).take_while(|_| !record.resets_next()).count();
            if works {
                record.was_reset(false, 0)
            } else {
                record.retired(0b100, NONE)
            }
            (forks, record.stopped.is_none())
        };
        assert_eq!([forks(false), forks(false), forks(true)], [(16, false), (32, false), (64, true)]);
        assert_eq!(forks(true), (0, true), "one that was reset is as before");
        (0..4).for_each(|_| record.retired(0b100, NONE));
        assert!(record.stopped.is_some() && record.forks_left == 128);
        record.was_reset(true, 1);
        assert!((0..5000).all(|_| !record.resets_next()), "no trial after a difference");
    }

    #[test]
    fn a_look_at_the_number_is_seen_among_other_reasons() {
        let both = 1 << 1 | 1 << 6;
        assert_eq!(Retirement::first(both), Retirement::Children);
        assert!(Retirement::Number.is_in(both));
        assert!(!Retirement::Number.is_in(1 << 1));
    }

    #[test]
    fn a_driver_tries_again_soon() {
        let mut record = Health::default();
        (0..2).for_each(|_| record.retired(0b10, NONE));
        let mut forks = || {
            let forks = (0..5000).take_while(|_| !record.resets_next()).count();
            record.retired(0b10, NONE);
            forks
        };
        assert_eq!([forks(), forks(), forks()], [4, 8, 16]);
    }

    #[test]
    fn a_tool_that_executes_others_is_forked_from_the_first_doubtful_run_on() {
        let (mut record, past) = (Health::default(), Doubts::new(wire::RUN_PAST));
        (0..20).for_each(|_| record.was_reset(false, 0));
        record.retired(0, past);
        record.doubted(past, OnDoubt::Repeat);
        assert_eq!(record.stopped, Some(Stopped::Retires(Retirement::Ended)));
        assert!(!record.doubted.rests());
        let forks = (0..5000).take_while(|_| !record.resets_next()).count();
        assert_eq!(forks, FORKS_FIRST as usize);
    }

    #[test]
    fn doubtful_runs_that_cannot_be_repeated_are_the_last_ones() {
        let [calls, children] = [wire::RUN_CALLS, wire::RUN_CHILDREN].map(Doubts::new);
        let stops = |doubts, on_doubt| {
            let mut health = Health::default();
            (0..2).for_each(|_| health.doubted(doubts, on_doubt));
            (health.is_doubtful, health.doubted.rests())
        };
        assert_eq!(
            [stops(calls, OnDoubt::Stop), stops(children, OnDoubt::Stop)],
            [(true, false), (false, false)]
        );
        assert_eq!([stops(calls, OnDoubt::Repeat), stops(children, OnDoubt::Repeat)], [(false, true); 2]);
        assert_eq!(stops(calls, OnDoubt::Bear), (false, false));
    }
}
