//! Whichever process is killed, no job is lost, run twice, or left behind.

use rustix::process::{Pid, Signal};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::bench::{Bench, await_begun, await_gone, await_that, has_ended, kill, lines, pid};

#[test]
fn killing_the_client_kills_the_job_and_its_children() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let (log, child_log) = (bench.path("log"), bench.path("child"));
    let mut client = bench.client();
    client.arg(&tool).arg("child").arg(&child_log).arg("gate").arg(&log);
    let mut client = client.spawn().expect("it runs");
    let (job, child) = (await_begun(&log), await_begun(&child_log));
    client.kill().expect("it is there");
    client.wait().expect("it ends");
    await_gone(job);
    await_gone(child);
    assert!(bench.status().contains("ended with their client 1"), "{}", bench.status());
}

#[test]
fn a_job_that_may_not_be_repeated_dies_with_its_server() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let log = bench.path("log");
    let mut client = bench.client();
    let client = client.arg(&tool).arg("wait").arg(&log).arg("gate").stderr(Stdio::piped());
    let client = client.spawn().expect("it runs");
    let job = await_begun(&log);
    kill(bench.server().expect("a server"), Signal::KILL);
    let ended = client.wait_with_output().expect("it ends");
    assert_eq!(ended.status.signal(), Some(9));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("it is not run again"));
    assert!(has_ended(job), "the client ends after its job");
    assert_eq!(lines(&log).len(), 1, "begun once");
}

#[test]
fn a_compiler_killed_with_its_server_is_run_again_cold() {
    let bench = Bench::new();
    let tool = bench.tool("clang");
    bench.warm_up(&tool);
    let (log, gate) = (bench.path("log"), bench.path("gate"));
    let mut client = bench.client();
    let mut client =
        client.arg(&tool).arg("-c").arg(&log).arg(&gate).args(["-o", "out"]).spawn().expect("it runs");
    let job = await_begun(&log);
    kill(bench.server().expect("a server"), Signal::KILL);
    await_that("a second run", || lines(&log).len() == 2);
    assert!(has_ended(job), "the first is gone before the second begins");
    assert_eq!(await_begun(&log), pid(&client), "the client itself became the command");
    std::fs::write(&gate, "").unwrap();
    assert!(client.wait().expect("it ends").success());
    assert!(lines(&log)[2].starts_with("ended "), "{:?}", lines(&log));
}

/// What the first run has read from a stream, the second would not get; and what it has written there would be there twice.
#[test]
fn a_compiler_on_a_stream_dies_with_its_server() {
    let bench = Bench::new();
    let tool = bench.tool("clang");
    for (number, out) in ["out", "/dev/stdout", "stream"].into_iter().enumerate() {
        bench.warm_up(&tool);
        let log = bench.path(&format!("log{number}"));
        let _ = std::os::unix::fs::symlink("/dev/stdout", bench.path("stream"));
        let mut client = bench.client();
        client.arg(&tool).arg("-c").arg(&log).arg("gate").args(["-o", out]).stderr(Stdio::piped());
        if number == 0 {
            client.stdin(Stdio::piped());
        }
        let mut client = client.spawn().expect("it runs");
        // The other end stays open.
        let input = client.stdin.take();
        await_begun(&log);
        kill(bench.server().expect("a server"), Signal::KILL);
        let ended = client.wait_with_output().expect("it ends");
        drop(input);
        assert_eq!(ended.status.signal(), Some(9), "{out}");
        assert!(String::from_utf8_lossy(&ended.stderr).contains("it is not run again"), "{out}");
        assert_eq!(lines(&log).len(), 1, "begun once");
    }
}

/// Returns whether every thread of the process is in one of these states.
fn is_in_state(process: Pid, states: &[char]) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).expect("it is there");
    tasks.flatten().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).expect("it is there");
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(states))
    })
}

fn has_pending_signals(process: Pid) -> bool {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).expect("it is there");
    let pending = status.lines().filter(|line| line.starts_with("SigPnd") || line.starts_with("ShdPnd"));
    pending.into_iter().any(|line| line.trim_end_matches('0').ends_with(|c: char| c.is_ascii_hexdigit()))
}

/// The kernel reports the unread signal message to the client before it delivers the server's last message.
#[test]
fn a_signal_that_comes_too_late_does_not_hide_the_end() {
    let bench = Bench::starting("fork");
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let (log, gate) = (bench.path("log"), bench.path("gate"));
    let mut client = bench.client().arg(&tool).arg("wait").arg(&log).arg(&gate).spawn().expect("it runs");
    let (job, server) = (await_begun(&log), bench.server().expect("a server"));
    kill(server, Signal::STOP);
    await_that("the server to stop", || is_in_state(server, &['T']));
    kill(pid(&client), Signal::INT);
    await_that("the signal to be sent on", || {
        !has_pending_signals(pid(&client)) && is_in_state(pid(&client), &['S'])
    });
    std::fs::write(&gate, "").unwrap();
    await_gone(job);
    kill(server, Signal::CONT);
    await_that("the client to end", || client.try_wait().expect("it is there").is_some());
    assert_eq!(client.wait().expect("it ended").code(), Some(0));
    assert_eq!(lines(&log).len(), 2, "{:?}", lines(&log));
}

#[test]
fn a_server_asked_to_stop_waits_for_its_jobs() {
    let bench = Bench::new();
    let tool = bench.tool("tool");
    bench.warm_up(&tool);
    let (log, gate) = (bench.path("log"), bench.path("gate"));
    let mut client = bench.client().arg(&tool).arg("wait").arg(&log).arg(&gate).spawn().expect("it runs");
    await_begun(&log);
    let server = bench.server().expect("a server");
    let mut stop = bench.hotstart();
    let stop = stop.args(["server", "stop"]).stdout(Stdio::piped()).spawn().expect("it runs");
    await_that("the socket to go", || !bench.path("server/exec-3.socket").exists());
    std::fs::write(&gate, "").unwrap();
    assert!(client.wait().expect("it ends").success());
    let said = stop.wait_with_output().expect("it ends").stdout;
    assert_eq!(String::from_utf8(said).unwrap(), "waiting for 1 jobs\nthe server ended\n");
    await_gone(server);
    assert_eq!(lines(&log).len(), 2);
}
