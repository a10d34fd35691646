//! The page of a run (`--html`): compact JSON, which the page's own script displays.
//!
//! Each figure of the tests is a column, since 50,000 objects would take four times the room. Times are integers in nanoseconds, so
//! that sums on the page equal those of the JSON report to the last digit.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hotstart_model::{LineTime, Outcome, RunEnd};
use serde::Serialize;

use super::{Run, WriteError};
use crate::TestRecord;
use crate::filecheck::{self, Check};
use crate::time_by::ToolRow;

/// Facts of the run that the page shows beside tests.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The command line.
    pub command: String,
    /// Most tests that ran at the same time.
    pub workers: usize,
    /// Parts of the run, in order, with their durations.
    pub phases: Vec<(&'static str, Duration)>,
    /// Tools that tests ran.
    pub tools: Vec<ToolRow>,
    /// Starts, by tool.
    pub starts: Vec<StartRow>,
}

/// The starts of one tool.
#[derive(Clone, Debug, Default)]
pub struct StartRow {
    /// Its path.
    pub program: String,
    /// Starts in persistent processes.
    pub resets: u64,
    /// Starts by a fork of the zygote.
    pub forks: u64,
    /// Starts by exec.
    pub cold: u64,
    /// Time that warm starts saved.
    pub saved: Duration,
    /// Reasons of cold starts, with their numbers.
    pub reasons: Vec<(String, u64)>,
}

/// Writes the page.
pub fn write_page(
    path: &Path,
    records: &[TestRecord<'_>],
    run: &Run<'_>,
    facts: &Facts,
) -> Result<(), WriteError> {
    let json = serde_json::to_string(&data(records, run, facts)).expect("texts and numbers");
    let page = hotstart_page::run_page("Test run", &json);
    fs::write(path, page).map_err(|source| WriteError { path: path.to_owned(), source })
}

#[derive(Serialize)]
struct Data<'a> {
    version: u32,
    lit: [u32; 3],
    command: &'a str,
    elapsed: u64,
    end: &'static str,
    workers: usize,
    /// Milliseconds since 1970 at which the first test began.
    began: Option<u64>,
    codes: Vec<Code<'a>>,
    suites: Vec<&'a str>,
    dirs: Vec<(usize, String)>,
    tests: Tests<'a>,
    lines: Vec<Option<Vec<Line<'a>>>>,
    failures: Vec<Failure<'a>>,
    phases: Vec<(&'static str, u64)>,
    tools: Vec<Tool<'a>>,
    starts: Vec<Start<'a>>,
}

/// A RUN line, its elapsed time, its CPU time.
type Line<'a> = (&'a str, u64, u64);

#[derive(Serialize)]
struct Code<'a> {
    name: &'a str,
    label: &'a str,
    fail: bool,
    count: usize,
}

/// A column for each figure.
#[derive(Default, Serialize)]
struct Tests<'a> {
    name: Vec<&'a str>,
    dir: Vec<usize>,
    code: Vec<u16>,
    ns: Vec<Option<u64>>,
    /// Start, in nanoseconds since the first test began.
    at: Vec<Option<u64>>,
    worker: Vec<Option<usize>>,
    /// Duration in the previous run, in nanoseconds; negative if it failed there.
    before: Vec<Option<i64>>,
}

#[derive(Serialize)]
struct Failure<'a> {
    test: usize,
    blame: &'a str,
    output: &'a str,
    checks: Vec<Sides>,
}

#[derive(Serialize)]
struct Sides {
    place: String,
    message: String,
    rows: Vec<(&'static str, String, String)>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    runs: u64,
    cpu: u64,
    wall: u64,
}

#[derive(Serialize)]
struct Start<'a> {
    program: &'a str,
    resets: u64,
    forks: u64,
    cold: u64,
    saved: u64,
    reasons: &'a [(String, u64)],
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn data<'a>(records: &'a [TestRecord<'_>], run: &Run<'a>, facts: &'a Facts) -> Data<'a> {
    let (major, minor, patch) = run.lit_version;
    let first = records.iter().filter_map(|record| record.outcome.started).min();
    let (suites, dirs, places) = directories(records);
    let tool = |row: &'a ToolRow| Tool {
        name: &row.name,
        runs: row.runs,
        cpu: nanos(row.cpu),
        wall: nanos(row.wall),
    };
    Data {
        version: 1,
        lit: [major, minor, patch],
        command: &facts.command,
        elapsed: nanos(run.elapsed),
        end: end(run.end),
        workers: facts.workers,
        began: first
            .and_then(|first| Some(first.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_millis() as u64)),
        codes: codes(records, run),
        suites,
        dirs,
        tests: columns(records, &places, first),
        lines: records.iter().map(|record| lines(record.outcome)).collect(),
        failures: failures(records, run),
        phases: facts.phases.iter().map(|(name, time)| (*name, nanos(*time))).collect(),
        tools: facts.tools.iter().map(tool).collect(),
        starts: facts.starts.iter().map(start).collect(),
    }
}

fn start(row: &StartRow) -> Start<'_> {
    let StartRow { program, resets, forks, cold, saved, reasons } = row;
    Start { program, resets: *resets, forks: *forks, cold: *cold, saved: nanos(*saved), reasons }
}

fn end(end: RunEnd) -> &'static str {
    match end {
        RunEnd::Completed => "completed",
        RunEnd::Interrupted => "interrupted",
        RunEnd::MaxFailures => "max_failures",
        RunEnd::MaxTime => "max_time",
    }
}

fn codes<'a>(records: &[TestRecord<'_>], run: &Run<'a>) -> Vec<Code<'a>> {
    let count = |verdict| records.iter().filter(|record| record.outcome.verdict == verdict).count();
    let code = |(verdict, kind): (_, &'a hotstart_model::VerdictKind)| Code {
        name: &kind.name,
        label: &kind.label,
        fail: kind.is_failure,
        count: count(verdict),
    };
    run.table.iter().map(code).collect()
}

/// Returns the names of suites, the directories in them, and the directory of each test.
fn directories<'a>(records: &'a [TestRecord<'_>]) -> (Vec<&'a str>, Vec<(usize, String)>, Vec<usize>) {
    let (mut suites, mut of_suite) = (Vec::new(), HashMap::new());
    let (mut dirs, mut of_dir) = (Vec::new(), HashMap::new());
    let place = |record: &'a TestRecord<'_>| {
        let suite = *of_suite.entry(record.suite.index).or_insert_with(|| {
            suites.push(record.suite.name);
            suites.len() - 1
        });
        let dir = record.path.split_last().map_or(record.path, |(_, dir)| dir);
        *of_dir.entry((suite, dir)).or_insert_with(|| {
            dirs.push((suite, dir.join("/")));
            dirs.len() - 1
        })
    };
    let places = records.iter().map(place).collect();
    (suites, dirs, places)
}

fn columns<'a>(records: &'a [TestRecord<'_>], places: &[usize], first: Option<SystemTime>) -> Tests<'a> {
    let mut tests = Tests::default();
    for (record, dir) in records.iter().zip(places) {
        let Outcome { verdict, started, elapsed, worker, .. } = record.outcome;
        let at = started.zip(first).and_then(|(started, first)| started.duration_since(first).ok());
        tests.name.push(record.path.last().map_or("", String::as_str));
        tests.dir.push(*dir);
        tests.code.push(verdict.0);
        tests.ns.push(elapsed.map(nanos));
        tests.at.push(at.map(nanos));
        tests.worker.push(elapsed.map(|_| *worker));
        let before = record.previous;
        tests.before.push((before != 0.0).then(|| (before * 1e9).round() as i64));
    }
    tests
}

fn lines(outcome: &Outcome) -> Option<Vec<Line<'_>>> {
    fn line(time: &LineTime) -> Line<'_> {
        let label = time.label.strip_prefix("RUN: ").unwrap_or(&time.label);
        (label, nanos(time.wall), nanos(time.cpu))
    }
    (!outcome.lines.is_empty()).then(|| outcome.lines.iter().map(line).collect())
}

fn failures<'a>(records: &'a [TestRecord<'_>], run: &Run<'_>) -> Vec<Failure<'a>> {
    let failed =
        records.iter().enumerate().filter(|(_, record)| run.table.kind(record.outcome.verdict).is_failure);
    let read = |path: &str| fs::read_to_string(path).ok();
    let failure = |(test, record): (usize, &'a TestRecord<'_>)| {
        let Outcome { blame, diagnosis, output, .. } = record.outcome;
        let told = diagnosis.lines().next().and_then(|line| line.strip_prefix("hotstart: "));
        let checks = filecheck::failures(output, &read).into_iter().map(sides).collect();
        Failure { test, blame: told.filter(|_| blame.is_empty()).unwrap_or(blame), output, checks }
    };
    failed.map(failure).collect()
}

fn sides(check: Check) -> Sides {
    let row = |row: filecheck::Row| (row.kind.name(), row.expected, row.found);
    Sides { place: check.place, message: check.message, rows: check.rows.into_iter().map(row).collect() }
}
