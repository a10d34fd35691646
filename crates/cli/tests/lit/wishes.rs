//! Features that lit's users ask for: tests that run alone, serial reruns, repetitions, wrapped tools, records of runs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::suite::{Run, Suite};

/// A test that fails if another one of its kind runs at the same time. Each makes `%S/busy` while it runs.
const EXCLUSIVE: &str = "RUN: sh -c 'mkdir %S/busy && sleep 0.05 && rmdir %S/busy'\n";
/// A test that fails while an exclusive one runs.
const OTHER: &str = "RUN: sh -c 'sleep 0.01; test ! -e %S/busy'\n";

fn order(run: &Run) -> Vec<String> {
    let lines = run.out.lines().filter_map(|line| line.strip_prefix("PASS: t :: "));
    lines.map(|line| line.split(' ').next().unwrap_or("").to_owned()).collect()
}

#[test]
fn tests_that_must_be_alone_run_after_the_others() {
    for (config, args) in [
        ("", &["--alone=a_.*alone"][..]),
        ("config.hotstart_alone = ['a_1-alone.test', 'a_2-alone.test', 'a_3-alone.test']", &[][..]),
    ] {
        let suite = Suite::new(config);
        for name in ["a_1-alone", "a_2-alone", "a_3-alone"] {
            suite.file(&format!("{name}.test"), EXCLUSIVE);
        }
        (0..6).for_each(|number| drop(suite.file(&format!("b{number}.test"), OTHER)));
        let run = suite.run(&[args, &["-j4", "--order=lexical", "."]].concat());
        let names = order(run.ends_with(0));
        assert_eq!(names[6..], ["a_1-alone.test", "a_2-alone.test", "a_3-alone.test"], "{names:?}");
    }
}

#[test]
fn a_whole_directory_can_be_alone() {
    let suite = Suite::new("");
    suite.file("a/lit.local.cfg", "config.hotstart_alone = True\n");
    (0..3).for_each(|number| drop(suite.file(&format!("a/{number}.test"), EXCLUSIVE.replace("%S", "%S/.."))));
    (0..4).for_each(|number| drop(suite.file(&format!("{number}.test"), OTHER)));
    let names = order(suite.run(&["-j4", "."]).ends_with(0));
    assert!(names[4..].iter().all(|name| name.starts_with("a/")), "{names:?}");
}

/// Returns a test that fails the first time, with this text.
fn fails_once(text: &str) -> String {
    format!(
        "RUN: sh -c 'test -e %S/seen-%basename_t || {{ touch %S/seen-%basename_t; echo {text}; exit 1; }}'\n"
    )
}

#[test]
fn failures_that_match_run_once_more_and_are_flaky() {
    let suite = Suite::new("");
    suite.file("lost.test", fails_once("connection refused"));
    suite.file("wrong.test", fails_once("wrong answer"));
    suite.file("always.test", "RUN: sh -c 'echo connection refused; exit 1'\n");
    suite.file("good.test", "RUN: true\n");
    let args = ["--cold", "--rerun-failed-serially=connection ref.sed", "-v", "-j2", "-o", "r.json", "."];
    let run = suite.run(&args);
    run.ends_with(1)
        .has("FLAKYPASS: t :: lost.test")
        .has("FAIL: t :: wrong.test")
        .has("FAIL: t :: always.test");
    run.has("  Passed With Retry: 1 (25.00%)").has("  Failed           : 2 (50.00%)");
    let report: Value = serde_json::from_slice(&fs::read(suite.path("r.json")).unwrap()).unwrap();
    let lost =
        report["tests"].as_array().unwrap().iter().find(|test| test["name"] == "t :: lost.test").unwrap();
    let output = lost["output"].as_str().unwrap();
    assert!(output.starts_with("It was FAIL beside other tests, and passed when it ran alone."), "{output}");
    assert!(output.contains("connection refused"), "{output}");
}

#[test]
fn a_failure_that_waits_for_its_second_run_is_not_lost() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: sh -c 'echo busy; exit 1'\n");
    suite.file("b.test", "RUN: false\n");
    let run = suite.run(&[
        "--cold",
        "--rerun-failed-serially=busy",
        "--max-failures=1",
        "-j1",
        "--order=lexical",
        ".",
    ]);
    run.ends_with(1).has("FAIL: t :: a.test").has("FAIL: t :: b.test");
}

#[test]
fn repetitions_have_directories_of_their_own() {
    let suite = Suite::new("");
    // This test fails if its directory was used before.
    suite.file("a.test", "RUN: mkdir %t\nRUN: sh -c 'echo x > %t/file; sleep 0.01'\n");
    let run = suite.run(&["--repeat=6", "-j3", "-a", "."]);
    run.ends_with(0).has("-- Testing: 6 tests, 3 workers --").has("Total Discovered Tests: 1");
    for number in 1..=6 {
        run.has(&format!("PASS: t :: a.test (repetition {number}) ("));
        assert!(suite.path(&format!("Output/repeat-{number}/a.test.tmp/file")).exists());
    }
}

#[test]
fn a_test_fails_if_one_of_its_repetitions_does() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: sh -c 'echo x >> %S/count; test $(wc -l < %S/count) != 3'\n");
    suite.file("b.test", "RUN: true\n");
    let run = suite.run(&["--cold", "--repeat=5", "-j1", "."]);
    run.ends_with(1)
        .warns("hotstart: t :: a.test: failed in 1 of 5 repetitions\n")
        .has("  Failed: 1 (50.00%)");
    assert!(!run.err.contains("b.test"), "{run:#?}");
}

#[test]
fn until_fail_ends_at_the_first_failure() {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: sh -c 'echo x >> %S/count; test $(wc -l < %S/count) != 7'\n");
    let run = suite.run(&["--cold", "--until-fail", "-j1", "."]);
    run.ends_with(1).has("FAIL: t :: a.test (repetition 7) (7 of 1000)");
    run.warns("hotstart: t :: a.test: failed in 1 of 7 repetitions\n");
    assert_eq!(fs::read_to_string(suite.path("count")).unwrap().lines().count(), 7);
    suite.run(&["--cold", "--until-fail", "--repeat=20", "."]).ends_with(0);
}

#[test]
fn what_has_no_run_lines_is_not_repeated() {
    let suite = Suite::new("config.test_format = lit.formats.ExecutableTest()\n");
    suite.file("a.test", "#!/bin/sh\n");
    suite.run(&["--repeat=2", "."]).ends_with(2).warns("a.test' has no RUN lines");
}

#[test]
fn a_tool_is_started_by_another_program() {
    let suite = Suite::new("");
    let wrapper = suite.file("wrapper", "#!/bin/sh\necho \"$@\" >> \"$1\"\nshift 2\nexec \"$@\"\n");
    fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).unwrap();
    suite.file(
        "a.test",
        "RUN: true\nRUN: echo one | tr o u > %t.out\nRUN: not tr\nRUN: sh -c 'grep une %t.out'\n",
    );
    let wrap = format!("--wrap=tr={} %t.log %n --", wrapper.display());
    suite.run(&[&wrap, "."]).ends_with(1);
    let wrap = format!("--wrap=tr={} %t.%n.log --", wrapper.display());
    suite.run(&[&wrap, "."]).ends_with(0);
    let log =
        |number: &str| fs::read_to_string(suite.path(&format!("Output/a.test.tmp.{number}.log"))).unwrap();
    assert!(log("2.2").ends_with("/tr o u\n"), "{}", log("2.2"));
    assert!(log("3.1").ends_with("/tr\n"), "{}", log("3.1"));
    suite
        .run(&["--wrap=tr=no-such-program --", "."])
        .ends_with(2)
        .warns("there is no program 'no-such-program'");
    suite.run(&["--wrap=tr", "."]).ends_with(2).warns("requires a tool and what starts it");
}

fn record(suite: &Suite, name: &str) -> Vec<(String, u64)> {
    let record: Value = serde_json::from_slice(&fs::read(suite.path(name)).expect("a record")).expect("JSON");
    let tests = record["tests"].as_array().expect("tests");
    tests
        .iter()
        .map(|test| (test["name"].as_str().unwrap().to_owned(), test["worker"].as_u64().unwrap()))
        .collect()
}

#[test]
fn a_recorded_run_runs_again_in_the_same_way() {
    let suite = Suite::new("");
    for number in 0..12 {
        suite.file(&format!("{number}.test"), format!("RUN: sh -c 'sleep 0.0{}'\n", number % 4));
    }
    suite.run(&["--record=first.json", "-j3", "--order=random", "."]).ends_with(0);
    let first = record(&suite, "first.json");
    assert_eq!(first.len(), 12);
    suite.run(&["--replay-record=first.json", "--record=second.json", "-j1", "."]).ends_with(0);
    let second = record(&suite, "second.json");
    let by_name = |record: &[(String, u64)]| record.iter().cloned().collect::<BTreeMap<_, _>>();
    assert_eq!(by_name(&second), by_name(&first), "the same workers");
    let of_worker = |record: &[(String, u64)], worker| -> Vec<String> {
        record.iter().filter(|test| test.1 == worker).map(|test| test.0.clone()).collect()
    };
    for worker in 0..3 {
        assert_eq!(of_worker(&second, worker), of_worker(&first, worker), "in the same order");
    }
    suite.run(&["--replay-record=none.json", "."]).ends_with(2).warns("cannot read the record");
}
