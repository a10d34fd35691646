//! A tool that looks at its process number runs in persistent processes all the same: each run has a number of its own
//! (`runtime/reset/number.c`), and what libc and the kernel know of it agrees.

mod common;

use std::collections::HashSet;
use std::path::Path;

use common::{Case, Victim, case, compile, resetting_launcher, start, warm_launcher};
use hotstart_launch::{Launcher, ToolStatistics};
use hotstart_model::Status;

const RUNS: usize = 24;

fn tool() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("numbers");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/numbers.c");
    compile(Path::new(source), &program, &["-pthread"]);
    Victim { dir, program }
}

/// Runs it often, and returns the number that it has printed each time. What else it prints must be right.
fn numbers(launcher: &Launcher, tool: &Victim, runs: usize, case: impl Fn(usize) -> Case) -> Vec<i32> {
    let one = |round| {
        let (ran, exit) = start(launcher, tool, &case(round));
        assert!(ran.status == Status::Exited(0) && ran.stderr.is_empty(), "{ran:?}, {:?}", exit.via);
        assert!(!ran.stdout.contains("WRONG"), "round {round}, {:?}: {}", exit.via, ran.stdout);
        assert!(!exit.doubtful, "round {round}, {:?}: {}", exit.via, ran.stdout);
        let first = ran.stdout.lines().next().and_then(|line| line.strip_prefix("number "));
        first.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{ran:?}"))
    };
    (0..runs).map(one).collect()
}

fn are_all_different(numbers: &[i32]) -> bool {
    numbers.iter().collect::<HashSet<_>>().len() == numbers.len()
}

fn statistics(launcher: &Launcher) -> ToolStatistics {
    launcher.statistics().tools.remove(0)
}

#[test]
fn each_run_has_a_number_of_its_own_and_all_agree_on_it() {
    let tool = tool();
    let shown = [
        "keeps",
        "asks",
        "inode",
        #[cfg(target_arch = "x86_64")]
        "raises",
    ];
    for how in shown {
        let warm = resetting_launcher(&["numbers"]);
        let found = numbers(&warm, &tool, RUNS, |_| case(&[how]));
        assert!(are_all_different(&found), "{how}: {found:?}");
        let after = statistics(&warm);
        assert_eq!((after.forks, after.resets), (1, RUNS as u64 - 1), "{how}: {after:?}");
        assert!(after.retired.is_empty() && after.only_forked.is_none(), "{how}: {after:?}");
    }
}

/// A child knows its parent, so such a run is doubtful in any persistent process; it has to be right all the same.
#[test]
fn what_libc_and_the_kernel_know_of_the_number_is_that_of_the_run() {
    let tool = tool();
    let cold = start(&Launcher::new(), &tool, &case(&["answers"])).0;
    assert!(!cold.stdout.contains("WRONG"), "{}", cold.stdout);
    for launcher in [warm_launcher(&["numbers"]), resetting_launcher(&["numbers"])] {
        let mut found = Vec::new();
        for round in 0..RUNS {
            let (ran, exit) = start(&launcher, &tool, &case(&["answers"]));
            assert!(exit.via.is_warm(), "{:?}", exit.via);
            let (number, rest) = ran.stdout.split_once('\n').unwrap();
            assert_eq!(rest, cold.stdout.split_once('\n').unwrap().1, "round {round}, {:?}", exit.via);
            found.push(number.strip_prefix("number ").unwrap().parse().unwrap());
        }
        assert!(are_all_different(&found), "{found:?}");
    }
}

/// The first run that looks at the number finds that of runs before, and is not believed. From then on all are.
#[test]
fn a_number_that_is_older_than_the_run_is_doubtful_once() {
    let tool = tool();
    let warm = resetting_launcher(&["numbers"]);
    numbers(&warm, &tool, 6, |_| case(&["sometimes"]));
    let (_, exit) = start(&warm, &tool, &case(&["sometimes", "now"]));
    assert!(exit.doubtful, "{:?}", exit.via);
    let found = numbers(&warm, &tool, RUNS, |_| case(&["sometimes", "now"]));
    assert!(are_all_different(&found), "{found:?}");
    // Whether they look or not.
    let mixed = numbers(&warm, &tool, RUNS, |round| case(&["sometimes", "now"][..1 + round % 2]));
    let seen: Vec<i32> = mixed.into_iter().filter(|number| *number != 0).collect();
    assert!(are_all_different(&seen), "{seen:?}");
}

/// Rust's compiler makes a thread for signals, and may end before that has begun.
#[test]
fn a_thread_that_has_not_begun_is_no_reason_for_doubt() {
    let tool = tool();
    let warm = resetting_launcher(&["numbers"]);
    let found = numbers(&warm, &tool, 4 * RUNS, |_| case(&["begins"]));
    assert!(are_all_different(&found), "{found:?}");
    assert!(statistics(&warm).resets > 3 * RUNS as u64, "{:?}", statistics(&warm));
}
