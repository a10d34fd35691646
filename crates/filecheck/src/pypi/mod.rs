//! The dialect of PyPI's `filecheck` 1.0.6, a Python program of its own with rules of its own.
//!
//! It translates each directive into one expression of Python's `re`. So does this module: the text of the expression is the same,
//! character by character (`compile`), and is matched as Python does (`regex`), in the order of that program (`run`). Its special
//! cases are followed where they are certain, such as CHECK-NOT that sees the text of the next match, too.
//!
//! Everything must be ASCII. CHECK-DAG is undecided: before the next directive the program prints a line.

mod compile;
mod directives;
mod options;
mod regex;
mod run;

pub use options::Request;

use crate::{Certain, MAX_INPUT, undecided};

/// A check file that was parsed for a request.
#[derive(Debug)]
pub struct Prepared {
    request: Request,
    directives: Vec<directives::Directive>,
}

impl Request {
    /// Parses a check file. It is undecided if filecheck would complain about it without any input.
    pub fn prepare(self, check_file: &[u8]) -> Certain<Prepared> {
        let text = plain(check_file)?;
        let directives = directives::parse(&self, text)?;
        Ok(Prepared { request: self, directives })
    }
}

impl Prepared {
    /// Returns `Ok` if filecheck passes with this input, with status 0 and without output.
    pub fn decide(&self, input: &[u8]) -> Certain<()> {
        run::pass(&self.request, &self.directives, plain(input)?)
    }
}

/// Returns a text that means the same as bytes, as UTF-8 and in lines of any convention.
fn plain(bytes: &[u8]) -> Certain<&str> {
    if bytes.len() > MAX_INPUT {
        return undecided("size");
    }
    if !bytes.iter().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~')) {
        return undecided("characters beyond ASCII, or control characters");
    }
    std::str::from_utf8(bytes).or(undecided("characters beyond ASCII, or control characters"))
}
