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
    for how in ["fixed", "hint", "reads", "guarded"] {
        doubtful(&tool, how, 0);
    }
}

#[test]
fn time_and_numbers_are_those_of_the_run() {
    let tool = tool();
    for how in ["ticks", "limit"] {
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
