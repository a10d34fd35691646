//! `--ab`: another lit, interleaved with this one; verdicts and times are compared.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::stop::{await_end_of, await_text};
use crate::suite::{Run, Suite};

/// Creates a suite of three tests, one of which fails.
fn suite() -> Suite {
    let suite = Suite::new("");
    suite.file("a.test", "RUN: echo a | cat\n");
    suite.file("b.test", "RUN: true\n");
    suite.file("c.test", "RUN: false\n");
    suite
}

/// Creates an executable script that is no lit.
fn script(suite: &Suite, name: &str, text: &str) -> PathBuf {
    let path = suite.file(name, format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it is ours");
    path
}

fn json(suite: &Suite, name: &str) -> Value {
    let text = fs::read(suite.path(name)).expect("the report was written");
    serde_json::from_slice(&text).expect("it is JSON")
}

#[test]
fn the_real_lit_is_compared_in_one_command() {
    let suite = suite();
    let reports =
        ["--ab-report", "r.json", "--ab-report", "r.html", "--ab-report", "r.md", "--ab-report=r.csv"];
    // PATH has no lit, so the lit of the Python that evaluates the configs runs.
    let mut command =
        suite.command(&[&["--ab", "lit", "--ab-runs", "6", "-j2", "--cold"], &reports[..], &["."]].concat());
    let run = Run::from(command.env("PATH", "/usr/bin:/bin").output().expect("hotstart starts"));
    run.ends_with(0).has("verdicts: all 3 tests have the same in 7 runs of A and 7 of B");
    run.says("-j2 .   (6 runs)").has("B: hotstart lit -j2 --cold .").has("B ");
    let report = json(&suite, "r.json");
    assert_eq!(report["complete"], true);
    assert_eq!(report["commands"][1]["runs"].as_array().map(Vec::len), Some(6));
    assert!(report["remarks"][0].as_str().is_some_and(|text| text.starts_with("verdicts: all 3")));
    assert!(report["comparisons"][0]["metrics"]["wall_s"]["ratio"]["estimate"].is_f64());
    for name in ["r.html", "r.md"] {
        let text = fs::read_to_string(suite.path(name)).expect("a report");
        assert!(text.contains("verdicts: all 3 tests"), "{name}: {text}");
    }
    assert_eq!(fs::read_to_string(suite.path("r.csv")).expect("a report").lines().count(), 13);
}

#[test]
fn any_other_lit_command_is_taken_and_hotstart_gets_its_own_options() {
    let suite = suite();
    let own = env!("CARGO_BIN_EXE_hotstart");
    let other = format!("'{own}' lit --start=cold");
    let mut command = suite.command(&["--ab", &other, "--ab-runs=1", "--keep-cold=cat", "."]);
    // LIT_OPTS applies once to both, including the options of the comparison.
    let run = Run::from(command.env("LIT_OPTS", "-v --ab-runs=2").output().expect("hotstart starts"));
    run.ends_with(0).has("verdicts: all 3 tests have the same in 3 runs of A and 3 of B");
    run.says("lit --start=cold --keep-cold=cat . -v   (2 runs)")
        .says("2 rounds are too few to tell a difference");
    run.has("B: hotstart lit --keep-cold=cat . -v");
}

#[test]
fn verdicts_that_differ_are_named_and_end_it_with_1() {
    let suite = suite();
    // This lit has another verdict for one test, and one test more.
    let lie = r#"while [ "$1" != -o ]; do shift; done; cat > "$2" <<X
{"tests": [{"name": "t :: a.test", "code": "PASS"}, {"name": "t :: b.test", "code": "XFAIL"},
           {"name": "t :: c.test", "code": "FAIL"}, {"name": "t :: d.test", "code": "PASS"}]}
X"#;
    let other = script(&suite, "liar", lie);
    let run = suite.run(&["--ab", &other.to_string_lossy(), "--ab-runs=1", "--ab-report=r.json", "."]);
    run.ends_with(1).has("verdicts: 2 of 4 tests differ in 2 runs of A and 2 of B");
    run.has("  t :: b.test: XFAIL by A, PASS by B").has("  t :: d.test: PASS by A, absent by B");
    assert_eq!(json(&suite, "r.json")["remarks"].as_array().map(Vec::len), Some(3));
}

#[test]
fn what_is_no_lit_or_fails_is_told() {
    let suite = suite();
    let failing = script(&suite, "failing", "echo oh dear >&2; exit 2");
    let late = script(
        &suite,
        "late",
        "test -e once && exit 3; touch once; while [ $1 != -o ]; do shift; done\n\
                                       echo '{\"tests\": []}' > $2",
    );
    for (other, said) in [
        ("no-such-lit", "argument --ab: there is no program 'no-such-lit' along PATH"),
        ("", "argument --ab: no command; write for example --ab lit"),
        ("'x", "argument --ab: No closing quotation"),
        ("true", "'true .' left no results in"),
        (&failing.to_string_lossy(), "where a lit ends with 0 or 1; see what it said:\noh dear"),
        (
            &late.to_string_lossy(),
            "ended with exit code 3 in run 1, where a lit ends with 0 or 1; run it alone",
        ),
    ] {
        suite.run(&["--ab", other, "."]).ends_with(2).warns("lit: error: ").warns(said);
    }
    suite.run(&["--ab=lit", "-o", "x", "."]).ends_with(2).warns("leave -o away");
    suite.run(&["--ab=lit", "--show-tests", "."]).ends_with(2).warns("--ab compares runs");
    suite
        .run(&["--ab=lit", "--ab-report=x.txt", "."])
        .ends_with(2)
        .warns("argument --ab-report: requires a name");
}

#[test]
fn ctrl_c_ends_both_with_what_was_measured() {
    let suite = suite();
    // It hangs the third time, after the check and one timed run.
    let results = "while [ $1 != -o ]; do shift; done; echo '{\"tests\": []}' > $2";
    let text =
        format!("echo x >> n; test $(wc -l < n) -lt 3 || {{ echo $$ > pid; exec sleep 1000; }}; {results}");
    let other = script(&suite, "slow", &text);
    let other = other.to_string_lossy();
    let mut command = suite.command(&["--ab", &other, "--ab-report=r.json", "."]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hotstart starts");
    let pid = await_text(&suite.path("pid")).trim().parse().expect("a process number");
    let runner = rustix::process::Pid::from_raw(child.id() as i32).expect("a process number");
    rustix::process::kill_process(runner, rustix::process::Signal::INT).expect("the runner is there");
    let run = Run::from(child.wait_with_output().expect("hotstart ends"));
    await_end_of(pid);
    assert_eq!(run.code, None, "it dies of the signal: {run:#?}");
    run.warns("interrupted; the report is of what was measured until then");
    let report = json(&suite, "r.json");
    assert_eq!(report["complete"], false);
    assert_eq!(report["commands"][0]["runs"].as_array().map(Vec::len), Some(1));
}
