//! What a tool can see of the process that it runs in must be as in a fresh one: numbers that no other run has, nothing of the
//! runtime's behind its memory, and below its stack what the loader leaves there.

mod common;

use std::collections::HashSet;
use std::path::Path;

use common::{Victim, case, compile, resetting_launcher, start, warm_launcher};
use hotstart_launch::{Launcher, Via};
use hotstart_model::Status;

const ROUNDS: usize = 6;

fn tool() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("traces");
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/traces.c"));
    // A function that is bound when it is first called leaves traces of the loader on the stack.
    compile(source, &program, &["-Wno-uninitialized", "-Wno-maybe-uninitialized", "-Wl,-z,now"]);
    Victim { dir, program }
}

fn launchers() -> [Launcher; 2] {
    [warm_launcher(&["traces"]), resetting_launcher(&["traces"])]
}

#[test]
fn no_number_is_that_of_another_run() {
    let tool = tool();
    for how in ["peer", "handler", "pipe", "wait", "lock", "netlink"] {
        for launcher in launchers() {
            let mut seen = HashSet::new();
            for round in 0..ROUNDS {
                let (ran, exit) = start(&launcher, &tool, &case(&[how]));
                assert!(exit.via.is_warm(), "{how}: {:?}", exit.via);
                assert_eq!(ran.status, Status::Exited(0), "{how}");
                let number: i32 = ran.stdout.trim().parse().unwrap();
                assert!(number > 0 || exit.doubtful, "{how}: {number}");
                assert!(
                    seen.insert(number) || exit.doubtful,
                    "{how}: {number} in round {round}, {:?}",
                    exit.via
                );
            }
        }
    }
}

#[test]
fn each_run_has_random_bytes_of_its_own() {
    let tool = tool();
    let mut seen = HashSet::new();
    for launcher in launchers() {
        for round in 0..2 * ROUNDS {
            let (ran, exit) = start(&launcher, &tool, &case(&["random"]));
            assert!(exit.via.is_warm() && !exit.doubtful, "{:?}", exit.via);
            for half in [&ran.stdout[..16], &ran.stdout[16..]] {
                assert!(seen.insert(half.to_owned()), "{half} in round {round}, {:?}", exit.via);
            }
        }
    }
}

#[test]
fn a_number_that_is_older_than_the_run_is_not_believed() {
    let tool = tool();
    for how in ["thread", "handler"] {
        for launcher in launchers() {
            // The process grows old, and others take numbers.
            for _ in 0..4 {
                start(&launcher, &tool, &case(&["random"]));
                start(&Launcher::new(), &tool, &case(&["random"]));
            }
            let (ran, exit) = start(&launcher, &tool, &case(&[how]));
            assert!(ran.stdout.trim().parse::<i32>().unwrap() > 0, "{how}: {ran:?}");
            assert_eq!(exit.doubtful, exit.via == Via::Reset, "{how}: {ran:?}, {:?}", exit.via);
        }
    }
}

/// Each start takes CPU time before `main`, and a tool may look at that first.
#[test]
fn the_cpu_time_of_a_start_is_told() {
    let tool = tool();
    let time = |launcher: &Launcher, run: &[&str]| {
        let (ran, exit) = start(launcher, &tool, &case(run));
        assert!(!exit.doubtful, "{:?}", exit.via);
        ran.stdout.trim().parse::<u64>().unwrap()
    };
    for run in [&["clock"][..], &["clock", "thread"]] {
        let least = (0..10).map(|_| time(&Launcher::new(), run)).min().unwrap();
        for launcher in launchers() {
            for round in 0..ROUNDS {
                let told = time(&launcher, run);
                assert!(told >= least / 2, "{run:?} in round {round}: {told} ns, cold {least}");
            }
        }
    }
}

#[test]
fn memory_around_the_tools_own_is_as_in_a_fresh_process() {
    let tool = tool();
    for how in ["behind", "below", "around"] {
        // What the loader leaves below depends on where the kernel begins the stack within 64 bytes.
        let cold = || start(&Launcher::new(), &tool, &case(&[how])).0;
        let expected: Vec<_> =
            std::iter::repeat_with(cold).take(if how == "below" { 40 } else { 1 }).collect();
        assert_eq!(expected[0].status, Status::Exited(0), "{how}, cold");
        for launcher in launchers() {
            for round in 0..ROUNDS {
                let (ran, exit) = start(&launcher, &tool, &case(&[how]));
                assert!(exit.via.is_warm() && !exit.doubtful, "{how}: {:?}", exit.via);
                assert!(expected.contains(&ran), "{how} in round {round}, {:?}: {ran:?}", exit.via);
            }
        }
    }
}

/// Runs these one after the other, a few times, cold and warm.
fn compare(runs: &[&[&str]]) {
    compare_believed(runs, |_| false);
}

/// The same, where some runs may be doubtful: then only the others have to be as cold ones.
fn compare_believed(runs: &[&[&str]], may_be_doubtful: impl Fn(&[&str]) -> bool) {
    let tool = tool();
    let cold = Launcher::new();
    let expected: Vec<_> = runs.iter().map(|run| start(&cold, &tool, &case(run)).0).collect();
    for launcher in launchers() {
        for round in 0..ROUNDS {
            for (run, expected) in runs.iter().zip(&expected) {
                let (ran, exit) = start(&launcher, &tool, &case(run));
                assert!(exit.via.is_warm(), "{run:?}: {:?}", exit.via);
                assert!(!exit.doubtful || may_be_doubtful(run), "{run:?}: {:?}", exit.via);
                assert_eq!(ran, *expected, "{run:?} in round {round}, {:?}", exit.via);
            }
        }
    }
}

#[test]
fn a_deep_stack_is_not_left_to_the_next_run() {
    // It drops a page of the stack.
    compare_believed(&[&["deep"], &["under"], &["around"]], |run| run == ["under"]);
}

/// Functions that follow may read by mistake what they have not written.
#[test]
fn system_calls_leave_nothing_of_ours_on_the_stack() {
    compare(&[&["calls"]]);
}

/// The gate's own frames are there, if the call comes to it by a signal: such a run is not believed, but it ends as it should.
#[test]
fn a_run_may_drop_the_stack_below_its_own() {
    compare_believed(&[&["dropped"]], |_| true);
}

/// The kernel restores them from the signal's frame, so nothing may be written there.
#[test]
fn system_calls_keep_vector_registers() {
    compare(&[&["vectors"]]);
}

#[test]
fn interposed_functions_leave_what_libcs_own_leave() {
    compare(&[&["functions"]]);
}

/// A dry run ends by a fault, and so may a run before.
#[test]
#[cfg(target_arch = "x86_64")]
fn handlers_are_told_of_no_fault_that_is_not_their_own() {
    compare(&[&["fault"], &["fault", "own"], &["fault"]]);
}

#[test]
fn the_kernels_cells_are_new_in_each_run() {
    compare(&[&["cells", "write"], &["cells"]]);
}

/// In a fresh process this may be a crash: the stack ends some kilobytes above.
#[test]
fn a_run_that_overruns_a_buffer_beyond_its_arguments_is_not_believed() {
    let tool = tool();
    for launcher in launchers() {
        for round in 0..ROUNDS {
            let (_, exit) = start(&launcher, &tool, &case(&["over"]));
            assert!(!exit.via.is_warm() || exit.doubtful, "in round {round}, {:?}", exit.via);
        }
    }
}

/// The frames of libc lie there in each process.
#[test]
fn a_run_that_overruns_a_buffer_towards_its_arguments_is_as_in_a_fresh_process() {
    compare(&[&["cells"], &["over", "below"], &["cells"]]);
}

#[test]
fn advice_on_memory_that_is_not_saved_is_no_business_of_the_next_run() {
    for advice in ["0", "1", "2", "3", "4", "5", "6"] {
        compare_believed(&[&["advise", advice], &["constant"], &["constant"]], |run| run[0] == "advise");
    }
}

#[test]
fn arguments_are_where_the_kernel_lays_them() {
    compare(&[&["place"], &["place", "1"]]);
}

#[test]
fn behind_an_argument_lies_the_next_string() {
    compare(&[&["last", "12345 left left left"], &["last", "1"], &["last", "left"], &["last", ""]]);
}

#[test]
fn a_handler_before_the_arguments_are_read_is_told_no_stack_of_ours() {
    let tool = tool();
    let run: &[&str] = &["stack", "1", "2"];
    let (expected, _) = start(&Launcher::new(), &tool, &case(run));
    for launcher in launchers() {
        for round in 0..ROUNDS {
            let (ran, exit) = start(&launcher, &tool, &case(run));
            assert_eq!(ran.status, expected.status, "in round {round}, {:?}", exit.via);
            assert!(ran == expected || exit.doubtful, "{} in round {round}, {:?}", ran.stdout, exit.via);
        }
    }
}
