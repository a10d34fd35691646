//! What the gate has to hide from a tool: the runner's descriptor by every call that takes one, what an executed program inherits from
//! the process, a register that a system call leaves. And from others, the name of a process that waits.

mod common;

use std::path::Path;

use common::{Victim, case, compile, processes_of, resetting_launcher, start, warm_launcher};
use hotstart_launch::Launcher;
use hotstart_model::Status;

const ROUNDS: usize = 5;

fn tool() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("gated");
    compile(
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/gated.c")),
        &program,
        &["-pthread"],
    );
    Victim { dir, program }
}

fn launchers() -> [Launcher; 2] {
    [warm_launcher(&["gated"]), resetting_launcher(&["gated"])]
}

/// Runs `how` cold, then often in each way. Each run agrees, even one that is doubtful.
fn agrees(how: &str) {
    let tool = tool();
    let (expected, _) = start(&Launcher::new(), &tool, &case(&[how]));
    assert_eq!(expected.status, Status::Exited(0), "{how}, cold: {expected:?}");
    for launcher in launchers() {
        for round in 0..ROUNDS {
            let (ran, exit) = start(&launcher, &tool, &case(&[how]));
            assert!(exit.via.is_warm(), "{how}: {:?}", exit.via);
            assert_eq!(ran, expected, "{how} in round {round}, {:?}", exit.via);
        }
    }
}

#[test]
fn the_runners_descriptor_is_closed_to_every_argument() {
    agrees("arguments");
}

#[test]
fn the_runners_descriptor_is_closed_in_lists_and_sets() {
    agrees("memory");
}

/// A filter takes the gate away, and a child that libc has not made never had one. Nothing hides the descriptor there.
#[test]
fn the_runners_descriptor_is_closed_where_there_is_no_gate() {
    for how in ["filtered", "filtered-among-threads", "cloned", "own", "many"] {
        agrees(how);
    }
}

/// The connection of the parent ends as well, so that no read waits for ever.
#[test]
fn a_child_that_shares_memory_takes_the_gate_away_for_both() {
    let tool = tool();
    for launcher in launchers() {
        for round in 0..ROUNDS {
            let (ran, exit) = start(&launcher, &tool, &case(&["filtered-by-child"]));
            assert!(exit.via.is_warm() && exit.doubtful, "round {round}, {:?}: {ran:?}", exit.via);
        }
    }
}

#[test]
fn a_system_call_leaves_where_it_was_made() {
    agrees("registers");
}

#[test]
fn the_runners_descriptor_has_no_name() {
    let tool = tool();
    let (expected, _) = start(&Launcher::new(), &tool, &case(&["name"]));
    for launcher in launchers() {
        for round in 0..ROUNDS {
            let (ran, exit) = start(&launcher, &tool, &case(&["name"]));
            assert!(exit.doubtful || ran == expected, "round {round}, {:?}", exit.via);
        }
    }
}

/// The gate does not see what the kernel does there, and says so.
#[test]
fn what_only_the_kernel_can_read_is_doubtful() {
    let tool = tool();
    for how in ["over-name", "unreadable"] {
        for launcher in launchers() {
            for round in 0..ROUNDS {
                let (_, exit) = start(&launcher, &tool, &case(&[how]));
                assert!(
                    exit.via.is_warm() && exit.doubtful == common::RESETS,
                    "{how} in round {round}: {:?}",
                    exit.via
                );
            }
        }
    }
}

/// A call that reaches the gate by a signal needs more of the stack than a cold one. If that is a fault, the run proves nothing.
#[test]
fn a_stack_without_room_for_the_gates_signal_is_doubtful() {
    let tool = tool();
    for how in [&["cramped"][..], &["cramped", "informed"]] {
        let (cold, _) = start(&Launcher::new(), &tool, &case(how));
        assert_eq!(cold.stdout, "had room\n");
        for launcher in launchers() {
            for round in 0..ROUNDS {
                let (ran, exit) = start(&launcher, &tool, &case(how));
                let is_as_cold = ran == cold && !common::RESETS;
                assert!(
                    exit.via.is_warm() && (exit.doubtful || is_as_cold),
                    "{how:?} in round {round}: {ran:?}"
                );
            }
        }
    }
}

#[test]
fn a_tool_can_step_through_itself() {
    let tool = tool();
    let (cold, _) = start(&Launcher::new(), &tool, &case(&["stepping"]));
    assert_eq!(cold.stdout, "read 0 \nstepped 1 \n");
    for launcher in launchers() {
        for round in 0..ROUNDS {
            let (ran, exit) = start(&launcher, &tool, &case(&["stepping"]));
            assert!(exit.via.is_warm() && (exit.doubtful || ran == cold), "round {round}: {ran:?}");
        }
    }
}

/// A fresh process binds a function at its first call, and faults if ld.so cannot write the slot.
#[test]
fn memory_from_before_main_that_is_taken_away_is_doubtful() {
    let tool = tool();
    for what in ["writable", "readable", "unmapped", "replaced"] {
        let (cold, _) = start(&Launcher::new(), &tool, &case(&["page", what]));
        for launcher in launchers() {
            for round in 0..ROUNDS {
                let (ran, exit) = start(&launcher, &tool, &case(&["page", what]));
                assert_eq!(ran, cold, "{what} in round {round}, {:?}", exit.via);
                assert!(
                    exit.via.is_warm() && exit.doubtful == common::RESETS,
                    "{what} in round {round}: {exit:?}"
                );
            }
        }
    }
}

#[test]
fn memory_from_before_main_that_is_changed_is_doubtful() {
    let tool = tool();
    for what in ["guarded", "dropped", "collapsed", "moved", "executable"] {
        for launcher in launchers() {
            for round in 0..ROUNDS {
                let (ran, exit) = start(&launcher, &tool, &case(&["change", what]));
                assert!(
                    exit.via.is_warm() && exit.doubtful == common::RESETS,
                    "{what} in round {round}: {exit:?} {ran:?}"
                );
            }
        }
    }
}

/// The runtime's own memory is in that range.
#[test]
fn a_wide_range_without_mappings_is_unmapped_as_in_a_fresh_process() {
    agrees("wide");
}

#[test]
fn arguments_are_read_as_the_kernel_reads_them() {
    let tool = tool();
    let (cold, _) = start(&Launcher::new(), &tool, &case(&["halves"]));
    for launcher in launchers() {
        for round in 0..ROUNDS {
            let (ran, exit) = start(&launcher, &tool, &case(&["halves"]));
            assert!(
                exit.via.is_warm() && (exit.doubtful || ran == cold),
                "round {round}: {ran:?}, not {cold:?}"
            );
        }
    }
}

/// What the run itself has mapped would lie there in a fresh process, too. Of other memory that is not known.
#[test]
fn a_place_that_is_refused_is_doubtful_unless_the_run_has_mapped_there() {
    let tool = tool();
    for what in ["own", "unmapped", "before"] {
        let (cold, _) = start(&Launcher::new(), &tool, &case(&["hint", what]));
        assert!(cold.stdout.starts_with("there 0 \nmapped 1 \nexclusive 0 \n"), "{cold:?}");
        for launcher in launchers() {
            for round in 0..ROUNDS {
                let (ran, exit) = start(&launcher, &tool, &case(&["hint", what]));
                assert_eq!(ran, cold, "{what} in round {round}, {:?}", exit.via);
                let is_doubtful = what == "before" && common::RESETS;
                assert!(
                    exit.via.is_warm() && exit.doubtful == is_doubtful,
                    "{what} in round {round}: {exit:?}"
                );
            }
        }
    }
}

/// A fresh process may have had another answer, or another state after it.
#[test]
fn mappings_that_a_fresh_process_may_have_otherwise_are_doubtful() {
    let tool = tool();
    for how in ["refused", "blocks", "gap"] {
        let (cold, _) = start(&Launcher::new(), &tool, &case(&[how]));
        assert_eq!(cold.status, Status::Exited(0), "{how}: {cold:?}");
        for launcher in launchers() {
            for round in 0..ROUNDS {
                let (ran, exit) = start(&launcher, &tool, &case(&[how]));
                assert!(
                    exit.via.is_warm() && (exit.doubtful || ran == cold),
                    "{how} in round {round}: {ran:?}, not {cold:?}"
                );
                assert!(exit.doubtful || how == "gap" || !common::RESETS, "{how} in round {round}: {exit:?}");
            }
        }
    }
}

/// A program that is executed has nothing of the runtime's, but the process's peak of memory. So it is not believed.
#[test]
fn an_executed_program_inherits_nothing_and_is_not_believed() {
    let tool = tool();
    for how in ["exec", "exec-later", "exec-in-handler"] {
        let (expected, _) = start(&Launcher::new(), &tool, &case(&[how]));
        assert!(expected.stdout.contains("death 0 "), "{how}, cold: {expected:?}");
        for launcher in launchers() {
            for round in 0..ROUNDS {
                let (ran, exit) = start(&launcher, &tool, &case(&[how]));
                let (via, is_doubtful) = (exit.via, exit.doubtful);
                assert!(
                    via.is_warm() && is_doubtful == common::RESETS,
                    "{how} in round {round}: {via:?}, {is_doubtful}"
                );
                assert!(
                    how == "exec-in-handler" || ran == expected,
                    "{how} in round {round}, {via:?}: {ran:?}"
                );
            }
        }
    }
}

/// As pgrep would look for the tool after it has ended.
#[test]
fn a_process_that_waits_has_neither_the_tools_name_nor_its_command_line() {
    let tool = tool();
    for launcher in launchers() {
        for round in 0..ROUNDS {
            let (_, exit) = start(&launcher, &tool, &case(&["nothing", "gated-argument"]));
            assert!(exit.via.is_warm());
            for pid in processes_of(&tool.program) {
                for file in ["comm", "cmdline", "environ"] {
                    let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                    let text = String::from_utf8_lossy(&bytes);
                    let shows = ["gated", "victim", "nothing"].iter().any(|word| text.contains(word));
                    assert!(!shows, "{file} in round {round}, {:?}: {text:?}", exit.via);
                }
            }
        }
    }
}

/// A compiler that builds a module in a thread asks which files its descriptors are. That tells nothing of the process; `/proc/self` does.
#[test]
fn links_of_descriptors_are_read_in_threads_without_a_doubt() {
    agrees("links");
    let tool = tool();
    let launcher = resetting_launcher(&["gated"]);
    let is_doubtful = |args: &[&str]| start(&launcher, &tool, &case(args)).1.doubtful;
    assert!((0..ROUNDS).all(|_| !is_doubtful(&["links"])));
    for shows in ["/proc/self", "/proc/thread-self", "/proc/self/fd/62", "/proc/self/ns/pid"] {
        assert!(is_doubtful(&["links", shows]), "{shows}");
    }
}
