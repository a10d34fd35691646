//! A Python that runs lit for comparisons, and random inputs for it.
#![allow(dead_code, reason = "no test uses all of it")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hotstart_lit::config::Session;
use hotstart_model::Dialect;
use serde_json::{Value, json};

/// A running `driver.py`.
pub struct Driver {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Driver {
    /// Starts it; `package` is a directory with a `lit` package to use instead of the Python's own.
    pub fn start(package: Option<&Path>) -> Driver {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/driver.py");
        let mut command = Command::new(python());
        command.arg(script).env_remove("HOTSTART_LIT_PACKAGE").env("PYTHONDONTWRITEBYTECODE", "1");
        if let Some(package) = package {
            command.env("HOTSTART_LIT_PACKAGE", package);
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the Python with lit starts");
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Driver { child, requests, answers }
    }

    /// Sends a request and waits for the answer.
    pub fn ask(&mut self, request: &Value) -> Value {
        let requests = self.requests.as_mut().expect("open until dropped");
        writeln!(requests, "{request}").expect("the driver reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the driver answers");
        serde_json::from_str(&line).expect("the driver answers in JSON; see its message above")
    }

    /// Returns the rules of the driver's package.
    pub fn dialect(&mut self) -> Dialect {
        match self.ask(&json!({"op": "version"})).as_u64() {
            Some(..20) => Dialect::V19,
            _ => Dialect::V23,
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The end of input ends the driver.
        self.requests = None;
        let _ = self.child.wait();
    }
}

fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("HOTSTART_LIT_PYTHON") {
        return python.into();
    }
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    assert!(
        python.exists(),
        "these tests need a Python with the lit package: run `make venv`, or set HOTSTART_LIT_PYTHON"
    );
    python
}

/// Returns the number of inputs to try: HOTSTART_PROPERTY_SCRIPTS, or `few`.
pub fn count(few: usize) -> usize {
    std::env::var("HOTSTART_PROPERTY_SCRIPTS").ok().map_or(few, |n| n.parse().expect("a number"))
}

/// Returns the packages to compare with: the Python's own, and an old one if HOTSTART_LIT_19 names its directory.
pub fn packages() -> Vec<Option<PathBuf>> {
    let mut packages = vec![None];
    packages.extend(std::env::var_os("HOTSTART_LIT_19").map(|dir| Some(dir.into())));
    packages
}

/// Random numbers that are the same in every run.
pub struct Random(u64);

impl Random {
    /// Starts a sequence, which HOTSTART_PROPERTY_SEED changes.
    pub fn new(seed: u64) -> Self {
        let other = std::env::var("HOTSTART_PROPERTY_SEED").ok().map_or(0, |n| n.parse().expect("a number"));
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ other)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    /// Returns one of these.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// Returns up to `most` of these, joined.
    pub fn join(&mut self, of: &[&str], most: usize) -> String {
        let count = self.below(most + 1);
        (0..count).map(|_| self.pick(of)).collect()
    }
}

/// Returns the session of a run that executes nothing.
pub fn session(dialect: Dialect) -> Session {
    Session {
        native_shell: false,
        diagnose: None,
        lit_version: (0, 0, 0),
        lit_version_text: String::new(),
        dialect,
        package_dir: "/".into(),
        python: "/".into(),
        bash: None,
        params: Default::default(),
        valgrind_args: Vec::new(),
        per_test_coverage: false,
        parallelism_groups: Default::default(),
        max_individual_test_time: None,
        tmp_dir: None,
    }
}

/// Converts a JSON list of strings.
pub fn strings(value: &Value) -> Vec<String> {
    value.as_array().expect("a list").iter().map(|item| item.as_str().expect("a string").to_owned()).collect()
}

/// Reduces a traceback to the exception that ended the test; its frames are lit's own.
pub fn last_line_only(output: &str) -> String {
    if !output.starts_with("Exception during script execution:\n") {
        return output.to_owned();
    }
    let frames = output.rsplit("Traceback (most recent call last):\n").next().unwrap_or_default();
    frames.lines().skip_while(|line| line.starts_with("  ")).collect::<Vec<_>>().join("\n")
}

/// Returns lit's answer, with its internal form of commands parsed.
pub fn normalized(answer: &Value) -> Value {
    if let Some(output) = answer["output"].as_str() {
        return json!({"code": answer["code"], "output": last_line_only(output)});
    }
    let take_apart = |line: String| {
        let parts = line.strip_prefix("%dbg(").and_then(|rest| rest.split_once(')'));
        match parts.filter(|(label, _)| !label.contains(['\'', '"'])) {
            Some((label, text)) => (label.to_owned(), text.trim_start().to_owned()),
            None => ("command line".to_owned(), line),
        }
    };
    let commands: Vec<_> = strings(&answer["commands"]).into_iter().map(take_apart).collect();
    json!({"commands": commands, "expected_to_fail": answer["expected_to_fail"]})
}
