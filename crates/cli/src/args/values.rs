//! Parses values of options as Python does; the errors are lit's messages.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use hotstart_lit::settings::Order;
use hotstart_python::number::{float, int};
use hotstart_python::path::normpath;
use hotstart_python::repr;
use hotstart_report::histogram::Slowest;
use hotstart_report::{DiagnosticLevel, Shown};

use super::Invocation;

/// Decodes a value for Python and for messages: bytes that are not UTF-8 are replaced.
pub(super) fn text(value: &OsStr) -> String {
    value.to_string_lossy().into_owned()
}

/// Parses an integer above zero.
pub(super) fn positive(value: &OsStr) -> Result<usize, String> {
    match value.to_str().and_then(|text| int(text, 10)) {
        Some(number) if number > 0 => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
        _ => Err(format!("requires positive integer, but found '{}'", text(value))),
    }
}

/// Checks a regular expression of Python's.
pub(super) fn pattern(value: &OsStr, invocation: &Invocation<'_>) -> Result<String, String> {
    let pattern = text(value);
    match (invocation.check_regex)(&pattern) {
        Ok(()) => Ok(pattern),
        Err(reason) => Err(format!("invalid regular expression: '{pattern}', {reason}")),
    }
}

/// Parses an integer from zero.
pub(super) fn non_negative(value: &OsStr) -> Result<u64, String> {
    match value.to_str().and_then(|text| int(text, 10)) {
        Some(number) if number >= 0 => Ok(u64::try_from(number).unwrap_or(u64::MAX)),
        _ => Err(format!("requires non-negative integer, but found '{}'", text(value))),
    }
}

/// Parses a real number from zero.
pub(super) fn non_negative_float(value: &OsStr) -> Result<f64, String> {
    match value.to_str().and_then(float) {
        None => Err(format!("conversion error - requires non-negative float, but found '{}'", text(value))),
        // lit's handler gives text that is not a number the same words.
        Some(number) if number >= 0.0 => Ok(number),
        Some(_) => Err(format!("requires non-negative float, but found '{}'", text(value))),
    }
}

/// Parses the number of slowest tests: a number or `all`.
pub(super) fn slowest(value: &OsStr) -> Result<Slowest, String> {
    if value.eq_ignore_ascii_case("all") {
        return Ok(Slowest::All);
    }
    positive(value).map(Slowest::Count)
}

/// Parses a level of output.
pub(super) fn shown(value: &OsStr) -> Result<Shown, String> {
    choice(
        value,
        &[
            ("off", Shown::Off),
            ("failed", Shown::Failed),
            ("failed-or-flaky", Shown::FailedOrFlaky),
            ("all", Shown::All),
        ],
    )
}

/// Parses a level of diagnostics.
pub(super) fn diagnostic_level(value: &OsStr) -> Result<DiagnosticLevel, String> {
    choice(
        value,
        &[
            ("error", DiagnosticLevel::Error),
            ("warning", DiagnosticLevel::Warning),
            ("note", DiagnosticLevel::Note),
        ],
    )
}

/// Parses an order of tests.
pub(super) fn order(value: &OsStr) -> Result<Order, String> {
    choice(value, &[("lexical", Order::Lexical), ("random", Order::Random), ("smart", Order::Smart)])
}

/// Returns the choice of this name.
pub(super) fn choice<T: Copy>(value: &OsStr, choices: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, chosen)) = choices.iter().find(|(name, _)| value == *name) {
        return Ok(*chosen);
    }
    let names: Vec<_> = choices.iter().map(|(name, _)| repr(name)).collect();
    Err(format!("invalid choice: {} (choose from {})", repr(&text(value)), names.join(", ")))
}

/// Splits a list at semicolons.
pub(super) fn semicolon_list(value: &OsStr) -> Vec<String> {
    text(value).split(';').map(str::to_owned).collect()
}

/// Splits `NAME=VALUE`; without a `=` the value is empty.
pub(super) fn parameter(value: &OsStr) -> (String, String) {
    let text = text(value);
    match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => (text, String::new()),
    }
}

/// Makes a path absolute, and resolves `.` and `..` by name alone.
pub(super) fn absolute(value: &OsStr, cwd: &Path) -> PathBuf {
    normpath(cwd.join(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_as_python_reads_them() {
        for (text, number) in [("4", 4), (" +1_0 ", 10), ("007", 7)] {
            assert_eq!(positive(OsStr::new(text)), Ok(number));
        }
        for text in ["", "0", "-1", "1.5", "1__0", "_1", "1_", "0x4", "+-1"] {
            let error = format!("requires positive integer, but found '{text}'");
            assert_eq!(positive(OsStr::new(text)), Err(error));
        }
        assert_eq!(positive(OsStr::new(&"9".repeat(50))), Ok(usize::MAX));
        assert_eq!(non_negative(OsStr::new("-0")), Ok(0));
    }

    #[test]
    fn floats_as_python_reads_them() {
        assert_eq!(non_negative_float(OsStr::new(" 1_0.5e1 ")), Ok(105.0));
        assert_eq!(non_negative_float(OsStr::new("inf")), Ok(f64::INFINITY));
        for text in ["-1", "nan"] {
            let error = format!("requires non-negative float, but found '{text}'");
            assert_eq!(non_negative_float(OsStr::new(text)), Err(error));
        }
        assert!(non_negative_float(OsStr::new("x")).unwrap_err().starts_with("conversion error - "));
    }

    #[test]
    fn paths_are_resolved_by_name() {
        let cwd = Path::new("/a/b");
        assert_eq!(absolute(OsStr::new("../c/./d"), cwd), Path::new("/a/c/d"));
        assert_eq!(absolute(OsStr::new("/x/../../y"), cwd), Path::new("/y"));
        assert_eq!(absolute(OsStr::new(""), cwd), cwd);
    }
}
