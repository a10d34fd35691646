//! What a system call leaves, and where it is made: a call that reaches the gate has to look as if the kernel alone had made it.
#![cfg(target_arch = "x86_64")]

mod common;

use std::path::Path;

use common::{Victim, case, compile, resetting_launcher, start, warm_launcher};
use hotstart_launch::Launcher;
use hotstart_model::Status;

const ROUNDS: usize = 5;

fn tool() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("ways");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime/tests/ways.c");
    // Where the loader binds a function at its first call, that leaves registers, too.
    compile(&source, &program, &["-pthread", "-Wl,-z,now"]);
    Victim { dir, program }
}

/// Runs `how` cold, then often in each way. Each believed run agrees; returns how many were doubtful.
fn agrees(how: &[&str]) -> usize {
    let tool = tool();
    let (expected, _) = start(&Launcher::new(), &tool, &case(how));
    assert_eq!(expected.status, Status::Exited(0), "{how:?}, cold: {expected:?}");
    let mut doubtful = 0;
    for launcher in [warm_launcher(&["ways"]), resetting_launcher(&["ways"])] {
        for round in 0..ROUNDS {
            let (ran, exit) = start(&launcher, &tool, &case(how));
            assert!(exit.via.is_warm(), "{how:?}: {:?}", exit.via);
            doubtful += usize::from(exit.doubtful);
            if !exit.doubtful {
                assert_eq!(ran, expected, "{how:?} in round {round}, {:?}", exit.via);
            }
        }
    }
    doubtful
}

#[test]
fn functions_of_libc_leave_where_they_made_a_call_and_the_flags() {
    assert_eq!(agrees(&["functions"]), 0);
}

#[test]
fn a_call_is_made_with_the_stack_pointer_that_it_came_with() {
    for how in ["signal-stack", "interrupted"] {
        agrees(&[how]);
    }
}

/// What the gate needs to go on is not where the tool may write.
#[test]
fn a_call_goes_on_whatever_is_written_below_the_stack() {
    for how in ["into", "threads"] {
        agrees(&[how]);
    }
}

#[test]
fn a_run_that_may_see_that_the_gate_has_grown_the_stack_is_doubtful() {
    for by in ["msync", "madvise", "futex"] {
        for place in ["below", "later", "above"] {
            let doubtful = agrees(&["grown", by, place]);
            assert!(!common::RESETS || doubtful == 2 * ROUNDS, "{by}, {place}: {doubtful}");
        }
    }
}

#[test]
fn a_run_that_sends_what_lies_below_the_stack_is_doubtful() {
    agrees(&["message"]);
}

#[test]
fn a_handler_begins_with_the_flags_of_what_it_interrupts() {
    assert_eq!(agrees(&["flags"]), 0);
}

#[test]
fn a_run_that_writes_over_the_gates_frames_is_doubtful() {
    agrees(&["answered"]);
}

#[test]
fn a_run_whose_signal_stack_has_no_room_for_the_gate_is_doubtful() {
    agrees(&["full"]);
}
