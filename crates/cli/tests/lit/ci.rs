//! Output for CI servers: GitHub's annotations, JUnit's XML, and traces.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::suite::{Suite, lit_python};

fn suite() -> Suite {
    let suite = Suite::new("");
    suite.file("a/pass.test", "RUN: sh -c 'sleep 0.02'\n");
    suite.file(
        "a/fail.test",
        "# nothing\nRUN: true\nRUN: sh -c 'printf \"]]> \\001 \\033[0m & <\" >&2; exit 3'\n",
    );
    suite.file("b/unsupported.test", "UNSUPPORTED: x\nRUN: true\n");
    suite.file("b/lit.local.cfg", "config.available_features.add('x')\n");
    suite.file("b/odd \u{1} \"<&.test", "RUN: false\n");
    suite
}

#[test]
fn github_is_told_of_failures_beside_their_lines() {
    let suite = suite();
    let run = suite.run(&["--github", "--filter=fail", "."]);
    run.ends_with(1).says(
        "::error file=a/fail.test,line=3,title=FAIL%3A t %3A%3A a/fail.test::RUN: at line 3, stage 1 of 1 (sh -c ",
    );
    let outside =
        suite.command(&["--github", "--filter=fail", "."]).env("GITHUB_WORKSPACE", "/elsewhere").output();
    let text = String::from_utf8_lossy(&outside.expect("hotstart starts").stdout).into_owned();
    let file = suite.path("a/fail.test");
    assert!(text.contains(&format!("::error file={},line=3", file.display())), "{text}");
    let quiet = suite.run(&["--github", "--filter=pass", "."]);
    assert!(!quiet.ends_with(0).out.contains("::error"), "{quiet:#?}");
}

/// Parses the report strictly, and prints its contents.
const READER: &str = "\
import sys, xml.etree.ElementTree as tree
for suite in tree.parse(sys.argv[1]).getroot():
    print(*(suite.attrib[name] for name in ('name', 'tests', 'failures', 'errors', 'skipped')))
    for case in suite:
        float(case.attrib['time'])
        kinds = [child.tag + ':' + child.attrib.get('message', '') for child in case]
        print(ascii(case.attrib['classname']), ascii(case.attrib['name']), *kinds)
";

#[test]
fn junit_is_read_by_strict_readers() {
    let suite = suite();
    suite.run(&["--junit=r.xml", "."]).ends_with(1);
    let output =
        Command::new(lit_python()).args(["-c", READER]).arg(suite.path("r.xml")).output().expect("Python");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "t 4 2 0 1");
    let blame = "failure:RUN: at line 3, stage 1 of 1 (sh -c ";
    assert!(lines[1].starts_with(&format!("'t.a' 'fail.test' {blame}")), "{text}");
    assert_eq!(lines[2], "'t.a' 'pass.test'");
    assert_eq!(lines[3], "'t.b' 'odd  \"<&.test' failure:RUN: at line 1, stage 1 of 1 (false) exited with 1");
    assert_eq!(lines[4], "'t.b' 'unsupported.test' skipped:Unsupported configuration");
}

#[test]
fn a_trace_has_complete_events_that_do_not_overlap() {
    let suite = suite();
    suite.run(&["--time-trace-output=t.json", "-j2", "."]).ends_with(1);
    let trace: Value =
        serde_json::from_slice(&fs::read(suite.path("t.json")).expect("a trace")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let mut tracks: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for event in events {
        assert_eq!(event["ph"], "X", "a complete event");
        assert!(event["name"].is_string(), "{event}");
        let number = |key: &str| event[key].as_u64().unwrap_or_else(|| panic!("{key} of {event}"));
        tracks.entry((number("pid"), number("tid"))).or_default().push((number("ts"), number("dur")));
    }
    assert_eq!(events.len(), 3, "all but the unsupported one");
    for track in tracks.values_mut() {
        track.sort_unstable();
        assert!(track.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{track:?}");
    }
}
