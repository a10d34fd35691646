//! Report files. Each format is a module; all are written after the run.

mod json;
mod page;
pub mod record;
mod resultdb;
mod time_trace;
mod xunit;

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotstart_model::{Dialect, RunEnd, Verdict, VerdictTable};

use crate::catalog::sort_by_suite_and_path;
use crate::{KeepOutput, TestRecord};

pub use page::{Facts, StartRow, write_page};

/// The requested reports and their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// lit's JSON (`-o`).
    pub json: Option<PathBuf>,
    /// lit's XML for CI servers.
    pub xunit: Option<PathBuf>,
    /// XML for readers that follow a schema.
    pub junit: Option<PathBuf>,
    /// LUCI's ResultDB.
    pub resultdb: Option<PathBuf>,
    /// Chrome's tracing format.
    pub time_trace: Option<PathBuf>,
    /// A record of the run, from which it can be run again.
    pub record: Option<PathBuf>,
    /// An HTML page for people.
    pub html: Option<PathBuf>,
    /// Whether to report failures to GitHub Actions, on standard output.
    pub github: bool,
    /// Whether to report failed tests only.
    pub failures_only: bool,
    /// Whether the XML gives each skipped test's own reason, where lit has one text for all.
    pub skip_reasons: bool,
    /// Whether the JSON contains the time of each RUN line, unlike lit's.
    pub line_times: bool,
    /// Whether file names get a unique part, so that no file is overwritten.
    pub unique_names: bool,
}

impl Requested {
    /// Returns which tests' output the requested reports contain.
    pub fn keep_output(&self) -> KeepOutput {
        match (&self.json, &self.resultdb, &self.xunit) {
            (None, None, None) if !self.tells_failures() => KeepOutput::None,
            (None, None, _) => KeepOutput::OfFailures,
            _ if self.failures_only => KeepOutput::OfFailures,
            _ => KeepOutput::OfAll,
        }
    }
}

impl Requested {
    /// Returns whether a report other than lit's contains the output of failures.
    fn tells_failures(&self) -> bool {
        self.html.is_some() || self.junit.is_some() || self.github
    }
}

/// The data of a run that all formats share.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Wall time of the run.
    pub elapsed: Duration,
    /// Version of lit, which is part of the reports.
    pub lit_version: (u32, u32, u32),
    /// That version's rules.
    pub dialect: Dialect,
    /// Result codes.
    pub table: &'a VerdictTable,
    /// The reason why the run ended.
    pub end: RunEnd,
    /// Whether each skipped test gets its own reason.
    pub skip_reasons: bool,
    /// Whether the JSON contains the time of each RUN line.
    pub line_times: bool,
}

/// A report could not be written.
#[derive(Debug)]
pub struct WriteError {
    /// The report's path.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

impl fmt::Display for WriteError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(to, "could not write report '{path}': {}; name a file that can be written", self.source)
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Writes all requested reports of these tests, also after one of them has failed. Returns the failures.
pub fn write(requested: &Requested, mut records: Vec<TestRecord<'_>>, run: &Run<'_>) -> Vec<WriteError> {
    let mut errors = Vec::new();
    if let Some(path) = &requested.record {
        let written = write_one(path, requested.unique_names, &|to| record::write(to, &records, run));
        errors.extend(written.err().map(|source| WriteError { path: path.clone(), source }));
    }
    if requested.failures_only {
        records.retain(|record| run.table.kind(record.outcome.verdict).is_failure);
    }
    let mut one = |path: &Option<PathBuf>, content: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
        if let Some(path) = path {
            let written = write_one(path, requested.unique_names, content);
            errors.extend(written.err().map(|source| WriteError { path: path.clone(), source }));
        }
    };
    one(&requested.json, &|to| json::write(to, &records, run));
    if requested.xunit.is_some() || requested.junit.is_some() {
        // lit sorts the list that all reports share, so the reports that follow have this order too.
        sort_by_suite_and_path(&mut records);
    }
    one(&requested.xunit, &|to| xunit::write(to, &records, run, xunit::Form::Lit));
    one(&requested.junit, &|to| xunit::write(to, &records, run, xunit::Form::Schema));
    one(&requested.resultdb, &|to| resultdb::write(to, &records, run));
    one(&requested.time_trace, &|to| time_trace::write(to, &records));
    errors
}

fn write_one(
    path: &Path,
    unique_name: bool,
    content: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let file = if unique_name { create_unique(path)? } else { File::create(path)? };
    let mut to = BufWriter::new(file);
    content(&mut to)?;
    to.flush()
}

/// Creates a new file whose name has eight random characters before its extension.
fn create_unique(path: &Path) -> io::Result<File> {
    const ATTEMPTS: usize = 100;
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        // A hasher's random key is random enough for a name.
        let random = RandomState::new().hash_one(0) as u32;
        let mut name = path.file_stem().unwrap_or_default().to_owned();
        name.push(format!(".{random:08x}"));
        if let Some(extension) = path.extension() {
            name.push(".");
            name.push(extension);
        }
        match create_new(path, name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            other => return other,
        }
    }
    Err(last)
}

fn create_new(path: &Path, name: OsString) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path.with_file_name(name))
}

/// Returns whether reports of executed tests include this one.
fn was_executed(record: &TestRecord<'_>) -> bool {
    !matches!(record.outcome.verdict, Verdict::EXCLUDED | Verdict::SKIPPED)
}

fn is_skip(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::EXCLUDED | Verdict::SKIPPED | Verdict::UNSUPPORTED)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
