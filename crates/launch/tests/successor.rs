//! A run that has seen its process number is followed by runs in other processes, which have the same memory and a number of their own.

mod common;

use std::collections::HashSet;
use std::path::Path;

use common::{Victim, case, compile, resetting_launcher, start};
use hotstart_launch::{Launcher, ToolStatistics};
use hotstart_model::Status;

const ROUNDS: usize = 12;

fn tool() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("successor");
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/successor.c"));
    compile(source, &program, &["-pthread"]);
    Victim { dir, program }
}

/// Runs the tool in each of these ways, again and again; calls `check` with what it has printed.
fn run(ways: &[&str], mut check: impl FnMut(&str, String)) -> ToolStatistics {
    let (tool, launcher) = (tool(), resetting_launcher(&["successor"]));
    for _ in 0..ROUNDS {
        for how in ways {
            let (ran, exit) = start(&launcher, &tool, &case(&[how]));
            assert!(exit.via.is_warm() && !exit.doubtful, "{how}: {:?}", exit.via);
            assert_eq!(ran.status, Status::Exited(0), "{how}");
            check(how, ran.stdout);
        }
    }
    launcher.statistics().tools.remove(0)
}

#[test]
fn each_run_has_a_number_of_its_own_in_one_persistent_process() {
    let mut seen = HashSet::new();
    let tool = run(&["process", "thread", "nothing"], |how, printed| {
        assert!(how == "nothing" || seen.insert(printed.clone()), "{how}: {printed} again");
    });
    assert_eq!((tool.forks, tool.resets), (1, 3 * ROUNDS as u64 - 1), "{tool:?}");
    assert!(tool.retired.is_empty() && tool.only_forked.is_none(), "{tool:?}");
}

#[test]
fn a_successor_is_as_a_fresh_process() {
    let (expected, _) = start(&Launcher::new(), &tool(), &case(&["kernel"]));
    assert_eq!(expected.status, Status::Exited(0));
    let tool = run(&["kernel", "nothing"], |how, printed| {
        assert!(how == "nothing" || printed == expected.stdout, "{printed} and not {}", expected.stdout);
    });
    assert_eq!((tool.forks, tool.resets), (1, 2 * ROUNDS as u64 - 1), "{tool:?}");
}
