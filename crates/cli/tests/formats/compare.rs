//! Runs lit and hotstart with the same command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::suite::{Suite, lit_python, prepare};

/// The output and reports, without parts that may differ.
#[derive(Debug, PartialEq)]
pub struct Seen {
    pub out: Vec<String>,
    err: Vec<String>,
    tests: Vec<Value>,
    code: Option<i32>,
}

/// Runs both with one worker, so that tests end in one order, and compares the results.
pub fn compare(suite: &Suite, args: &[&str]) {
    for package in packages() {
        // lit 19 does not have these.
        let is_new = |arg: &&str| {
            ["--unsupported", "--exclude-xfail", "--max-retries"].iter().any(|new| arg.starts_with(new))
        };
        if package.is_some() && args.iter().any(is_new) {
            continue;
        }
        let expected = seen(suite, lit(package.as_deref()), args);
        let got = seen(suite, hotstart(package.as_deref()), args);
        assert_eq!(
            got.out.join("\n"),
            expected.out.join("\n"),
            "{args:?} {package:?}: {expected:#?}\n{got:#?}"
        );
        assert_eq!(got, expected, "{args:?} {package:?}");
    }
}

/// Returns a command for lit, of this package or the Python's own.
pub fn lit(package: Option<&Path>) -> Command {
    let package = package.map(|package| format!("sys.path.insert(0, {:?}); ", package.display().to_string()));
    let program = format!(
        "import sys; sys.argv[0] = 'lit'; sys.path.pop(0); {}from lit.main import main; main()",
        package.unwrap_or_default()
    );
    let mut lit = Command::new(lit_python());
    lit.args(["-c", &program]);
    lit
}

/// Returns a command for hotstart, with this package or the Python's own.
pub fn hotstart(package: Option<&Path>) -> Command {
    let mut hotstart = Command::new(env!("CARGO_BIN_EXE_hotstart"));
    hotstart.arg("lit");
    if let Some(package) = package {
        hotstart.arg(format!("--lit-package={}", package.display()));
    }
    hotstart
}

/// Returns the packages of lit: the Python's own, and lit 19 if it is named.
fn packages() -> Vec<Option<PathBuf>> {
    let old = std::env::var_os("HOTSTART_LIT_19").map(|path| Some(PathBuf::from(path)));
    std::iter::once(None).chain(old).collect()
}

/// Runs one of them, after removing the files of other runs.
pub fn seen(suite: &Suite, mut command: Command, args: &[&str]) -> Seen {
    for left in ["Output", "deep/down/Output", ".lit_test_times.txt"] {
        let path = suite.path(left);
        // The file may be missing.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    let report = suite.path("report.json");
    prepare(&mut command);
    command.arg("-j1").arg("--order=lexical").arg("-o").arg(&report).args(args).current_dir(suite.path("."));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| without_pid(&String::from_utf8_lossy(bytes));
    let report: Value =
        std::fs::read(&report).map_or(Value::Null, |text| serde_json::from_slice(&text).expect("JSON"));
    let _ = std::fs::remove_file(suite.path("report.json"));
    let tests = report["tests"].as_array().cloned().unwrap_or_default();
    Seen {
        out: lines(&text(&output.stdout)),
        err: lines(&text(&output.stderr)),
        tests: tests.into_iter().map(reported).collect(),
        code: output.status.code(),
    }
}

/// Replaces the number of the discovering process in the name of a test's results, after the suite's name.
fn without_pid(text: &str) -> String {
    let mut parts = text.split("-t-");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("-t-PID");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

fn reported(mut test: Value) -> Value {
    let output = test["output"].as_str().map(|text| lines(&without_pid(text)));
    test["output"] = output.into();
    // Only googletest's own times are equal in both.
    if test["elapsed"] != 0.25 {
        test["elapsed"] = Value::Null;
    }
    test
}

/// Removes frames of tracebacks, times, places of messages, and hotstart's own lines.
fn lines(text: &str) -> Vec<String> {
    let mut in_traceback = false;
    let mut kept = Vec::new();
    for line in text.lines() {
        in_traceback = (in_traceback && line.starts_with(' ')) || line.starts_with("Traceback (most");
        let is_frame = in_traceback && line.starts_with(' ');
        if is_frame || line.starts_with("hotstart: ") {
            continue;
        }
        let line = match line.strip_prefix("lit: ").and_then(|rest| rest.splitn(3, ':').nth(2)) {
            Some(message) => format!("lit:{message}"),
            None => line.to_owned(),
        };
        kept.push(if line.starts_with("Testing Time: ") { "Testing Time: ".to_owned() } else { line });
    }
    kept
}
