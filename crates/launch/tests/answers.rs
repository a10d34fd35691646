//! Answers that depend on what the process is or has run before: each is the same in every run, or makes the run doubtful. The questions
//! are those with which adversaries got wrong passes (`runtime/tests/answers.c`).

mod common;

use std::path::Path;

use common::{Victim, case, compile, resetting_launcher, start, warm_launcher};
use hotstart_launch::Launcher;
use hotstart_model::Status;

const ROUNDS: usize = 6;

fn tool() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("answers");
    compile(
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/answers.c")),
        &program,
        &["-pthread"],
    );
    Victim { dir, program }
}

/// Asks often in each way, and between two questions grows the break. Returns how many answers were doubtful. So many may differ.
fn doubtful(tool: &Victim, how: &str, differing: usize) -> usize {
    let cold = || start(&Launcher::new(), tool, &case(&[how])).0;
    let expected =
        (0..20).map(|_| cold()).find(|ran| ran.status == Status::Exited(3) && !ran.stdout.contains("late"));
    let expected = expected.unwrap_or_else(|| panic!("{how}, cold: {:?}", cold()));
    let (mut count, mut differ) = (0, Vec::new());
    for launcher in [warm_launcher(&["answers"]), resetting_launcher(&["answers"])] {
        for round in 0..ROUNDS {
            let (grown, _) = start(&launcher, tool, &case(&["grows"]));
            assert_eq!(grown.stdout, "1\n", "{how} in round {round}");
            let (ran, exit) = start(&launcher, tool, &case(&[how]));
            assert!(exit.via.is_warm(), "{how}: {:?}", exit.via);
            count += usize::from(exit.doubtful);
            if !exit.doubtful && ran != expected {
                differ.push((round, exit.via, ran));
            }
        }
    }
    assert!(differ.len() <= differing, "{how}: {differ:?}");
    count
}

/// A fresh process ends with its first thread, wherever the others are. On a busy machine main may be late, and the threads are not.
#[test]
fn no_thread_goes_on_behind_the_end_of_main() {
    let tool = tool();
    for how in ["writes", "exits", "reads nothing"] {
        assert!(doubtful(&tool, how, ROUNDS / 2) < 2 * ROUNDS, "{how}: it sleeps, which nobody notices");
    }
    doubtful(&tool, "goes on", 0);
}

#[test]
fn memory_of_the_runtimes_is_in_nobodys_way() {
    let tool = tool();
    for how in ["fixed", "hint", "reads", "guarded", "writes lists", "far"] {
        doubtful(&tool, how, 0);
    }
}

#[test]
fn time_and_numbers_are_those_of_the_run() {
    let tool = tool();
    for how in ["ticks", "limit", "names"] {
        doubtful(&tool, how, 0);
    }
    // What these hold changes all the time.
    for how in ["/proc/loadavg", "/proc/stat"] {
        let launcher = resetting_launcher(&["answers"]);
        for _ in 0..ROUNDS {
            let (_, exit) = start(&launcher, &tool, &case(&[how]));
            assert!(exit.doubtful, "{how}: {:?}", exit.via);
        }
    }
}

/// What lies below main's arrays is libc's frames, as in a fresh process. There is more behind them, up to the end of the stack.
#[test]
fn what_runs_over_a_buffer_finds_what_is_there_in_a_fresh_process() {
    let tool = tool();
    let launcher = resetting_launcher(&["answers"]);
    for how in
        ["runs over and executes", "runs over and leaves", "grows down", "runs far over", "reads far over"]
    {
        let (expected, _) = start(&Launcher::new(), &tool, &case(&[how]));
        for _ in 0..ROUNDS {
            start(&launcher, &tool, &case(&["grows"]));
            let (ran, exit) = start(&launcher, &tool, &case(&[how]));
            assert!(exit.doubtful || ran.status == expected.status, "{how}: {ran:?} {:?}", exit.via);
        }
    }
}

/// The first such run in a process that has run before is not believed. The number that others are told is the run's own in all later ones.
#[test]
fn who_is_told_the_number_is_told_that_of_the_run() {
    let tool = tool();
    for how in ["signals", "connects"] {
        let launcher = resetting_launcher(&["answers"]);
        start(&launcher, &tool, &case(&["grows"]));
        assert!(start(&launcher, &tool, &case(&[how])).1.doubtful, "{how}");
        for _ in 0..ROUNDS {
            start(&launcher, &tool, &case(&["grows"]));
            let (_, exit) = start(&launcher, &tool, &case(&[how]));
            assert!(!exit.doubtful && exit.via.is_warm(), "{how}: {:?}", exit.via);
        }
    }
}

/// A test may unmount or look for users of the directory in which it has run a tool.
#[test]
fn a_process_that_waits_is_in_no_directory_of_a_test() {
    let tool = tool();
    let launcher = resetting_launcher(&["answers"]);
    for _ in 0..ROUNDS {
        let (_, exit) = start(&launcher, &tool, &case(&["grows"]));
        assert!(exit.via.is_warm());
    }
    let place = tool.dir.path().canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let users: Vec<_> = processes
        .filter(|process| std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == place))
        .map(|process| process.path())
        .collect();
    assert!(users.is_empty(), "{users:?}");
}

/// The gate asks nobody about a call that the table has as plain.
#[test]
fn a_call_with_a_treatment_of_its_own_is_not_plain() {
    let table = include_str!("../runtime/gate/table.c");
    let calls = include_str!("../runtime/gate/calls.c");
    let (_, treat) = calls.split_once("static enum hs_call_outcome treat(").unwrap();
    let (treat, _) = treat.split_once("default: return unknown();").unwrap();
    let treated: Vec<_> = treat
        .split("case SYS_")
        .skip(1)
        .filter_map(|part| {
            part.split(|character: char| !character.is_alphanumeric() && character != '_').next()
        })
        .collect();
    assert!(treated.len() > 100, "{}", treated.len());
    for name in treated {
        assert!(table.contains(&format!("KNOWN({name}, ")), "{name}");
        assert!(!table.contains(&format!("PLAIN({name}, ")), "{name}");
    }
}
