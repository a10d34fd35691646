//! `.lit_test_times.txt`: the seconds that each test took, negative if it failed.
//!
//! lit and hotstart read each other's files, so the format is lit's to the byte (docs/reference/lit-compat.md, 1.5).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::hash::BuildHasher;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hashbrown::{DefaultHashBuilder, HashTable, hash_table};
use hotstart_model::{Diagnostic, Dialect, Severity};
use hotstart_python::{repr, text};

use crate::suite::{Suite, Test};

const FILE: &str = ".lit_test_times.txt";

/// The content of a file of times, in its order.
///
/// A build tree's file has a line for each test that ever ran there, and each run needs it, also that of a single test. So its text is kept
/// whole, lines are read only as far as necessary, and unchanged parts are copied.
#[derive(Debug, Default)]
pub struct Times {
    source: Option<Source>,
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
    time: Time,
}

#[derive(Debug)]
enum Time {
    /// It is in the text, at the start of this line, which is already in its final form.
    Written(Range<usize>),
    Seconds(f64),
}

impl Time {
    fn seconds(&self, text: &str) -> f64 {
        match self {
            Time::Written(line) => {
                let number = text[line.clone()].split(' ').next().expect("a first part");
                number.parse().expect("`is_exponential` holds")
            }
            Time::Seconds(seconds) => *seconds,
        }
    }
}

/// A file, as it was when it was read.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    path: PathBuf,
    device: u64,
    inode: u64,
    length: u64,
    /// Times of modification and of the last change, which nobody can set back.
    changed: [(i64, i64); 2],
}

impl Source {
    fn new(path: &Path, metadata: &Metadata) -> Source {
        Source {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            changed: [(metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec())],
        }
    }
}

/// The times of the last runs, by the indices of their suites, kept for when the new ones are recorded.
#[derive(Debug, Default)]
pub struct Recalled(Mutex<HashMap<usize, Times>>);

impl Recalled {
    pub(crate) fn new(times: HashMap<usize, Times>) -> Recalled {
        Recalled(Mutex::new(times))
    }

    /// Takes a suite's times, if its file is still the one that was read.
    fn take(&self, suite: &Suite) -> Option<Times> {
        let times = self.0.lock().expect("no panic while locked").remove(&suite.index)?;
        (times.source == source(suite)).then_some(times)
    }
}

/// Returns a suite's file of times; `None` if there is none.
fn source(suite: &Suite) -> Option<Source> {
    let found = |root: &PathBuf| {
        let path = root.join(FILE);
        fs::metadata(&path).ok().map(|metadata| Source::new(&path, &metadata))
    };
    [&suite.exec_root, &suite.source_root].into_iter().find_map(found)
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
        let Some(source) = source(suite) else { return Ok(Times::default()) };
        let Ok(bytes) = fs::read(&source.path) else { return Err(Malformed(source.path)) };
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        match Times::parse(text) {
            Some(times) => Ok(Times { source: Some(source), ..times }),
            None => Err(Malformed(source.path)),
        }
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
            let entry = match path_of_written(whole.as_bytes()) {
                Some(path) => Entry { path: start + path..next - 1, time: Time::Written(start..next) },
                None => odd_line(start, whole)?,
            };
            times.put(&text, entry);
        }
        times.text = text;
        Some(times)
    }

    /// Returns the time of a test, in seconds, by its path in the suite.
    pub fn get(&self, path: &str) -> Option<f64> {
        let is_it = |&place: &u32| self.text[self.entries[place as usize].path.clone()] == *path;
        let place = self.places.find(self.hasher.hash_one(path), is_it)?;
        Some(self.entries[*place as usize].time.seconds(&self.text))
    }

    /// Returns whether no times are known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn set(&mut self, path: &str, seconds: f64) {
        let start = self.text.len();
        self.text.push_str(path);
        let text = std::mem::take(&mut self.text);
        self.put(&text, Entry { path: start..text.len(), time: Time::Seconds(seconds) });
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
                // The path of the first line stays.
                entries[*place.get() as usize].time = Time::Seconds(entry.time.seconds(text));
            }
            hash_table::Entry::Vacant(place) => {
                place.insert(entries.len() as u32);
                entries.push(entry);
            }
        }
    }

    fn render(&self) -> String {
        let mut text = String::with_capacity(self.text.len() + self.entries.len());
        // Lines next to each other are copied together.
        let mut copied = 0..0;
        for Entry { path, time } in &self.entries {
            match time {
                Time::Written(line) if line.start == copied.end => copied.end = line.end,
                Time::Written(line) => {
                    text.push_str(&self.text[std::mem::replace(&mut copied, line.clone())])
                }
                Time::Seconds(seconds) => {
                    text.push_str(&self.text[std::mem::take(&mut copied)]);
                    push_exponential(&mut text, *seconds);
                    text.push(' ');
                    text.push_str(&self.text[path.clone()]);
                    text.push('\n');
                }
            }
        }
        text.push_str(&self.text[copied]);
        text
    }
}

/// Returns where the path begins in a line that is as lit writes it. `None` for others, and if in doubt.
fn path_of_written(line: &[u8]) -> Option<usize> {
    let length = 12 + usize::from(line.first() == Some(&b'-'));
    let (number, rest) = line.split_at_checked(length)?;
    let [b' ', b'!'..=b'~', .., last, b'\n'] = rest else { return None };
    (is_exponential(number) && *last != b'\r').then_some(length + 1)
}

/// Reads a line of another form, which begins at `start` of the text. `None` if it is malformed.
fn odd_line(start: usize, whole: &str) -> Option<Entry> {
    let line = whole.trim_end_matches(['\n', '\r']);
    let end = start + line.len();
    let (number, rest) = text::strip_start(line).split_once(text::is_space)?;
    let path = text::strip_start(rest);
    let seconds = number.parse().ok()?;
    (!path.is_empty()).then_some(Entry { path: end - path.len()..end, time: Time::Seconds(seconds) })
}

/// Returns whether C's `%e` would write the number with the same characters. All digits of such a number survive a round
/// trip; exponents of three digits are left to [`push_exponential`].
fn is_exponential(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let [first, b'.', middle @ .., b'e', b'+' | b'-', tens, ones] = digits else { return false };
    let are_digits = middle.len() == 6 && middle.iter().chain([first, tens, ones]).all(u8::is_ascii_digit);
    are_digits && !number.ends_with(b"e-00") && (*first != b'0' || digits == b"0.000000e+00")
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

/// Adds the times of finished tests to their suites' files, which are read again if they are not as they were recalled. Returns warnings
/// about files that cannot be written.
pub fn record<'t>(
    finished: impl Iterator<Item = (&'t Test, Duration, bool)>,
    dialect: Dialect,
    recalled: &Recalled,
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
                let times = recalled.take(suite).map_or_else(|| Times::read(suite), Ok)?;
                by_root.push((&suite.exec_root, times));
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
    fn lines_are_copied_around_those_that_change() {
        let line = |seconds: u32, path: &str| format!("{seconds}.000000e+00 {path}\n");
        let all: String = (0..9).map(|i| line(i, &format!("dir/test-{i}"))).collect();
        for changed in 0..1 << 9 {
            let (mut times, mut expected) = (parse(&all).unwrap(), String::new());
            for i in 0..9 {
                let (path, is_changed) = (format!("dir/test-{i}"), changed >> i & 1 == 1);
                if is_changed {
                    times.set(&path, 7.0);
                }
                assert_eq!(times.get(&path), Some(if is_changed { 7.0 } else { f64::from(i) }));
                expected += &line(if is_changed { 7 } else { i }, &path);
            }
            assert_eq!(times.render(), expected);
        }
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
