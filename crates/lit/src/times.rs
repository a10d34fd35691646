//! `.lit_test_times.txt`: how long each test took, negative if it failed.
//!
//! Shared with lit in both directions, so its form is lit's to the letter (lit-compat 1.5).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotstart_model::{Diagnostic, Dialect, Severity};

use crate::pytext;
use crate::suite::{Suite, Test};

const FILE: &str = ".lit_test_times.txt";

/// What a file of times says, in its order.
#[derive(Debug, Default, PartialEq)]
pub struct Times {
    entries: Vec<(String, f64)>,
    places: HashMap<String, usize>,
}

/// A file of times with lines that are none.
#[derive(Debug)]
pub struct Malformed(PathBuf);

impl Malformed {
    /// What lit says of it.
    pub fn diagnostic(&self) -> Diagnostic {
        let message = format!(
            "found malformed timing data in {}; remove the file to regenerate it",
            pytext::repr(&self.0.to_string_lossy())
        );
        Diagnostic { severity: Severity::Fatal, place: Some(format!("{}:1", self.0.display())), message }
    }
}

impl Times {
    /// Reads a suite's file; there need not be one.
    pub fn read(suite: &Suite) -> Result<Times, Malformed> {
        let roots = [&suite.exec_root, &suite.source_root];
        let Some(path) = roots.iter().map(|root| root.join(FILE)).find(|path| path.exists()) else {
            return Ok(Times::default());
        };
        let Ok(bytes) = fs::read(&path) else { return Err(Malformed(path)) };
        Times::parse(&String::from_utf8_lossy(&bytes)).ok_or(Malformed(path))
    }

    fn parse(text: &str) -> Option<Times> {
        let mut times = Times::default();
        for line in text.split_inclusive('\n') {
            let line = pytext::strip_start(line.trim_end_matches(['\n', '\r']));
            let (seconds, path) = line.split_once(pytext::is_space)?;
            let path = pytext::strip_start(path);
            if path.is_empty() {
                return None;
            }
            times.set(path, seconds.parse().ok()?);
        }
        Some(times)
    }

    /// Time of a test by its path in the suite.
    pub fn get(&self, path: &str) -> Option<f64> {
        self.places.get(path).map(|&place| self.entries[place].1)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn set(&mut self, path: &str, seconds: f64) {
        match self.places.get(path) {
            Some(&place) => self.entries[place].1 = seconds,
            None => {
                self.places.insert(path.to_owned(), self.entries.len());
                self.entries.push((path.to_owned(), seconds));
            }
        }
    }

    fn render(&self) -> String {
        let mut text = String::with_capacity(self.entries.len() * 48);
        for (path, seconds) in &self.entries {
            push_exponential(&mut text, *seconds);
            text.push(' ');
            text.push_str(path);
            text.push('\n');
        }
        text
    }
}

/// Appends a number as C's `%e` does.
fn push_exponential(text: &mut String, value: f64) {
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        text.push_str(if value < 0.0 { "-" } else { "" });
        text.push_str(name);
        return;
    }
    let digits = format!("{value:.6e}");
    let (mantissa, exponent) = digits.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("an integer");
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(text, "{mantissa}e{sign}{:02}", exponent.abs());
}

/// Adds the times of finished tests to their suites' files. Returns warnings about files that cannot be written.
pub fn record<'t>(
    finished: impl Iterator<Item = (&'t Test, Duration, bool)>,
    dialect: Dialect,
) -> Result<Vec<Diagnostic>, Malformed> {
    let mut by_root: Vec<(&Path, Times)> = Vec::new();
    for (test, elapsed, failed) in finished {
        let suite = test.suite();
        let place = match by_root.iter().position(|(root, _)| *root == suite.exec_root) {
            Some(place) => place,
            None => {
                by_root.push((&suite.exec_root, Times::read(suite)?));
                by_root.len() - 1
            }
        };
        let seconds = match (failed, dialect) {
            (false, _) => elapsed.as_secs_f64(),
            (true, Dialect::V19) => -elapsed.as_secs_f64(),
            // A failure is known by its sign, which zero has not.
            (true, Dialect::V23) => (-elapsed.as_secs_f64()).min(-1e-6),
        };
        by_root[place].1.set(&test.path_text(), seconds);
    }
    let save = |(root, times): (&Path, Times)| {
        let path = root.join(FILE);
        fs::write(&path, times.render()).err().map(|_| Diagnostic {
            severity: Severity::Warning,
            place: Some(format!("{}:1", path.display())),
            message: format!("Could not save test time: {}", path.display()),
        })
    };
    Ok(by_root.into_iter().filter_map(save).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(value: f64) -> String {
        let mut text = String::new();
        push_exponential(&mut text, value);
        text
    }

    #[test]
    fn numbers_are_written_as_c_does() {
        assert_eq!(exponential(0.012_496_47), "1.249647e-02");
        assert_eq!(exponential(0.0), "0.000000e+00");
        assert_eq!(exponential(-123.0), "-1.230000e+02");
        assert_eq!(exponential(1e-100), "1.000000e-100");
    }

    #[test]
    fn old_entries_keep_their_place() {
        let mut times = Times::parse("1.0e-1 a/b c.ll\n-2 d.ll\n").unwrap();
        assert_eq!(times.get("a/b c.ll"), Some(0.1));
        times.set("e", 3.0);
        times.set("d.ll", 4.0);
        assert_eq!(times.render(), "1.000000e-01 a/b c.ll\n4.000000e+00 d.ll\n3.000000e+00 e\n");
    }

    #[test]
    fn lines_that_are_no_times_are_noticed() {
        assert_eq!(Times::parse("x a.ll\n"), None);
        assert_eq!(Times::parse("1.0\n"), None);
        assert_eq!(Times::parse("1.0 \n"), None);
        assert_eq!(Times::parse("\n"), None);
    }
}
