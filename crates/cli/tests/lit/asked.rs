//! Features that lit's users ask for and that lit lacks.

use std::fs;
use std::process::Command;

use crate::suite::{Run, Suite};

/// Creates three tests: one passes, one fails in the second stage of its second line, one is unsupported.
fn suite() -> Suite {
    let suite = Suite::new("");
    suite.file("good/a.test", "RUN: true\n");
    suite.file("bad/b.test", "RUN: true\nRUN: echo 'it is' | sh -c 'cat; exit 3' | cat\n");
    suite.file("bad/c.test", "UNSUPPORTED: system-linux\nRUN: true\n");
    suite.file("bad/lit.local.cfg", "config.available_features.add('system-linux')\n");
    suite
}

/// Returns the line after the one that says to paste it.
fn pasted(run: &Run) -> String {
    let mut lines = run.out.lines().skip_while(|line| !line.ends_with("paste:"));
    lines.nth(1).unwrap_or_else(|| panic!("nothing to paste in {run:#?}")).to_owned()
}

/// Runs a line as a user would, in another directory.
fn paste(line: &str) -> Run {
    let mut shell = Command::new("bash");
    Run::from(shell.arg("-c").arg(line).current_dir("/").output().expect("bash starts"))
}

#[test]
fn a_failure_begins_with_the_line_that_failed_and_how_to_run_it_again() {
    let suite = suite();
    let run = suite.run(&["--diagnose", "."]);
    run.ends_with(1);
    let first = run.out.lines().skip_while(|line| !line.starts_with("FAIL: t :: bad/b.test")).nth(1);
    assert_eq!(
        first,
        Some("hotstart: RUN: at line 2, stage 2 of 3 (sh -c 'cat; exit 3') exited with 3"),
        "{run:#?}"
    );
    let line = pasted(&run);
    assert!(
        line.ends_with(" && set -o pipefail && { echo 'it is' | sh -c 'cat; exit 3' | cat; } )"),
        "{line}"
    );
    let again = paste(&line);
    assert_eq!((again.out.as_str(), again.code), ("it is\n", Some(3)), "{line}");
}

#[test]
fn what_earlier_lines_changed_is_part_of_the_pasted_line() {
    let suite = Suite::new("config.environment['SEEN'] = 'a b'");
    suite.file(
        "a.test",
        "RUN: mkdir -p %t.d\nRUN: cd %t.d\nRUN: export OWN='x y'\n\
         RUN: true && env ONE=1 sh -c 'echo \"$SEEN $OWN $ONE $PWD\"; cat < in' 2>&1 | not cat ; false\n",
    );
    let run = suite.run(&["--diagnose", "."]);
    run.ends_with(1).says("RUN: at line 4, stage 1 of 1 (false)");
    let suite = Suite::new("config.environment['SEEN'] = 'a b'");
    suite.file(
        "b.test",
        "RUN: mkdir -p %t.d\nRUN: cd %t.d\nRUN: export OWN='x y'\n\
         RUN: true && env ONE=1 sh -c 'echo \"$SEEN $OWN $ONE $(basename $PWD)\"; exit 9'\n",
    );
    let again = paste(&pasted(&suite.run(&["--diagnose", "."])));
    assert_eq!((again.out.as_str(), again.code), ("a b x y 1 b.test.tmp.d\n", Some(9)));
}

#[test]
fn an_external_shells_line_is_named_and_can_be_pasted() {
    let suite = Suite::new("config.test_format = lit.formats.ShTest(True, force_execute_external=True)\n");
    suite.file("a.test", "RUN: true\nRUN: for i in 1 2; do echo $i; done; (exit 4)\nRUN: true\n");
    suite.file("b.test", "RUN: A=7; export A\nRUN: sh -c 'exit $A'\n");
    let run = suite.run(&["--diagnose", "--filter=a.test", "."]);
    run.ends_with(1)
        .says("hotstart: RUN: at line 2: (for i in 1 2; do echo $i; done; (exit 4)) ended with status 4");
    let again = paste(&pasted(&run));
    assert_eq!((again.out.as_str(), again.code), ("1\n2\n", Some(4)));
    let whole = suite.run(&["--diagnose", "--filter=b.test", "."]);
    assert!(pasted(&whole).ends_with("b.test.script )"), "{whole:#?}");
    assert_eq!(paste(&pasted(&whole)).code, Some(7));
}

#[test]
fn output_is_lits_unless_something_is_asked_for() {
    let run = suite().run(&["."]);
    run.ends_with(1);
    assert!(!run.out.contains("hotstart") && !run.out.contains('\x1b'), "{run:#?}");
}

#[test]
fn reports_of_failures_only() {
    let suite = suite();
    suite.run(&["--report-failures-only", "-o", "r.json", "--xunit-xml-output", "r.xml", "."]).ends_with(1);
    let json = fs::read_to_string(suite.path("r.json")).expect("a report");
    assert_eq!(json.matches("\"name\"").count(), 1, "{json}");
    let xml = fs::read_to_string(suite.path("r.xml")).expect("a report");
    assert!(xml.contains("tests=\"1\" failures=\"1\" skipped=\"0\""), "{xml}");
}

#[test]
fn skips_have_their_reason_in_the_xml() {
    let suite = suite();
    let xml = |args: &[&str]| {
        suite.run(&[args, &["--xunit-xml-output", "r.xml", "."]].concat());
        fs::read_to_string(suite.path("r.xml")).expect("a report")
    };
    assert!(xml(&[]).contains("<skipped message=\"Unsupported configuration\"/>"));
    let reasons = xml(&["--skip-reasons"]);
    let expected =
        "<skipped message=\"Test does not support the following features and/or targets: system-linux\"/>";
    assert!(reasons.contains(expected), "{reasons}");
    let cut = xml(&["--skip-reasons", "-j1", "--max-failures=1", "--order=lexical"]);
    assert!(
        cut.contains("<skipped message=\"Not run: as many tests had failed as --max-failures allows\"/>"),
        "{cut}"
    );
}

#[test]
fn time_is_added_up_by_directory_and_by_tool() {
    let suite = Suite::new("");
    suite.file("slow/a.test", "RUN: sort %s | env A=1 head -n 1 | not false\n");
    suite.file("fast/b.test", "RUN: sort %s\n");
    let run = suite.run(&["--time-by=dir,tool", "--cold", "."]);
    run.ends_with(0).has("Time by Directory:").has("Time by Tool:");
    let row =
        |end: &str| run.out.lines().find(|line| line.ends_with(end)).unwrap_or_else(|| panic!("{run:#?}"));
    assert_eq!(row("  t :: slow").split_whitespace().nth(2), Some("1"));
    assert_eq!(row("  sort").split_whitespace().nth(3), Some("2"));
    assert_eq!(row("  head").split_whitespace().nth(3), Some("1"));
    assert_eq!(row("  false").split_whitespace().nth(3), Some("1"));
    suite
        .run(&["--time-by=day", "."])
        .ends_with(2)
        .warns("invalid choice: 'day' (choose from 'dir', 'tool')");
}

#[test]
fn only_what_failed_is_run_again() {
    let suite = suite();
    suite.run(&["--rerun-failed", "."]).ends_with(2).warns("did not match any");
    suite.run(&["."]).ends_with(1);
    let again = suite.run(&["--rerun-failed", "."]);
    again.ends_with(1).has("FAIL: t :: bad/b.test (1 of 1)");
    suite.file("bad/b.test", "RUN: true\n");
    suite.run(&["--rerun-failed", "."]).ends_with(0).has("PASS: t :: bad/b.test (1 of 1)");
    suite
        .run(&["--rerun-failed", "."])
        .ends_with(0)
        .warns("hotstart: none of these tests failed the last time\n");
}

#[test]
fn workers_are_as_many_as_the_processors_that_may_be_used() {
    let suite = Suite::new("");
    for name in ["a", "b", "c"] {
        suite.file(&format!("{name}.test"), "RUN: true\n");
    }
    let own = suite.command(&["."]);
    let mut bound = Command::new("taskset");
    bound.args(["-c", "0"]).arg(own.get_program()).args(own.get_args());
    bound.current_dir(suite.path("."));
    crate::suite::prepare(&mut bound);
    Run::from(bound.output().expect("taskset starts")).ends_with(0).has("-- Testing: 3 tests, 1 workers --");
}

#[test]
fn tests_are_listed_as_json() {
    let suite = suite();
    suite.run(&["."]);
    let listed = suite.run(&["--list", "--filter=b.test", "."]);
    let read: serde_json::Value = serde_json::from_str(&listed.ends_with(0).out).expect("JSON");
    assert_eq!((&read["version"], &read["suites"][0]["tests"]), (&1.into(), &3.into()));
    let tests = read["tests"].as_array().expect("a list");
    let of = |name: &str| tests.iter().find(|test| test["path"] == name).expect("a test");
    assert_eq!(
        (&of("bad/b.test")["selected"], &of("good/a.test")["selected"]),
        (&true.into(), &false.into())
    );
    assert_eq!(
        (&of("bad/b.test")["last_failed"], &of("good/a.test")["last_failed"]),
        (&true.into(), &false.into())
    );
    assert_eq!(of("bad/b.test")["name"], "t :: bad/b.test");
    assert!(of("good/a.test")["last_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
}

#[test]
fn what_configs_leave_for_the_end_is_done_at_the_end() {
    let suite = Suite::new(
        "import atexit, os\n\
         def end(root=os.path.dirname(__file__)):\n\
         \u{20}   ran = os.path.exists(os.path.join(root, 'Output', 'a.test.tmp'))\n\
         \u{20}   open(os.path.join(root, 'end'), 'w').write(str(ran))\n\
         atexit.register(end)\n",
    );
    suite.file("a.test", "RUN: echo x > %t\n");
    suite.run(&["."]).ends_with(0);
    assert_eq!(fs::read_to_string(suite.path("end")).expect("atexit was honoured"), "True");
}
