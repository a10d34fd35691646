//! A real Python that answers questions, and random inputs for them.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hotstart_python::Exception;
use serde_json::{Value, json};

/// Returns the Python with which all is compared.
pub fn python() -> PathBuf {
    std::env::var_os("HOTSTART_LIT_PYTHON")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python"), PathBuf::from)
}

/// A running `driver.py`.
pub struct Driver {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Driver {
    /// Starts the driver.
    pub fn start() -> Driver {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = python();
        let mut child = Command::new(&python)
            .arg(manifest.join("tests/against_python/driver.py"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{}: {error}; run `make venv`, or set HOTSTART_LIT_PYTHON to a Python",
                    python.display()
                )
            });
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Driver { child, requests, answers }
    }

    /// Returns Python's answer to each case: `value`, or the `error` that it raised.
    pub fn ask(&mut self, operation: &str, cases: &[Value]) -> Vec<Value> {
        self.send(&json!({"op": operation, "cases": cases}))
    }

    /// Does the same in a directory.
    pub fn ask_in(&mut self, cwd: &Path, operation: &str, cases: &[Value]) -> Vec<Value> {
        self.send(&json!({"op": operation, "cases": cases, "cwd": cwd}))
    }

    fn send(&mut self, request: &Value) -> Vec<Value> {
        let requests = self.requests.as_mut().expect("open until dropped");
        writeln!(requests, "{request}").expect("the driver reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the driver answers");
        serde_json::from_str(&line).expect("the driver answers in JSON; see its message above")
    }

    /// Compares our answer with Python's for generated cases. `None` is a case that this crate does not support.
    /// Returns the number of those.
    pub fn compare(
        &mut self,
        operation: &str,
        total: usize,
        mut draw: impl FnMut() -> Value,
        ours: impl Fn(&Value) -> Option<Value>,
    ) -> usize {
        const BATCH: usize = 500;
        let mut refused = 0;
        for _ in 0..total.div_ceil(BATCH) {
            let cases: Vec<Value> = (0..BATCH.min(total)).map(|_| draw()).collect();
            for (case, theirs) in cases.iter().zip(self.ask(operation, &cases)) {
                match ours(case) {
                    Some(ours) => assert_eq!(ours, theirs, "{operation} of {case}"),
                    None => refused += 1,
                }
            }
        }
        refused
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The end of its input ends the driver.
        self.requests = None;
        let _ = self.child.wait();
    }
}

/// Returns a value, or Python's exception, in the driver's form. `None` if this crate does not support the case.
pub fn told(result: Result<Value, Exception>) -> Option<Value> {
    match result {
        Ok(value) => Some(json!({ "value": value })),
        Err(error) if error.is_unsupported() => None,
        Err(error) => Some(json!({"error": error.to_string()})),
    }
}

/// Returns the number of inputs to try: HOTSTART_PROPERTY_SCRIPTS, or else `few`.
pub fn count(few: usize) -> usize {
    std::env::var("HOTSTART_PROPERTY_SCRIPTS").ok().map_or(few, |n| n.parse().expect("a number"))
}

/// Random numbers that are equal in every run.
pub struct Random(u64);

impl Random {
    /// Begins a sequence. HOTSTART_PROPERTY_SEED changes it.
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

    /// Returns one of `of`.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// Returns up to `most` of these, joined.
    pub fn join(&mut self, of: &[&str], most: usize) -> String {
        let count = self.below(most + 1);
        (0..count).map(|_| self.pick(of)).collect()
    }
}
