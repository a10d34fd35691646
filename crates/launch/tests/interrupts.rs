//! Signals that come while a tool waits in a system call, and small stacks: a handler finds the thread in the gate, and the
//! gate needs some of the stack. Such a run is as a cold one, or doubtful.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{Case, Ran, Victim, case, compile, resetting_launcher, start, start_in, warm_launcher};
use hotstart_launch::{Exit, Group, Launcher, ProcessGroup};
use hotstart_model::Status;
use rustix::process::{Pid, Signal};

const ROUNDS: usize = 6;

fn tool() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("interrupts");
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/interrupts.c"));
    compile(source, &program, &["-pthread", "-Wl,-z,now"]);
    Victim { dir, program }
}

/// Runs the tool in each way. Returns the number of warm runs that are believed; they have to be as cold ones.
fn believed(how: &str) -> usize {
    let (tool, case) = (tool(), case(&[how]));
    let (expected, _) = start(&Launcher::new(), &tool, &case);
    assert_eq!(expected.status, Status::Exited(0), "{how}, cold");
    let mut believed = 0;
    for launcher in [warm_launcher(&["interrupts"]), resetting_launcher(&["interrupts"])] {
        for round in 0..ROUNDS {
            let (ran, exit) = start(&launcher, &tool, &case);
            assert!(exit.via.is_warm(), "{how}: {:?}", exit.via);
            if !exit.doubtful {
                assert_eq!(ran, expected, "{how} in round {round}, {:?}", exit.via);
                believed += 1;
            }
        }
    }
    believed
}

#[test]
fn a_handler_finds_a_waiting_thread_where_it_waits() {
    // Where the instruction behind the call was replaced as well, as in `read` of libc before 2.41, runs may be doubtful.
    assert!(["read", "cancel-read"].map(believed).iter().all(|&runs| runs <= 2 * ROUNDS));
    assert_eq!(believed("sleep"), 2 * ROUNDS);
}

#[test]
fn a_handler_that_comes_while_the_runtime_makes_the_call_makes_the_run_doubtful() {
    assert_eq!(["accept", "cancel-accept"].map(believed), [0, 0]);
}

#[test]
fn a_call_on_a_stack_that_may_be_too_small_makes_the_run_doubtful() {
    assert_eq!(["signal-stack", "coroutine"].map(believed), [0, 0]);
}

#[test]
fn a_tool_is_told_its_own_handlers() {
    assert_eq!(believed("chain"), 2 * ROUNDS);
}

/// A process that waits is found by whoever looks for programs, and changed without a trace in the tool.
#[test]
fn what_others_have_changed_of_a_waiting_process_is_seen_by_no_run() {
    let (tool, case) = (tool(), case(&["changed"]));
    let changes: [fn(Pid); 3] = [
        |pid| {
            let _ = rustix::process::setpriority_process(Some(pid), 7);
        },
        |pid| {
            let limit = rustix::process::Rlimit { current: Some(4096), maximum: Some(4096) };
            let _ = rustix::process::prlimit(Some(pid), rustix::process::Resource::Core, limit);
        },
        |pid| {
            let _ = std::fs::write(format!("/proc/{}/timerslack_ns", pid.as_raw_nonzero()), "12345");
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        for launcher in [warm_launcher(&["interrupts"]), resetting_launcher(&["interrupts"])] {
            for round in 0..ROUNDS {
                let (ran, exit) = start(&launcher, &tool, &case);
                // A process that was changed does not take the request, and the job is run again.
                let is_as_cold = exit.lost || ran.status == Status::Exited(0);
                assert!(is_as_cold, "{number} in round {round}: {ran:?} {:?}", exit.via);
                waiting(&tool).into_iter().for_each(change);
            }
        }
    }
}

/// Returns the processes that wait with this program.
fn waiting(tool: &Victim) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_tool =
        |pid: &i32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == tool.program);
    numbers.filter(has_tool).filter_map(Pid::from_raw).collect()
}

/// The gate takes the signal, whatever the tool blocks.
#[test]
fn a_signal_of_the_gates_number_from_outside_makes_the_run_doubtful() {
    let (tool, case) = (tool(), case(&["blocked"]));
    assert_eq!(start_with_signal(&Launcher::new(), &tool, &case).0.status, Status::Exited(0));
    for launcher in [warm_launcher(&["interrupts"]), resetting_launcher(&["interrupts"])] {
        for _ in 0..3 {
            let (ran, exit) = start_with_signal(&launcher, &tool, &case);
            assert!(exit.via.is_warm(), "{:?}", exit.via);
            assert!(exit.doubtful || ran.status == Status::Exited(0), "{ran:?}");
        }
    }
}

/// Sends SIGSYS to the tool when it is ready for that.
fn start_with_signal(launcher: &Launcher, tool: &Victim, case: &Case) -> (Ran, Exit) {
    let group = Group::new();
    let ProcessGroup::Join(leader) = group.process_group().unwrap() else { panic!("a group of its own") };
    let out = tool.dir.path().join("out");
    let _ = std::fs::remove_file(&out);
    std::thread::scope(|scope| {
        let send = || {
            let deadline = Instant::now() + Duration::from_secs(20);
            while std::fs::read(&out).unwrap_or_default() != b"ready" {
                assert!(Instant::now() < deadline, "the tool is not ready");
                std::thread::sleep(Duration::from_millis(1));
            }
            let leader = Pid::from_raw(leader).unwrap();
            rustix::process::kill_process_group(leader, Signal::SYS).unwrap();
        };
        let sender = scope.spawn(send);
        let ended = start_in(launcher, tool, case, &group);
        sender.join().unwrap();
        ended
    })
}
