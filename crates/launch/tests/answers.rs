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

/// Asks often in each way, and between two questions grows the break. Returns how many answers were doubtful.
fn doubtful(tool: &Victim, how: &str) -> usize {
    let (expected, _) = start(&Launcher::new(), tool, &case(&[how]));
    assert_eq!(expected.status, Status::Exited(3), "{how}, cold: {expected:?}");
    let mut count = 0;
    for launcher in [warm_launcher(&["answers"]), resetting_launcher(&["answers"])] {
        for round in 0..ROUNDS {
            let (grown, _) = start(&launcher, tool, &case(&["grows"]));
            assert_eq!(grown.stdout, "1\n", "{how} in round {round}");
            let (ran, exit) = start(&launcher, tool, &case(&[how]));
            assert!(exit.via.is_warm(), "{how}: {:?}", exit.via);
            assert!(exit.doubtful || ran == expected, "{how} in round {round}, {:?}: {ran:?}", exit.via);
            count += usize::from(exit.doubtful);
        }
    }
    count
}

/// A fresh process ends with its first thread, wherever the others are.
#[test]
fn no_thread_goes_on_behind_the_end_of_main() {
    let tool = tool();
    for how in ["writes", "exits", "reads nothing"] {
        // It sleeps, which nobody notices, unless main was late.
        assert!(doubtful(&tool, how) < 2 * ROUNDS, "{how}");
    }
    doubtful(&tool, "goes on");
}

#[test]
fn memory_of_the_runtimes_is_in_nobodys_way() {
    let tool = tool();
    for how in ["fixed", "hint", "reads", "guarded"] {
        doubtful(&tool, how);
    }
}

#[test]
fn time_and_numbers_are_those_of_the_run() {
    let tool = tool();
    for how in ["ticks", "limit"] {
        doubtful(&tool, how);
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
