//! Queries an oracle that was built from `oracle.cpp`. Shared by the test and by `filecheck-compare`.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// An oracle. The first query starts it.
pub struct Oracle {
    pub path: PathBuf,
    child: Option<Child>,
}

impl Oracle {
    pub fn new(path: PathBuf) -> Self {
        Oracle { path, child: None }
    }

    /// Whether FileCheck passes.
    pub fn passes(&mut self, args: &[String], check: &[u8], input: &[u8]) -> bool {
        let path = &self.path;
        let start = || Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let asked = self.child.get_or_insert_with(|| start().expect("an oracle can be started"));
        let mut question = (args.len() as u32).to_ne_bytes().to_vec();
        for text in args.iter().map(String::as_bytes).chain([check, input]) {
            question.extend((text.len() as u32).to_ne_bytes());
            question.extend(text);
        }
        let mut answer = [0];
        let (stdin, stdout) = (asked.stdin.as_mut().expect("a pipe"), asked.stdout.as_mut().expect("a pipe"));
        if stdin.write_all(&question).and_then(|()| stdout.read_exact(&mut answer)).is_err() {
            // The library ended the oracle, as it would have ended FileCheck.
            _ = asked.wait();
            self.child = None;
        }
        answer == [1]
    }
}
