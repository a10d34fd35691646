//! How tests are named in reports, without knowing what a test is.

use hotstart_model::{JobId, Outcome};

/// What is to be known of the jobs of a run while it goes on.
pub trait Catalog: Sync {
    /// Name of the job's test, `SUITE :: DIR/FILE`.
    fn full_name(&self, job: JobId) -> String;

    /// Seconds its test took the last time; zero if that is not known. Only the progress bar asks.
    fn previous_elapsed(&self, job: JobId) -> f64;
}

/// A suite, as far as reports distinguish suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuiteName<'a> {
    /// Its place among the run's suites: names need not be unique.
    pub index: usize,
    /// The name in its config.
    pub name: &'a str,
}

/// A discovered test and what came of it, for everything that is written after the run.
#[derive(Clone, Debug)]
pub struct TestRecord<'a> {
    /// `SUITE :: DIR/FILE`.
    pub full_name: String,
    /// What the lists of the summary call it, where that is not the full name (`--relative-paths`).
    pub summary_name: Option<String>,
    /// Its suite.
    pub suite: SuiteName<'a>,
    /// Components of its path in the suite; never empty.
    pub path: &'a [String],
    /// Seconds it took the last time, negative if it failed; zero if that is not known.
    pub previous: f64,
    /// Its result; EXCLUDED and SKIPPED tests have one too.
    pub outcome: &'a Outcome,
}

impl TestRecord<'_> {
    /// Seconds it took; zero for a test that did not run.
    pub(crate) fn seconds(&self) -> f64 {
        self.outcome.elapsed.map_or(0.0, |elapsed| elapsed.as_secs_f64())
    }
}

/// Sorts by suite and path, in the order of lit's listings and of its XML report.
pub(crate) fn sort_by_suite_and_path(records: &mut [TestRecord<'_>]) {
    records.sort_by(|a, b| (a.suite.name, a.suite.index, a.path).cmp(&(b.suite.name, b.suite.index, b.path)));
}
