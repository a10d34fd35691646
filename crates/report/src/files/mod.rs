//! Reports in files, for other programs. Each format is a module; all are written after the run.

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

/// Which reports are written, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// lit's JSON (`-o`).
    pub json: Option<PathBuf>,
    /// XML for CI servers.
    pub xunit: Option<PathBuf>,
    /// The same for readers with a schema.
    pub junit: Option<PathBuf>,
    /// LUCI's ResultDB.
    pub resultdb: Option<PathBuf>,
    /// Chrome's tracing format.
    pub time_trace: Option<PathBuf>,
    /// What ran when, for running it again.
    pub record: Option<PathBuf>,
    /// A page for people.
    pub html: Option<PathBuf>,
    /// Whether failures are told to GitHub Actions, on standard output.
    pub github: bool,
    /// Whether only tests that failed are reported.
    pub failures_only: bool,
    /// Whether the XML tells of each test that was left out why, where lit has one text for all.
    pub skip_reasons: bool,
    /// Whether the JSON tells what each RUN line took, which lit does not.
    pub line_times: bool,
    /// Whether files get a unique part in their name, so that none is overwritten.
    pub unique_names: bool,
}

impl Requested {
    /// Whose output the requested reports contain.
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
    /// Whether something is written that has the output of failures.
    fn tells_failures(&self) -> bool {
        self.html.is_some() || self.junit.is_some() || self.github
    }
}

/// What all formats are written from.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Wall time of the run.
    pub elapsed: Duration,
    /// The lit that is followed; its version is part of the reports.
    pub lit_version: (u32, u32, u32),
    /// Its rules.
    pub dialect: Dialect,
    /// Result codes.
    pub table: &'a VerdictTable,
    /// Why the run ended.
    pub end: RunEnd,
    /// Whether reasons of skips are told one by one.
    pub skip_reasons: bool,
    /// Whether the JSON has the time of each RUN line.
    pub line_times: bool,
}

/// A report could not be written.
#[derive(Debug)]
pub struct WriteError {
    /// Which file.
    pub path: PathBuf,
    /// Why.
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

/// Writes all requested reports of these tests. One that cannot be written does not keep the others from it.
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
        // lit sorts the list that all reports share, so those that follow come in this order.
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
        // A hasher's random key is randomness enough for a name.
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

/// Whether a test ran, as far as reports of what ran are concerned.
fn was_executed(record: &TestRecord<'_>) -> bool {
    !matches!(record.outcome.verdict, Verdict::EXCLUDED | Verdict::SKIPPED)
}

fn is_skip(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::EXCLUDED | Verdict::SKIPPED | Verdict::UNSUPPORTED)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
