//! Ctrl-C and other early ends of a run.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::suite::{Run, Suite};

/// Waits until a process is gone or is only a zombie. Fails the test after ten seconds.
pub fn await_end_of(pid: i32) {
    let begun = Instant::now();
    while is_running(pid) {
        assert!(begun.elapsed() < Duration::from_secs(10), "process {pid} is still there");
        std::thread::yield_now();
    }
}

fn is_running(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

pub fn await_text(path: &Path) -> String {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') {
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{} does not appear", path.display());
        std::thread::yield_now();
    }
}

#[test]
fn ctrl_c_kills_what_was_started_and_sums_up_what_ran() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\n");
    suite.file("b.test", "RUN: sh -c 'sleep 1000 & echo $! $$ > %t.pid; wait'\n");
    suite.file("c.test", "RUN: true\n");
    let mut command = suite.command(&["-j1", "--order=lexical", "."]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hotstart starts");
    let pids = await_text(&suite.path("Output/b.test.tmp.pid"));
    let runner = rustix::process::Pid::from_raw(child.id() as i32).expect("a process number");
    rustix::process::kill_process(runner, rustix::process::Signal::INT).expect("the runner is there");
    let run = Run::from(child.wait_with_output().expect("hotstart ends"));
    for pid in pids.split_whitespace() {
        await_end_of(pid.parse().expect("a process number"));
    }
    run.has("PASS: t :: a.test").says("  Skipped: 2").says("  Passed : 1");
    assert!(run.out.contains("interrupted by user") || run.err.contains("interrupted by user"), "{run:#?}");
}

#[test]
fn a_signal_that_its_caller_ignores_does_not_stop_it() {
    use rustix::process::{Pid, Signal, kill_process};
    // As under `nohup`, or with `&` in a script.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let suite = Suite::new("");
        suite.fifo("gate");
        suite.file("a.test", "RUN: sh -c 'echo begun > %t.begun; read line < %S/gate'\n");
        suite.file("b.test", "RUN: true\n");
        let mut command = suite.command_finding("--ignore-signal", &["-j1", "--order=lexical", "."]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hotstart starts");
        await_text(&suite.path("Output/a.test.tmp.begun"));
        kill_process(Pid::from_child(&child), signal).expect("the runner is there");
        std::fs::write(suite.path("gate"), "go on\n").expect("the test reads it");
        Run::from(child.wait_with_output().expect("hotstart ends")).ends_with(0).says("  Passed: 2");
    }
}

#[test]
fn the_run_ends_after_as_many_failures_as_asked() {
    let suite = Suite::new("");
    for name in ["a", "b", "c"] {
        suite.file(&format!("{name}.test"), "RUN: false\n");
    }
    let run = suite.run(&["-j1", "--order=lexical", "--max-failures=1", "."]);
    run.ends_with(1).warns("reached maximum number of test failures").says("  Skipped: 2");
}

/// So many tests have a FileCheck tested at its first use. This one has only the name, and each case would be waited for.
#[test]
fn ctrl_c_ends_the_test_of_a_filecheck() {
    let suite = Suite::new("");
    let (source, pid) = (suite.file("waits.c", WAITS), suite.path("pid"));
    let define = format!("-DPID=\"{}\"", pid.display());
    let built =
        Command::new("cc").arg(define).arg("-o").args([suite.path("FileCheck"), source]).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    (0..500).for_each(|number| drop(suite.file(&format!("b{number}.test"), "RUN: true\n")));
    suite.file("a.test", "RUN: %S/FileCheck %s --input-file %s\nRUN: sleep 1000\n");
    let mut command = suite.command(&["-j1", "--order=lexical", "."]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hotstart starts");
    let waits = await_text(&pid);
    let begun = Instant::now();
    let runner = rustix::process::Pid::from_raw(child.id() as i32).expect("a process number");
    rustix::process::kill_process(runner, rustix::process::Signal::INT).expect("the runner is there");
    let run = Run::from(child.wait_with_output().expect("hotstart ends"));
    assert!(begun.elapsed() < Duration::from_secs(9), "{run:#?}");
    await_end_of(waits.trim().parse().expect("a process number"));
    run.says("  Skipped: 501");
}

/// Waits for ever unless it has the arguments of a test.
const WAITS: &str = r#"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words)
{
    FILE *file;
    while (--count > 0)
        if (strstr(words[count], "a.test"))
            return 0;
    file = fopen(PID, "w");
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    for (;;)
        pause();
}
"#;
