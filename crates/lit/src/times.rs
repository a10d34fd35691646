//! `.lit_test_times.txt`: the seconds that each test took, negative if it failed.
//!
//! lit and hotstart read each other's files, so the format is lit's to the byte (docs/reference/lit-compat.md, 1.5).

use std::fmt::Write as _;
use std::fs;
use std::hash::BuildHasher;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hashbrown::{DefaultHashBuilder, HashTable, hash_table};
use hotstart_model::{Diagnostic, Dialect, Severity};
use hotstart_python::{repr, text};

use crate::suite::{Suite, Test};

const FILE: &str = ".lit_test_times.txt";

/// The content of a file of times, in its order.
///
/// A build tree's file has a line for each test that ever ran there. Each run, also of a single test, reads it twice and
/// writes it once. So its text is kept whole, and unchanged parts are copied.
#[derive(Debug, Default)]
pub struct Times {
    /// The file's text, followed by the paths that were added.
    text: String,
    entries: Vec<Entry>,
    /// Places in `entries` by path.
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

#[derive(Debug)]
struct Entry {
    /// Range in the text, like the next field.
    path: Range<usize>,
    /// The whole line, if it is already in its final form.
    written: Option<Range<usize>>,
    seconds: f64,
}

/// Error: a file of times with malformed lines.
#[derive(Debug)]
pub struct Malformed(PathBuf);

impl Malformed {
    /// Returns lit's message.
    pub fn diagnostic(&self) -> Diagnostic {
        let message = format!(
            "found malformed timing data in {}; remove the file to regenerate it",
            repr(&self.0.to_string_lossy())
        );
        Diagnostic { severity: Severity::Fatal, place: Some(format!("{}:1", self.0.display())), message }
    }
}

impl Times {
    /// Reads a suite's file. A missing file is empty.
    pub fn read(suite: &Suite) -> Result<Times, Malformed> {
        let roots = [&suite.exec_root, &suite.source_root];
        let Some(path) = roots.iter().map(|root| root.join(FILE)).find(|path| path.exists()) else {
            return Ok(Times::default());
        };
        let Ok(bytes) = fs::read(&path) else { return Err(Malformed(path)) };
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Times::parse(text).ok_or(Malformed(path))
    }

    fn parse(text: String) -> Option<Times> {
        let mut times = Times::default();
        // Lines are seldom shorter.
        times.entries.reserve(text.len() / 48);
        times.places.reserve(text.len() / 48, |_| 0);
        let mut next = 0;
        for whole in text.split_inclusive('\n') {
            let start = next;
            next += whole.len();
            let line = text::strip_start(whole.trim_end_matches(['\n', '\r']));
            let (number, rest) = line.split_once(text::is_space)?;
            let path = text::strip_start(rest);
            if path.is_empty() {
                return None;
            }
            let seconds = number.parse().ok()?;
            let is_as_written = whole.len() == number.len() + path.len() + 2
                && whole.ends_with('\n')
                && whole.as_bytes()[number.len()] == b' '
                && is_exponential(number);
            let end = start + whole.trim_end_matches(['\n', '\r']).len();
            let entry =
                Entry { path: end - path.len()..end, written: is_as_written.then_some(start..next), seconds };
            times.put(&text, entry);
        }
        times.text = text;
        Some(times)
    }

    /// Returns the time of a test, in seconds, by its path in the suite.
    pub fn get(&self, path: &str) -> Option<f64> {
        let is_it = |&place: &u32| self.text[self.entries[place as usize].path.clone()] == *path;
        let place = self.places.find(self.hasher.hash_one(path), is_it)?;
        Some(self.entries[*place as usize].seconds)
    }

    /// Returns whether no times are known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn set(&mut self, path: &str, seconds: f64) {
        let start = self.text.len();
        self.text.push_str(path);
        let text = std::mem::take(&mut self.text);
        self.put(&text, Entry { path: start..text.len(), written: None, seconds });
        self.text = text;
    }

    /// Adds an entry for a path in `text`, or changes the existing one.
    fn put(&mut self, text: &str, entry: Entry) {
        let Times { entries, places, hasher, .. } = self;
        let path_of = |entry: &Entry| &text[entry.path.clone()];
        let found = places.entry(
            hasher.hash_one(path_of(&entry)),
            |&place| path_of(&entries[place as usize]) == path_of(&entry),
            |&place| hasher.hash_one(path_of(&entries[place as usize])),
        );
        match found {
            hash_table::Entry::Occupied(place) => {
                let old = &mut entries[*place.get() as usize];
                old.seconds = entry.seconds;
                old.written = None;
            }
            hash_table::Entry::Vacant(place) => {
                place.insert(entries.len() as u32);
                entries.push(entry);
            }
        }
    }

    fn render(&self) -> String {
        let mut text = String::with_capacity(self.text.len() + self.entries.len());
        for entry in &self.entries {
            if let Some(line) = &entry.written {
                text.push_str(&self.text[line.clone()]);
                continue;
            }
            push_exponential(&mut text, entry.seconds);
            text.push(' ');
            text.push_str(&self.text[entry.path.clone()]);
            text.push('\n');
        }
        text
    }
}

/// Returns whether C's `%e` would write the number with the same characters. All digits of such a number survive a round
/// trip; exponents of three digits are left to [`push_exponential`].
fn is_exponential(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number).as_bytes();
    let [first, b'.', middle @ .., b'e', b'+' | b'-', tens, ones] = digits else { return false };
    let are_digits = middle.len() == 6 && middle.iter().chain([first, tens, ones]).all(u8::is_ascii_digit);
    are_digits && !number.ends_with("e-00") && (*first != b'0' || digits == b"0.000000e+00")
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
    // Tests of a suite are consecutive; comparing paths for each would take longer than all the rest.
    let mut last: Option<(&Arc<Suite>, usize)> = None;
    for (test, elapsed, failed) in finished {
        let suite = test.suite();
        let same = last.filter(|(before, _)| Arc::ptr_eq(before, suite)).map(|(_, place)| place);
        let known = || by_root.iter().position(|(root, _)| *root == suite.exec_root);
        let place = match same.or_else(known) {
            Some(place) => place,
            None => {
                by_root.push((&suite.exec_root, Times::read(suite)?));
                by_root.len() - 1
            }
        };
        last = Some((suite, place));
        let seconds = match (failed, dialect) {
            (false, _) => elapsed.as_secs_f64(),
            (true, Dialect::V19) => -elapsed.as_secs_f64(),
            // The sign marks a failure, and zero has none.
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
        let mut times = parse("1.0e-1 a/b c.ll\n-2 d.ll\n").unwrap();
        assert_eq!(times.get("a/b c.ll"), Some(0.1));
        times.set("e", 3.0);
        times.set("d.ll", 4.0);
        assert_eq!(times.render(), "1.000000e-01 a/b c.ll\n4.000000e+00 d.ll\n3.000000e+00 e\n");
    }

    fn parse(text: &str) -> Option<Times> {
        Times::parse(text.to_owned())
    }

    #[test]
    fn lines_are_written_as_lit_writes_them() {
        let lines = "1.234567e-02 a\n0.000000e+00 b\n-1.000000e+02 c d\n";
        assert_eq!(parse(lines).unwrap().render(), lines, "nothing to change");
        let odd =
            " 1.234567e-02 a\n0.000000e-05 b\r\n1.5\tc\n2.500000e+00  d\n01.00000e+00 e\n1.000000e-00 f";
        let even = "1.234567e-02 a\n0.000000e+00 b\n1.500000e+00 c\n2.500000e+00 d\n1.000000e+00 e\n1.000000e+00 f\n";
        assert_eq!(parse(odd).unwrap().render(), even);
    }

    #[test]
    fn the_last_line_about_a_test_counts_in_the_place_of_the_first() {
        let mut times = parse("1.000000e+00 a\n2.000000e+00 b\n3.000000e+00 a\n").unwrap();
        assert_eq!((times.get("a"), times.get("b"), times.get("c")), (Some(3.0), Some(2.0), None));
        times.set("c", 4.0);
        times.set("c", 5.0);
        assert_eq!(times.render(), "3.000000e+00 a\n2.000000e+00 b\n5.000000e+00 c\n");
    }

    #[test]
    fn lines_that_are_no_times_are_noticed() {
        assert!(parse("x a.ll\n").is_none());
        assert!(parse("1.0\n").is_none());
        assert!(parse("1.0 \n").is_none());
        assert!(parse("\n").is_none());
    }
}
