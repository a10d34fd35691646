//! Process groups, for each way of starting: no tool leads one, all tools of a job are in one, and signals to it reach no
//! other process.

mod common;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use common::{AGAIN, RESETS, Victim, compile, plain_spec, resetting_launcher, warm_launcher};
use hotstart_launch::{Child, Exit, Group, Launcher, ProcessGroup, Via};
use hotstart_model::Status;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, getpgid, getpgrp};

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

fn tool() -> Victim {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().canonicalize().unwrap().join("groups");
    compile(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/tests/groups.c")), &program, &[]);
    Victim { dir, program }
}

/// Calls `test` with a launcher of each kind.
fn in_each_way(test: impl Fn(&Launcher, &Victim)) {
    let tool = tool();
    test(&Launcher::new(), &tool);
    test(&warm_launcher(&["groups"]), &tool);
    test(&resetting_launcher(&["groups"]), &tool);
}

fn begin<'g>(launcher: &'g Launcher, tool: &Victim, args: &[&str], group: &'g Group) -> (Child<'g>, Ends) {
    let (input, feed) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let (output, written) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let argv = [&["groups"], args].concat();
    let stdio = [input.as_fd(), written.as_fd(), written.as_fd()];
    let mut spec = plain_spec(&tool.program, &argv, tool.dir.path(), stdio);
    spec.process_group = group.process_group().unwrap();
    let child = launcher.start(&spec, group).unwrap();
    (child, Ends { output: output.into(), feed })
}

/// The other ends of a tool's input and output.
struct Ends {
    output: File,
    feed: OwnedFd,
}

fn run(launcher: &Launcher, tool: &Victim, args: &[&str], group: &Group) -> Exit {
    let (child, ends) = begin(launcher, tool, args, group);
    drop(ends.feed);
    child.wait()
}

/// Starts a tool that runs until its input ends.
fn waiting<'g>(launcher: &'g Launcher, tool: &Victim, group: &'g Group) -> (Child<'g>, OwnedFd) {
    let (child, mut ends) = begin(launcher, tool, &["wait"], group);
    ends.output.read_exact(&mut [0]).unwrap();
    (child, ends.feed)
}

fn is_in(pid: i32, group: &Group) -> bool {
    let pid = Pid::from_raw(pid).unwrap();
    let Ok(ProcessGroup::Join(wanted)) = group.process_group() else { panic!("a group to join") };
    getpgid(Some(pid)).unwrap().as_raw_nonzero().get() == wanted
}

#[test]
fn no_tool_leads_a_process_group() {
    in_each_way(|launcher, tool| {
        for args in [["leads"], ["leads"], ["session"], ["leads"], ["raw-session"], ["group"], ["leads"]] {
            let exit = run(launcher, tool, &args, &Group::new());
            assert_eq!(exit.status, Status::Exited(0), "{args:?} {:?}", exit.via);
        }
    });
}

#[test]
fn a_worker_whose_tool_has_made_a_session_is_not_used_again() {
    let (launcher, tool) = (resetting_launcher(&["groups"]), tool());
    let run = |arg| run(&launcher, &tool, &[arg], &Group::new()).via;
    assert_eq!([run("nothing"), run("raw-session"), run("nothing")], [Via::Fork, AGAIN, Via::Fork]);
}

#[test]
fn a_signal_to_the_group_reaches_the_job_and_nobody_else() {
    in_each_way(|launcher, tool| {
        let (other, job) = (Group::new(), Group::new());
        let (others, feed) = waiting(launcher, tool, &other);
        let (stage, _open) = waiting(launcher, tool, &job);
        let killer = run(launcher, tool, &["kill"], &job);
        assert_eq!(killer.status, Status::Signaled(SIGTERM));
        assert_eq!(stage.wait().status, Status::Signaled(SIGTERM));
        drop(feed);
        assert_eq!(others.wait().status, Status::Exited(0), "of another job");
    });
}

/// A signal reaches every started process, even before its `main`. A run in a persistent process is then lost, and its test
/// runs again.
#[test]
fn a_signal_to_the_group_reaches_what_was_started_right_before() {
    in_each_way(|launcher, tool| {
        for _ in 0..30 {
            let job = Group::new();
            let (stage, _ends) = begin(launcher, tool, &["wait"], &job);
            assert_eq!(run(launcher, tool, &["kill"], &job).status, Status::Signaled(SIGTERM));
            assert_eq!(stage.wait().status, Status::Signaled(SIGTERM));
        }
    });
}

/// The runner's actions after a start do not undo the tool's first actions.
#[test]
fn a_group_that_a_tool_makes_is_kept() {
    in_each_way(|launcher, tool| {
        for _ in 0..30 {
            assert_eq!(run(launcher, tool, &["group"], &Group::new()).status, Status::Exited(0));
        }
    });
}

#[test]
fn an_idle_worker_is_in_no_jobs_group() {
    if !RESETS {
        return;
    }
    let (launcher, tool) = (resetting_launcher(&["groups"]), tool());
    let job = Group::new();
    // Each of the job's two layouts has a process of its own.
    for way in [Via::Fork, Via::Fork, Via::Reset] {
        let (child, feed) = waiting(&launcher, &tool, &job);
        let pid = child.pid();
        assert!(is_in(pid, &job));
        drop(feed);
        let exit = child.wait();
        assert_eq!((exit.status, exit.via), (Status::Exited(0), way));
        assert!(!is_in(pid, &job));
        assert_ne!(getpgid(Pid::from_raw(pid)).unwrap(), getpgrp(), "nor in the runner's");
    }
}

#[test]
fn a_group_outlives_sigkill_to_all_of_it() {
    in_each_way(|launcher, tool| {
        let job = Group::new();
        let (stage, _open) = waiting(launcher, tool, &job);
        let killer = run(launcher, tool, &["kill", "9"], &job);
        assert_eq!(killer.status, Status::Signaled(SIGKILL));
        assert_eq!(stage.wait().status, Status::Signaled(SIGKILL));
        let (next, feed) = waiting(launcher, tool, &job);
        assert!(is_in(next.pid(), &job));
        drop(feed);
        assert_eq!(next.wait().status, Status::Exited(0));
    });
}

#[test]
fn a_job_that_is_ended_takes_its_whole_group_along() {
    in_each_way(|launcher, tool| {
        let job = Group::new();
        let stages = [waiting(launcher, tool, &job), waiting(launcher, tool, &job)];
        job.kill();
        for (stage, _open) in stages {
            assert_eq!(stage.wait().status, Status::Signaled(SIGKILL));
        }
    });
}

/// One that has ended by itself when its job is killed may have succeeded only because its own child was killed first.
#[test]
fn what_had_not_been_reaped_when_its_job_was_killed_counts_as_killed() {
    in_each_way(|launcher, tool| {
        for _ in 0..3 {
            let job = Group::new();
            let (mut stage, feed) = waiting(launcher, tool, &job);
            let ended = stage.end_fd().unwrap();
            drop(feed);
            poll(&mut [PollFd::new(&ended, PollFlags::IN)], None).unwrap();
            job.kill();
            assert_eq!(stage.wait().status, Status::Signaled(SIGKILL));
        }
    });
}

/// It finds what the others have changed meanwhile. Alone, nobody can tell.
#[test]
fn a_job_proves_nothing_if_a_zygote_is_made_while_another_of_its_processes_runs() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("slow.c");
    let spins = "__attribute__((constructor)) static void spin(void) { for (volatile int i = 0; i < 60000000; i++); }";
    std::fs::write(&source, format!("{spins}\nint main(void) {{ return 0; }}\n")).unwrap();
    let null = File::open("/dev/null").unwrap();
    for is_beside in [false, true] {
        let program = dir.path().canonicalize().unwrap().join(if is_beside { "beside" } else { "alone" });
        compile(&source, &program, &[]);
        let launcher = warm_launcher(&["alone", "beside"]);
        let (group, other) = (Group::new(), Group::new());
        let (input, feed) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let cat = plain_spec(
            Path::new("/bin/cat"),
            &["cat"],
            Path::new("/"),
            [input.as_fd(), null.as_fd(), null.as_fd()],
        );
        let cat = launcher.start(&cat, if is_beside { &group } else { &other }).unwrap();
        let spec = plain_spec(&program, &["slow"], Path::new("/"), [null.as_fd(); 3]);
        let exit = launcher.start(&spec, &group).unwrap().wait();
        drop((input, feed));
        cat.wait();
        assert_eq!((exit.status, exit.via), (Status::Exited(0), Via::Fork));
        assert_eq!(group.is_doubtful(), is_beside);
    }
}
