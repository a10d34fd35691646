//! Tests that fail with warm starts and pass cold. No tool can show how it was started: a run that could would be doubtful.
//! So the scripts here keep a file outside of the test's own, and fail in the first run, which is warm.

use crate::suite::{Run, Suite};

/// Fails in its first run only.
const FAILS_WARM: &str = "RUN: sed -n 1p %s\n\
    RUN: test -e %S/seen || sh -c 'echo for the first time; touch \"$0\"; exit 1' %S/seen\n";
/// Passes in its first run only.
const PASSES_WARM: &str = "XFAIL: *\nRUN: sed -n 1p %s\n\
    RUN: test -e %S/seen && exit 1 || touch %S/seen\n";

/// Passes every other time, by a file outside of the test's own.
const FLIPS: &str = "RUN: sed -n 1p %s\n\
    RUN: test -e %S/flag && rm %S/flag || sh -c 'touch \"$0\"; exit 1' %S/flag\n";

fn suite() -> Suite {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: sed -n 1p %s\n");
    suite.file("b.test", "RUN: sed -n 2p %s\n");
    suite.file("c.test", FAILS_WARM);
    suite
}

fn run(suite: &Suite, args: &[&str]) -> Run {
    let usual = ["-j1", "--order=lexical", "--verify=0", "--start=fork", "--warm=sed"];
    suite.run(&[&usual, args, &["."]].concat())
}

#[test]
fn a_failure_that_passes_cold_is_flaky_and_told_with_both_outputs() {
    let run = run(&suite(), &["-v", "--show-flakypass", "-o", "results.json"]);
    run.ends_with(0)
        .has("FLAKYPASS: t :: c.test (3 of 3, 2 of 2 attempts)")
        .says("Passed With Retry Tests (1):");
    run.says("  Passed           : 2 (66.67%)\n  Passed With Retry: 1 (33.33%)\n");
    run.warns("warning: t :: c.test failed when its tools were started warm, and not when cold.");
    run.warns("--- warm\nExit Code: 1\n").warns("for the first time").warns("--- cold\nExit Code: 0\n");
    run.warns("hotstart: failed with warm starts and not cold: 1: t :: c.test\n");
}

#[test]
fn json_and_xunit_reports_have_the_code() {
    let suite = suite();
    run(&suite, &["-o", "r.json", "--xunit-xml-output", "r.xml"]).ends_with(0);
    let json = std::fs::read_to_string(suite.path("r.json")).expect("a report");
    assert!(json.contains("\"code\": \"FLAKYPASS\""), "{json}");
    let xml = std::fs::read_to_string(suite.path("r.xml")).expect("a report");
    assert!(xml.contains("tests=\"3\" failures=\"0\""), "{xml}");
}

#[test]
fn fail_flaky_makes_it_a_failure() {
    let run = run(&suite(), &["-v", "--fail-flaky"]);
    run.ends_with(1).has("FAIL: t :: c.test (3 of 3)").says("  Failed: 1 (33.33%)\n");
    run.says("* TEST 't :: c.test' FAILED *").says("--- warm\n");
}

#[test]
fn a_quiet_run_names_it_too() {
    let run = run(&suite(), &["-q"]);
    run.ends_with(0).warns("hotstart: failed with warm starts and not cold: 1: t :: c.test\n");
    run.warns("--- warm\nExit Code: 1\n").warns("--- cold\nExit Code: 0\n").warns("to run these tests again");
}

#[test]
fn the_command_that_is_told_runs_the_same_tests_in_the_same_order() {
    let suite = suite();
    suite.file("c.test", FLIPS);
    let first = run(&suite, &["-v", "-o", "results.json", "--start=rewind"]);
    std::fs::remove_file(suite.path("results.json")).expect("a report");
    let _ = std::fs::remove_file(suite.path("flag"));
    let mut lines = first.err.lines().skip_while(|line| !line.starts_with("--- to run these tests again"));
    let line = lines.nth(1).expect("a command").to_owned();
    let mut shell = std::process::Command::new("sh");
    crate::suite::prepare(&mut shell);
    let again = Run::from(shell.args(["-c", &line]).output().expect("a shell"));
    let results: Vec<_> = again.out.lines().filter(|line| line.contains(" of 3")).collect();
    let expected = ["PASS: t :: a.test (1 of 3)", "PASS: t :: b.test (2 of 3)"];
    assert_eq!(results[..2], expected, "{again:#?}");
    again.ends_with(0).has("FLAKYPASS: t :: c.test (3 of 3");
    assert!(!suite.path("results.json").exists(), "a replay overwrites no report");
}

#[test]
fn a_replay_takes_the_order_that_is_asked_for() {
    let run = suite().run(&["--replay=t :: b.test", "--replay=t :: x.test", "--replay=t :: a.test", "."]);
    run.ends_with(0).has("PASS: t :: b.test (1 of 2)").has("PASS: t :: a.test (2 of 2)");
    run.warns("note: --replay: there is no test t :: x.test\n");
}

#[test]
fn a_test_that_is_nondeterministic_by_itself_is_told_apart() {
    let suite = suite();
    suite.file("c.test", FLIPS);
    let run = run(&suite, &["-v", "--start=rewind"]);
    run.ends_with(0)
        .has("FLAKYPASS: t :: c.test")
        .warns("` after 2 runs:\n  t :: a.test: sed -n 1p ")
        .warns("  t :: b.test: sed -n 2p ")
        .warns("nondeterministic by itself: 1 of 2 cold runs failed");
    assert!(!run.err.contains("fault of hotstart"), "{run:#?}");
}

#[test]
fn a_test_that_is_expected_to_fail_is_flaky_if_it_passes_warm() {
    let suite = suite();
    suite.file("c.test", PASSES_WARM);
    // Otherwise it would only run cold.
    let parity = "--parity=fork";
    run(&suite, &[parity]).ends_with(0).has("XFAIL: t :: c.test").warns("t :: c.test failed when its tools");
    std::fs::remove_file(suite.path("seen")).expect("it ran");
    run(&suite, &[parity, "--fail-flaky"]).ends_with(1).has("FAIL: t :: c.test");
}
