//! `--list`: suites and tests as JSON, one test to a line.
//!
//! Other programs read this: members may be added, but not renamed or removed while `version` is 1.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::Sink;

/// A suite.
#[derive(Clone, Debug)]
pub struct SuiteEntry {
    /// Its number, by which tests name it.
    pub index: usize,
    /// Its name, which need not be unique.
    pub name: String,
    /// Directory of the tests.
    pub source_root: PathBuf,
    /// Directory below which they run.
    pub exec_root: PathBuf,
    /// Number of tests.
    pub tests: usize,
    /// Its config's features, sorted.
    pub features: Vec<String>,
}

/// A test.
#[derive(Clone, Debug)]
pub struct TestEntry {
    /// `SUITE :: DIR/FILE`.
    pub name: String,
    /// The number of its suite.
    pub suite: usize,
    /// Path in the suite.
    pub path: String,
    /// Its file.
    pub file: PathBuf,
    /// Whether the filters select it.
    pub selected: bool,
    /// Duration of its last run, if recorded.
    pub last_seconds: Option<f64>,
    /// Whether its last run failed.
    pub last_failed: bool,
}

/// Writes the whole document.
pub fn write(to: &mut Sink, suites: Vec<SuiteEntry>, tests: impl Iterator<Item = TestEntry>) {
    to.put("{\n\"version\": 1,\n\"suites\": [");
    write_members(to, suites.into_iter().map(of_suite));
    to.put("],\n\"tests\": [");
    write_members(to, tests.map(of_test));
    to.put("]\n}\n");
    to.flush();
}

fn write_members(to: &mut Sink, members: impl Iterator<Item = Value>) {
    for (place, member) in members.enumerate() {
        to.put(if place == 0 { "\n" } else { ",\n" });
        to.put(&member.to_string());
    }
    to.put("\n");
}

fn of_suite(suite: SuiteEntry) -> Value {
    json!({
        "index": suite.index,
        "name": suite.name,
        "source_root": suite.source_root.to_string_lossy(),
        "exec_root": suite.exec_root.to_string_lossy(),
        "tests": suite.tests,
        "features": suite.features,
    })
}

fn of_test(test: TestEntry) -> Value {
    json!({
        "name": test.name,
        "suite": test.suite,
        "path": test.path,
        "file": test.file.to_string_lossy(),
        "selected": test.selected,
        "last_seconds": test.last_seconds,
        "last_failed": test.last_failed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::tests::Captured;

    #[test]
    fn it_is_one_document_with_a_test_to_a_line() {
        let suite = SuiteEntry {
            index: 0,
            name: "s \"q\"".into(),
            source_root: "/s".into(),
            exec_root: "/o".into(),
            tests: 2,
            features: vec!["x".into()],
        };
        let test = |name: &str, last: Option<f64>| TestEntry {
            name: format!("s :: {name}"),
            suite: 0,
            path: name.to_owned(),
            file: format!("/s/{name}").into(),
            selected: true,
            last_seconds: last,
            last_failed: false,
        };
        let captured = Captured::default();
        write(&mut captured.sink(), vec![suite], [test("a", Some(0.5)), test("b", None)].into_iter());
        let text = captured.text();
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read["suites"][0]["name"], "s \"q\"");
        assert_eq!(
            (&read["tests"][0]["last_seconds"], &read["tests"][1]["last_seconds"]),
            (&json!(0.5), &Value::Null)
        );
        assert_eq!(text.lines().filter(|line| line.contains("\"path\"")).count(), 2);
    }
}
