//! The output of a failing test.

use crate::suite::Suite;

#[test]
fn a_failing_stage_is_named_with_its_line_and_status() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: true\nRUN: echo said | sh -c 'cat; echo told >&2; exit 3' | cat\n");
    let run = suite.run(&["-v", "."]);
    run.ends_with(1).has("FAIL: t :: a.test (1 of 1)");
    run.says("# RUN: at line 2").says("# | told").says("# error: command failed with exit status: 3");
    run.warns("hotstart: t :: a.test: RUN: at line 2, stage 2 of 3").warns("exited with 3");
    assert!(!run.out.contains("hotstart"), "standard output is lit's: {run:#?}");
    let short = suite.run(&["."]);
    assert!(!short.err.contains("stage"), "no output, nothing beside it: {short:#?}");
}

#[test]
fn a_signal_is_named() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: sh -c 'kill -SEGV $$'\n");
    let run = suite.run(&["-v", "."]);
    run.ends_with(1).says("# error: command failed with exit status: -11").warns("SIGSEGV");
}

#[test]
fn a_passing_run_is_quiet_about_its_tests_output() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: echo noise\n");
    let run = suite.run(&["-v", "."]);
    run.ends_with(0).has("PASS: t :: a.test (1 of 1)").says("  Passed: 1 (100.00%)");
    assert!(!run.out.contains("noise"), "{run:#?}");
}

#[test]
fn a_timeout_ends_the_whole_process_group() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: sh -c 'sleep 1000 & echo $! > %t.pid; wait'\n");
    suite.run(&["--timeout=1", "."]).ends_with(1).has("TIMEOUT: t :: a.test");
    let pid = std::fs::read_to_string(suite.path("Output/a.test.tmp.pid")).expect("the test got that far");
    crate::stop::await_end_of(pid.trim().parse().expect("a process number"));
}
