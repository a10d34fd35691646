//! Process groups are as under lit, however tools are started: no tool leads one, `kill 0` reaches the test's other stages, and
//! on a terminal tools are in the foreground.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::suite::{Run, Suite, lit_python};

/// Runs a command as the leader of a new session on a terminal of its own, presses Ctrl-C once the text `argv[1]` is on it, and
/// prints what was on it.
const ON_TERMINAL: &str = "
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
seen, pressed = b'', not sys.argv[1]
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    seen += data
    if not pressed and sys.argv[1].encode() in seen:
        pressed = True
        os.write(terminal, b'\\x03')
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.write(seen.decode().replace('\\r\\n', '\\n'))
sys.exit(status if status >= 0 else 128 - status)
";

fn on_terminal(suite: &Suite, press_at: &str, args: &[&str]) -> Run {
    let lit = suite.command(args);
    let mut command = Command::new(lit_python());
    command.args(["-c", ON_TERMINAL, press_at]).arg(lit.get_program()).args(lit.get_args());
    crate::suite::prepare(&mut command);
    let path = suite.path("");
    Run::from(command.current_dir(path).stdin(Stdio::null()).output().expect("python starts"))
}

const SHOW: &str =
    "read -r pid name state parent group rest < /proc/$$/stat; test $group != $pid && echo $group";

fn in_each_way(suite: &Suite, check: impl Fn(&Run)) {
    for start in ["cold", "fork", "rewind"] {
        let mut command = suite.command(&["-j1", "-v", "--verify=0", &format!("--start={start}"), "."]);
        // Were it in the foreground of a terminal, as this test may be, then `kill 0` would reach it and this test.
        check(&Run::from(command.process_group(0).output().expect("hotstart starts")));
    }
}

#[test]
fn a_session_is_made_without_a_fork() {
    let suite = Suite::new("");
    suite.file("alone.test", "RUN: setsid sh -c 'exit 3'\n");
    suite.file("later.test", "RUN: echo x | setsid sh -c 'cat; exit 3'\n");
    suite.file("twice.test", "RUN: sh -c 'exit 0' | sort | setsid sh -c 'cat; exit 3'\n");
    in_each_way(&suite, |run| {
        let run = run.ends_with(1).says("  Failed: 3 ");
        assert_eq!(run.out.matches("# error: command failed with exit status: 3\n").count(), 3, "{run:#?}");
    });
}

#[test]
fn all_of_a_test_is_in_one_group_that_none_leads() {
    let suite = Suite::new("");
    let line = |to: &str| format!("RUN: sh -c '{SHOW}' | sort > %t.{to}\n");
    suite.file("a.test", [line("1"), line("2"), "RUN: diff %t.1 %t.2\n".to_owned()].concat());
    suite.file("b.test", format!("RUN: sort %s | sh -c '{SHOW}'\n"));
    in_each_way(&suite, |run| {
        run.ends_with(0).says("  Passed: 2 ");
    });
}

/// A failure is confirmed cold once what the first run has left is over. What does not end is not ended either.
#[test]
fn what_a_run_has_left_is_waited_for_when_it_is_repeated() {
    let suite = Suite::new("");
    let leave = |line: &str, status: u32| {
        format!(
            "RUN: sed -n 1p %s\nRUN: sh -c '{{ {line}; }} > /dev/null 2>&1 & echo $! >> %t-left; exit {status}'\n"
        )
    };
    suite.file("lock.test", format!("RUN: mkdir %S/lock\n{}", leave("sleep 0.2; rmdir %S/lock", 3)));
    suite.file("server.test", leave("exec sleep 600", 4).replace("%t-left", "%S/left"));
    let mut command =
        suite.command(&["-j1", "-v", "--verify=0", "--start=fork", "--warm=sed", "--order=lexical", "."]);
    let run = Run::from(command.process_group(0).output().expect("hotstart starts"));
    let run = run.ends_with(1).says("  Failed: 2 ");
    run.says("# error: command failed with exit status: 3\n")
        .says("# error: command failed with exit status: 4\n");
    let left = std::fs::read_to_string(suite.path("left")).expect("written by the test");
    assert_eq!(left.lines().count(), 2, "{left:?}");
    for pid in left.lines() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.contains("(sleep)") && !stat.contains("(sleep) Z"), "{stat:?}");
        assert!(Command::new("kill").arg(pid).status().expect("kill starts").success());
    }
}

#[test]
fn a_signal_to_the_group_ends_the_tests_stages_and_no_other_test() {
    let suite = Suite::new("");
    for (name, signal) in [("a", "TERM"), ("b", "KILL"), ("c", "TERM")] {
        suite.file(&format!("{name}.test"), format!("RUN: sleep 60 | sh -c 'kill -{signal} 0'\n"));
        suite.file(&format!("{name}-next.test"), "RUN: sort %s | sh -c cat\n");
    }
    in_each_way(&suite, |run| {
        run.ends_with(1).says("  Passed: 3 ").says("  Failed: 3 ");
        for (status, stages) in [(-15, 4), (-9, 2)] {
            let line = format!("# error: command failed with exit status: {status}\n");
            assert_eq!(run.out.matches(&line).count(), stages, "{run:#?}");
        }
    });
}

#[test]
fn on_a_terminal_tools_are_in_the_foreground() {
    let suite = Suite::new("");
    let show = "read -r pid name state parent group session tty foreground rest < /proc/$$/stat";
    suite.file("foreground.test", format!("RUN: sort %s | sh -c '{show}; test $group = $foreground'\n"));
    suite.file("modes.test", "RUN: stty -F /dev/tty -echo\nRUN: stty -F /dev/tty echo\n");
    suite.file("shell.test", "RUN: bash --norc -ic 'echo hi' > %t\nRUN: diff %t %S/hi\n");
    suite.file("hi", "hi\n");
    suite.file("late.test", "RUN: sh -c 'sleep 60; true'\n");
    for start in ["cold", "fork", "rewind"] {
        let start = format!("--start={start}");
        let run = on_terminal(&suite, "", &["-j1", "-v", "--verify=0", "--timeout=3", &start, "."]);
        run.ends_with(1).says("  Passed   : 3 ").says("  Timed Out: 1 ");
    }
}

#[test]
fn ctrl_c_on_a_terminal_ends_the_run_and_fails_no_test() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\n");
    suite.file("b.test", "RUN: sh -c 'sleep 60; true'\n");
    for start in ["cold", "rewind"] {
        let start = format!("--start={start}");
        let args = ["-j1", "-v", "--verify=0", "--order=lexical", &start, "."];
        let run = on_terminal(&suite, "PASS: t :: a.test", &args);
        // As lit ends.
        run.ends_with(0).says("  Skipped: 1 ");
        assert!(!run.out.contains("FAIL"), "{run:#?}");
    }
}
