//! Output while tests run, on a terminal and in a file; colours.

use std::process::Command;

use crate::suite::{Run, Suite, prepare};

/// Creates ten tests. One takes long enough to be seen running, and one fails.
fn suite() -> Suite {
    let suite = Suite::new("");
    for name in 0..8 {
        suite.file(&format!("quick{name}.test"), "RUN: true\n");
    }
    suite.file("long.test", "RUN: sleep 0.7\n");
    suite.file("wrong.test", "RUN: false\n");
    suite
}

/// Runs `hotstart lit` on a new terminal.
fn at_terminal(suite: &Suite, args: &str, env: &[(&str, &str)]) -> Run {
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{} lit {args}", env!("CARGO_BIN_EXE_hotstart")), "/dev/null"]);
    command.current_dir(suite.path("."));
    prepare(&mut command);
    command.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("FORCE_COLOR").envs(env.iter().copied());
    command.stdin(std::process::Stdio::null());
    Run::from(command.output().expect("script starts"))
}

#[test]
fn a_terminal_shows_what_runs_now() {
    let run = at_terminal(&suite(), "--live -j2 --order=lexical .", &[]);
    run.ends_with(1).says("-- Testing: 10 tests, 2 workers --").says("/10 tests, ").says(" failed, ");
    let at_work = |line: &str| line.contains(" s  ") && line.contains("t :: long.test");
    assert!(run.out.lines().any(at_work), "the test at work is not shown: {run:#?}");
    run.says("ETA 0:00:0").says("\x1b[31mFAIL\x1b(B\x1b[m: t :: wrong.test (").says("  Failed:");
    assert!(!run.out.contains("PASS: "), "{run:#?}");
}

#[test]
fn the_live_view_without_a_terminal_is_plain_lines() {
    let run = suite().run(&["--live", "-j1", "--order=lexical", "."]);
    run.ends_with(1).has("hotstart:  10% 1/10 tests, 0 failed").has("hotstart: 100% 10/10 tests, 1 failed");
    run.has("FAIL: t :: wrong.test (10 of 10)");
    assert!(!run.out.contains('\x1b') && !run.out.contains('\r'), "{run:#?}");
}

#[test]
fn colours_are_for_terminals_unless_the_environment_says_otherwise() {
    let suite = suite();
    let colored = "\x1b[1m\x1b[31mhotstart: RUN: at line 1";
    assert!(at_terminal(&suite, "--diagnose .", &[]).out.contains(colored));
    assert!(at_terminal(&suite, "-s .", &[]).out.contains("\x1b[36m"));
    for args in ["--diagnose .", "--live .", "-s ."] {
        let plain = at_terminal(&suite, args, &[("NO_COLOR", "1")]);
        let has = |sequence: &&str| plain.out.contains(*sequence);
        let colors = ["\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b(B"];
        assert_eq!(colors.iter().find(|color| has(color)), None, "{args}: {plain:#?}");
    }
    let mut forced = suite.command(&["--diagnose", "."]);
    let forced =
        Run::from(forced.env("FORCE_COLOR", "1").env_remove("NO_COLOR").output().expect("hotstart starts"));
    assert!(forced.out.contains(colored), "{forced:#?}");
    assert!(!suite.run(&["--diagnose", "."]).out.contains('\x1b'));
}
