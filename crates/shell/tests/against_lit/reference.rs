//! lit itself, in one persistent Python process.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hotstart_model::{Dialect, Environment};
use serde_json::{Value, json};

use crate::compare::Seen;

/// The running reference.
pub struct Reference {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The dialect of this lit.
    pub dialect: Dialect,
    /// The directory of its package.
    pub package: PathBuf,
    /// The Python that runs it.
    pub python: String,
}

impl Reference {
    /// Starts the driver.
    pub fn start() -> Reference {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let default = manifest.join("../../.venv/bin/python");
        let python = std::env::var_os("HOTSTART_LIT_PYTHON").map_or(default, PathBuf::from);
        let driver = manifest.join("tests/against_lit/lit_driver.py");
        let mut process = Command::new(&python)
            .arg(driver)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "no python with lit at {}: {error}; run `make venv` or set HOTSTART_LIT_PYTHON",
                    python.display()
                )
            });
        let requests = process.stdin.take();
        let mut answers = BufReader::new(process.stdout.take().expect("piped"));
        let hello = line(&mut answers).expect("the driver imports lit; run `make venv` if it does not");
        let dialect = if hello["v23"] == true { Dialect::V23 } else { Dialect::V19 };
        let package = hello["package"].as_str().expect("a path").into();
        let python = hello["python"].as_str().expect("a path").to_owned();
        Reference { process, requests, answers, dialect, package, python }
    }

    /// Runs a script by lit's shell; `None` if it never ends there.
    pub fn run(
        &mut self,
        commands: &[String],
        cwd: &Path,
        env: &Environment,
        pipefail: bool,
    ) -> Option<Seen> {
        let vars: serde_json::Map<String, Value> =
            env.iter().map(|(k, v)| (k.to_string_lossy().into(), v.to_string_lossy().into())).collect();
        let request = json!({ "commands": commands, "cwd": cwd, "env": vars, "pipefail": pipefail });
        let requests = self.requests.as_mut().expect("open until dropped");
        writeln!(requests, "{request}").expect("the driver reads");
        let answer = line(&mut self.answers).expect("the driver answers");
        (answer["stuck"] != true).then(|| Seen::of_answer(&answer))
    }
}

impl Reference {
    /// Returns status and output of lit's `diff`.
    #[allow(dead_code, reason = "only one of the tests that share this asks")]
    pub fn diff(&mut self, args: &[&str], cwd: &Path) -> (i32, String) {
        let requests = self.requests.as_mut().expect("open until dropped");
        writeln!(requests, "{}", json!({ "diff": args, "cwd": cwd })).expect("the driver reads");
        let answer = line(&mut self.answers).expect("the driver answers");
        let status = answer["status"].as_i64().unwrap_or_else(|| panic!("the driver failed: {answer}"));
        (status as i32, answer["stdout"].as_str().expect("text").to_owned())
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.process.wait();
    }
}

fn line(answers: &mut impl BufRead) -> Option<Value> {
    let mut text = String::new();
    answers.read_line(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
