//! Replays lit's JSON through a reporter.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use hotstart_model::{Event, Events, JobId, MetricValue, Outcome, RunEnd, Verdict, VerdictTable};
use hotstart_report::files::{self, Requested};
use hotstart_report::histogram::{self, Slowest};
use hotstart_report::listing::{self, SuiteListing, TestListing};
use hotstart_report::summary::{self, Contents};
use hotstart_report::{Bar, Catalog, Diagnostics, Levels, Reporter, Settings, Sink, SuiteName, TestRecord};
use serde_json::Value;

use crate::suite;

/// Text that was written to a sink.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("not poisoned").clone()).expect("UTF-8")
    }
}

impl Write for Captured {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Names(Vec<String>);

impl Catalog for Names {
    fn full_name(&self, job: JobId) -> String {
        self.0[job.0 as usize].clone()
    }

    fn previous_elapsed(&self, _: JobId) -> f64 {
        0.0
    }
}

/// The output and reports of a replay.
pub struct Replayed {
    pub console: String,
    pub json: String,
    pub xunit: String,
    pub resultdb: String,
    pub time_trace: String,
}

/// A run of lit to replay.
pub struct Replay {
    pub shown: Vec<&'static str>,
    pub relative_paths: bool,
    pub slowest: Option<usize>,
    levels: Levels,
    version: (u32, u32, u32),
    elapsed: Duration,
    outcomes: HashMap<String, Outcome>,
    root: PathBuf,
}

impl Replay {
    /// Creates a replay from lit's JSON.
    pub fn new(json: &str, version: (u32, u32, u32), levels: Levels, root: &Path) -> Replay {
        let report: Value = serde_json::from_str(json).expect("lit's report is JSON");
        let table = VerdictTable::default();
        let mut micro_results = Vec::new();
        let mut outcomes = HashMap::new();
        for test in report["tests"].as_array().expect("a list") {
            let name = test["name"].as_str().expect("a name").to_owned();
            let mut outcome = outcome(test, &name, &table);
            match name.split_once(".m:") {
                // Entries of micro-tests precede their test's.
                Some((_, micro)) => micro_results.push((micro.to_owned(), outcome)),
                None => {
                    outcome.micro_results = std::mem::take(&mut micro_results);
                    outcomes.insert(name, outcome);
                }
            }
        }
        Replay {
            shown: Vec::new(),
            relative_paths: false,
            slowest: None,
            levels,
            version,
            elapsed: seconds(&report["elapsed"]).expect("a run takes time"),
            outcomes,
            root: root.canonicalize().expect("exists"),
        }
    }

    /// Replays the run.
    pub fn run(mut self) -> Replayed {
        let tests = suite::tests(&self.root);
        let names: Vec<_> = tests.iter().map(full_name).collect();
        let selected: Vec<String> =
            names.iter().filter(|name| self.outcomes.contains_key(*name)).cloned().collect();
        let captured = Captured::default();
        let results = self.send_events(&selected, names.len(), &captured);
        let excluded = Arc::new(Outcome::decided(Verdict::EXCLUDED, ""));
        let by_name: HashMap<&String, &Arc<Outcome>> = selected.iter().zip(&results.outcomes).collect();
        let records: Vec<_> = tests
            .iter()
            .zip(&names)
            .map(|(test, name)| self.record(test, name, by_name.get(name).copied().unwrap_or(&excluded)))
            .collect();
        let mut out = results.out;
        self.write_summary(&mut out, &records);
        drop(out);
        self.write_files(records, captured.text())
    }

    fn send_events(
        &mut self,
        selected: &[String],
        discovered: usize,
        to: &Captured,
    ) -> hotstart_report::Results {
        let settings = Settings {
            levels: self.levels.clone(),
            bar: Bar::Simple,
            discovered,
            table: VerdictTable::default(),
            keep_output: hotstart_report::KeepOutput::OfAll,
        };
        let diagnostics = Diagnostics::new("lit", Sink::new(io::sink()));
        let reporter = Reporter::new(Names(selected.to_vec()), settings, Sink::new(to.clone()), diagnostics);
        reporter.send(Event::RunStarted { jobs: selected.len() as u32, workers: 1 });
        for (index, name) in selected.iter().enumerate() {
            let outcome = Arc::new(self.outcomes.remove(name).expect("was selected"));
            let job = JobId(index as u32);
            reporter.send(Event::Finished { job, completed: job.0 + 1, outcome });
        }
        reporter.send(Event::RunFinished { end: RunEnd::Completed });
        reporter.into_results()
    }

    fn record<'a>(
        &self,
        (suite, path): &'a (usize, Vec<String>),
        name: &str,
        outcome: &'a Outcome,
    ) -> TestRecord<'a> {
        let file = self.root.join(suite::SUITES[*suite]).join(path.join("/"));
        let relative = summary::relative_path(&file, &self.root).display().to_string();
        TestRecord {
            full_name: name.to_owned(),
            summary_name: self.relative_paths.then_some(relative),
            suite: SuiteName { index: *suite, name: suite::SUITES[*suite] },
            path,
            previous: 0.0,
            outcome,
        }
    }

    fn write_summary(&self, out: &mut Sink, records: &[TestRecord<'_>]) {
        let table = VerdictTable::default();
        if let Some(slowest) = self.slowest {
            let count = if self.version.0 < 20 { 20 } else { slowest };
            histogram::write(out, records, Slowest::Count(count), self.levels.dialect);
        }
        let shown_codes: Vec<Verdict> = table
            .iter()
            .filter(|(_, kind)| self.shown.contains(&&*kind.name))
            .map(|(code, _)| code)
            .collect();
        let contents =
            Contents { shown_codes: &shown_codes, terse: self.levels.terse_summary, elapsed: self.elapsed };
        summary::write(out, records, &contents, &table);
    }

    fn write_files(&self, records: Vec<TestRecord<'_>>, console: String) -> Replayed {
        let dir = tempfile::tempdir().expect("a directory for reports");
        let path = |name: &str| Some(dir.path().join(name));
        let requested = Requested {
            json: path("json"),
            xunit: path("xunit"),
            resultdb: path("resultdb"),
            time_trace: path("time_trace"),
            ..Requested::default()
        };
        let table = VerdictTable::default();
        let run = files::Run {
            elapsed: self.elapsed,
            lit_version: self.version,
            dialect: self.levels.dialect,
            table: &table,
            end: RunEnd::Completed,
            skip_reasons: false,
            line_times: false,
        };
        let errors = files::write(&requested, records, &run);
        assert!(errors.is_empty(), "{errors:?}");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("was written");
        Replayed {
            console,
            json: read("json"),
            xunit: read("xunit"),
            resultdb: read("resultdb"),
            time_trace: read("time_trace"),
        }
    }
}

fn full_name((suite, path): &(usize, Vec<String>)) -> String {
    format!("{} :: {}", suite::SUITES[*suite], path.join("/"))
}

fn seconds(value: &Value) -> Option<Duration> {
    value.as_f64().map(Duration::from_secs_f64)
}

fn outcome(test: &Value, name: &str, table: &VerdictTable) -> Outcome {
    let code = test["code"].as_str().expect("a code");
    let verdict = table.iter().find(|(_, kind)| kind.name == code).expect("a known code").0;
    let mut outcome = Outcome::decided(verdict, test["output"].as_str().expect("text"));
    outcome.elapsed = seconds(&test["elapsed"]);
    outcome.started = Some(SystemTime::UNIX_EPOCH);
    if verdict == Verdict::FLAKYPASS {
        outcome.attempts = (2, 3);
    }
    if name.ends_with("requires.txt") {
        outcome.missing_features = suite::MISSING.map(str::to_owned).to_vec();
    }
    let metrics = test["metrics"].as_object().into_iter().flatten();
    outcome.metrics = metrics.map(|(name, value)| (name.clone(), metric(value))).collect();
    outcome
}

fn metric(value: &Value) -> MetricValue {
    match (value.as_i64(), value.as_f64()) {
        (Some(value), _) => MetricValue::Int(value),
        (None, Some(value)) => MetricValue::Real(value),
        (None, None) => MetricValue::Json(value.to_string()),
    }
}

/// Returns the output of `--show-tests`.
pub fn listed_tests(root: &Path) -> String {
    let captured = Captured::default();
    let tests = suite::tests(root);
    let listings = tests.iter().rev().map(|test| TestListing {
        suite: suite::SUITES[test.0],
        suite_index: test.0,
        path: &test.1,
        full_name: full_name(test),
    });
    listing::write_tests(&mut Sink::new(captured.clone()), listings.collect());
    captured.text()
}

/// Returns the output of `--show-suites`, for the configs of `suite`.
pub fn listed_suites(root: &Path) -> String {
    let captured = Captured::default();
    let tests = suite::tests(root);
    let real = root.canonicalize().expect("exists");
    let suites = suite::SUITES.iter().enumerate().rev().map(|(index, name)| SuiteListing {
        name: (*name).to_owned(),
        tests: tests.iter().filter(|(suite, _)| *suite == index).count(),
        source_root: real.join(name).display().to_string(),
        exec_root: real.join(name).display().to_string(),
        features: if index == 0 { vec!["zlib".into(), "asserts".into()] } else { Vec::new() },
        substitutions: if index == 0 { suite::substitutions() } else { Vec::new() },
    });
    listing::write_suites(&mut Sink::new(captured.clone()), suites.collect());
    captured.text()
}
