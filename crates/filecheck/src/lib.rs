//! Decides passes of LLVM's FileCheck without running it.
//!
//! The matcher has two answers: FileCheck passes and prints nothing, or "undecided". It never says that a check fails.
//! A mismatch, an error, a warning, an unknown option, and a regular expression of uncertain meaning are all undecided,
//! and the suite's own FileCheck runs with the same input. So a gap here costs time, and only a wrong pass would be a
//! fault. docs/design/filecheck.md states the rules.
//!
//! This crate starts no process, reads no file and knows no test. [`battery`] has the cases that compare a FileCheck
//! with the matcher before the matcher may replace it.
#![forbid(unsafe_code)]

pub mod battery;
mod canonical;
mod check;
mod dialect;
mod directives;
mod numeric;
mod options;
mod pattern;
pub mod pypi;
mod regex;
mod variables;
mod words;

pub use dialect::{Asked, Dialect, Ready};
pub use options::Request;

/// The reason why the matcher does not decide, for statistics and for `--explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecided(pub &'static str);

/// A result that is certain, or undecided.
pub type Certain<T> = Result<T, Undecided>;

/// FileCheck decides inputs above this size.
pub const MAX_INPUT: usize = 32 << 20;

/// Returns an undecided result.
fn undecided<T>(why: &'static str) -> Certain<T> {
    Err(Undecided(why))
}

/// A check file that was parsed for a request.
#[derive(Debug)]
pub struct Prepared {
    request: Request,
    checks: check::Checks,
}

impl Request {
    /// Parses a check file. It is undecided if FileCheck would complain about it without any input.
    pub fn prepare(self, check_file: &[u8]) -> Certain<Prepared> {
        if check_file.len() > MAX_INPUT {
            return undecided("size");
        }
        let text = canonical::canonical(check_file, self.strict_whitespace)?;
        let checks = check::Checks::parse(&self, &text)?;
        Ok(Prepared { request: self, checks })
    }

    /// Returns `Ok` if FileCheck passes with this check file and this input, with status 0 and without output.
    pub fn decide(&self, check_file: &[u8], input: &[u8]) -> Certain<()> {
        self.clone().prepare(check_file)?.decide(input)
    }
}

impl Prepared {
    /// Returns `Ok` if FileCheck passes with this input.
    pub fn decide(self, input: &[u8]) -> Certain<()> {
        if input.len() > MAX_INPUT {
            return undecided("size");
        }
        if input.is_empty() && !self.request.allow_empty {
            return undecided("empty input");
        }
        let input = canonical::canonical(input, self.request.strict_whitespace)?;
        self.checks.pass(&self.request, &input)
    }
}
