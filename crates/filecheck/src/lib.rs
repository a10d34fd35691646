//! Decides passes of LLVM's FileCheck without running it.
//!
//! The matcher answers one of two things: FileCheck passes and prints nothing, or "undecided". It never says that a
//! check fails. A mismatch, an error, a warning, an option that is not on the list, a regular expression whose meaning
//! is not certain: all are undecided, and the suite's own FileCheck is run with the same input. So a gap here costs
//! time, and only a wrong pass would be a fault. docs/design/filecheck.md states the rules.
//!
//! This crate starts no process, reads no file and knows no test. [`battery`] are the cases by which a FileCheck is
//! compared with the matcher before the matcher is believed in its place.
#![forbid(unsafe_code)]

pub mod battery;
mod canonical;
mod check;
mod directives;
mod numeric;
mod options;
mod pattern;
mod regex;
mod variables;

pub use options::Request;

/// Why the matcher does not decide. The reason is for statistics and for `--explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecided(pub &'static str);

/// A result that is certain, or undecided.
pub type Certain<T> = Result<T, Undecided>;

/// Inputs above this size are left to FileCheck.
pub const MAX_INPUT: usize = 32 << 20;

/// Shorthand for leaving a case to FileCheck.
fn undecided<T>(why: &'static str) -> Certain<T> {
    Err(Undecided(why))
}

/// A check file that was read for a request.
#[derive(Debug)]
pub struct Prepared {
    request: Request,
    checks: check::Checks,
}

impl Request {
    /// Reads a check file. What FileCheck would complain of without any input is undecided.
    pub fn prepare(self, check_file: &[u8]) -> Certain<Prepared> {
        if check_file.len() > MAX_INPUT {
            return undecided("size");
        }
        let text = canonical::canonical(check_file, self.strict_whitespace)?;
        let checks = check::Checks::parse(&self, &text)?;
        Ok(Prepared { request: self, checks })
    }

    /// Whether FileCheck passes with this check file and this input, with status 0 and without a word.
    pub fn decide(&self, check_file: &[u8], input: &[u8]) -> Certain<()> {
        self.clone().prepare(check_file)?.decide(input)
    }
}

impl Prepared {
    /// Whether FileCheck passes with this input.
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
