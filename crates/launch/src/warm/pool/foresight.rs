//! Foresees which requests make a tool look at its process number.
//!
//! A run that will look gets a number of its own. That costs a clone and the deferred snapshot, some 2 ms for clang. A run that looks
//! without one costs a cold run of its test, some 60 ms. Some tools look in each run; others only for some requests: clang where it builds
//! modules. Then an argument tells (`-fmodules`), or the name of a file that was seen before. The code knows no argument by name.
//!
//! A wrong guess costs time and no verdict: a run that looks at an old number is doubtful.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Where the share of all runs that look exceeds one in this many, all requests get a number.
const ALL_ONE_IN: u32 = 2;
/// The same where no argument tells, for the requests of which none does.
const UNFORESEEN_ONE_IN: u32 = 32;
/// An argument tells if the share of its runs exceeds one in this many, and is this many times that of all runs. An option that most
/// requests have says nothing about them.
const ARGUMENT_ONE_IN: u32 = 8;
const LIFT: u64 = 2;
/// Runs after which both counts are halved, so that old runs count for less.
const RECENT: u32 = 256;
/// Most arguments that are counted, and the runs of one that is kept when there are more.
const ARGUMENTS_MAX: usize = 4096;
const RUNS_KEPT: u32 = 8;

/// The arguments of a request, as hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments(Vec<u64>);

impl Arguments {
    pub(crate) fn of(argv: &[OsString]) -> Self {
        Arguments(argv.iter().map(|argument| hash(argument)).collect())
    }
}

/// What the runs of a tool tell about later ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Foresight {
    all: Share,
    unforeseen: Share,
    by_argument: HashMap<u64, Share, BuildHasherDefault<DefaultHasher>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    runs: u32,
    looked: u32,
}

impl Share {
    fn add(&mut self, looked: bool) {
        if self.runs == RECENT {
            self.runs /= 2;
            self.looked /= 2;
        }
        self.runs += 1;
        self.looked += u32::from(looked);
    }

    fn exceeds(self, one_in: u32) -> bool {
        self.looked * one_in > self.runs
    }

    fn is_times(self, factor: u64, other: Share) -> bool {
        u64::from(self.looked) * u64::from(other.runs)
            >= factor * u64::from(other.looked) * u64::from(self.runs)
    }
}

impl Foresight {
    /// Returns whether a run with these arguments is likely to look.
    pub(crate) fn expects(&self, argv: &[OsString]) -> bool {
        self.all.exceeds(ALL_ONE_IN)
            || self.unforeseen.exceeds(UNFORESEEN_ONE_IN)
            || (self.all.looked > 0 && argv.iter().any(|argument| self.tells(hash(argument))))
    }

    /// Records whether a run with these arguments has looked.
    pub(crate) fn ran(&mut self, arguments: &Arguments, looked: bool) {
        if !arguments.0.iter().any(|&argument| self.tells(argument)) {
            self.unforeseen.add(looked);
        }
        self.all.add(looked);
        if self.by_argument.len() + arguments.0.len() > ARGUMENTS_MAX {
            self.by_argument.retain(|_, share| share.runs >= RUNS_KEPT);
        }
        if self.by_argument.len() + arguments.0.len() > ARGUMENTS_MAX {
            self.by_argument.clear();
        }
        for &argument in &arguments.0 {
            self.by_argument.entry(argument).or_default().add(looked);
        }
    }

    fn tells(&self, argument: u64) -> bool {
        self.by_argument
            .get(&argument)
            .is_some_and(|share| share.exceeds(ARGUMENT_ONE_IN) && share.is_times(LIFT, self.all))
    }
}

fn hash(argument: &OsStr) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    fn ran(foresight: &mut Foresight, text: &str, looked: bool) {
        foresight.ran(&Arguments::of(&words(text)), looked);
    }

    #[test]
    fn a_tool_that_always_looks_is_foreseen_from_the_second_run_on() {
        let mut foresight = Foresight::default();
        assert!(!foresight.expects(&words("rustc a.rs")));
        ran(&mut foresight, "rustc a.rs", true);
        for file in ["b.rs", "c.rs"] {
            assert!(foresight.expects(&words(&format!("rustc {file}"))));
            ran(&mut foresight, &format!("rustc {file}"), true);
        }
    }

    #[test]
    fn an_argument_tells_which_runs_look() {
        let mut foresight = Foresight::default();
        let mut missed = 0;
        for run in 0..2000 {
            let looks = run % 5 == 0;
            let option = if looks { "-fmodules" } else { "-O2" };
            let request = format!("clang -cc1 {option} {run}.c");
            missed += u32::from(run >= 100 && foresight.expects(&words(&request)) != looks);
            ran(&mut foresight, &request, looks);
        }
        assert_eq!(missed, 0);
    }

    #[test]
    fn looks_for_no_reason_count_for_all_requests() {
        let mut foresight = Foresight::default();
        for run in 0..1000 {
            ran(&mut foresight, &format!("tool {run}"), run % 20 == 0);
        }
        assert!(foresight.expects(&words("tool new")), "one in 20");
        for run in 1000..3000 {
            ran(&mut foresight, &format!("tool {run}"), run % 200 == 0);
        }
        assert!(!foresight.expects(&words("tool new")), "one in 200");
    }

    #[test]
    fn the_same_file_again_looks_again() {
        let mut foresight = Foresight::default();
        (0..300).for_each(|run| ran(&mut foresight, &format!("tool {run}"), false));
        ran(&mut foresight, "tool odd.c", true);
        assert!(foresight.expects(&words("tool -O2 odd.c")));
        assert!(!foresight.expects(&words("tool -O2 even.c")));
    }
}
