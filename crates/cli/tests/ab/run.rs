//! Runs of the real binary in a private directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A directory for the files of a test; removed when dropped.
pub struct Place(tempfile::TempDir);

/// The output and the exit code of a finished run.
#[derive(Debug)]
pub struct Run {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
}

impl Place {
    pub fn new() -> Self {
        Place(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns a `hotstart ab` command: the options, then `--` and the command lines, each for `sh -c`.
    pub fn command(&self, options: &[&str], scripts: &[&str]) -> Command {
        // Ignored signals do not stop it.
        let mut command = Command::new("/usr/bin/env");
        command.args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_hotstart")]);
        command.arg("ab").args(options).current_dir(self.0.path());
        for script in scripts {
            command.args(["--", "sh", "-c", script]);
        }
        command
    }

    pub fn run(&self, options: &[&str], scripts: &[&str]) -> Run {
        Run::from(self.command(options, scripts).output().expect("hotstart starts"))
    }

    /// Reads a JSON report.
    pub fn json(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.path(name)).expect("the report was written");
        serde_json::from_str(&text).expect("it is JSON")
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Run {
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code(),
        }
    }
}

impl Run {
    /// Asserts that the run failed with a message that contains `text`.
    pub fn fails_saying(&self, text: &str) {
        assert_eq!(self.code, Some(2), "{self:#?}");
        assert!(self.err.contains(text), "{text:?} is not in the errors of {self:#?}");
    }
}

/// Returns the number of runs that a report has of a command.
pub fn runs(report: &Value, command: usize) -> usize {
    report["commands"][command]["runs"].as_array().expect("a list of runs").len()
}

/// Waits for the process ID that a command writes to a file.
pub fn await_pid(path: &Path) -> i32 {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') {
            return text.trim().parse().expect("a process number");
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{} does not appear", path.display());
        std::thread::yield_now();
    }
}

/// Waits until a process is gone or is only a zombie. Fails after ten seconds.
pub fn await_end_of(pid: i32) {
    let begun = Instant::now();
    let running = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    };
    while running() {
        assert!(begun.elapsed() < Duration::from_secs(10), "process {pid} is still there");
        std::thread::yield_now();
    }
}
