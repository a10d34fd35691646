//! The names of tests in reports. Reports do not know what a test is.

use hotstart_model::{JobId, Outcome};

/// Facts about the jobs of a run while it is in progress.
pub trait Catalog: Sync {
    /// Returns the name of the job's test, `SUITE :: DIR/FILE`.
    fn full_name(&self, job: JobId) -> String;

    /// Returns the seconds that its test's last run took; zero if unknown. Only the progress bar needs it.
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

/// A discovered test and its outcome, for everything that is written after the run.
#[derive(Clone, Debug)]
pub struct TestRecord<'a> {
    /// `SUITE :: DIR/FILE`.
    pub full_name: String,
    /// Its name in the lists of the summary, if that is not the full name (`--relative-paths`).
    pub summary_name: Option<String>,
    /// Its suite.
    pub suite: SuiteName<'a>,
    /// Components of its path in the suite; never empty.
    pub path: &'a [String],
    /// Duration of its last run in seconds, negative if it failed; zero if unknown.
    pub previous: f64,
    /// Its result; EXCLUDED and SKIPPED tests have one too.
    pub outcome: &'a Outcome,
}

impl TestRecord<'_> {
    /// Returns its duration in seconds; zero if it did not run.
    pub(crate) fn seconds(&self) -> f64 {
        self.outcome.elapsed.map_or(0.0, |elapsed| elapsed.as_secs_f64())
    }
}

/// Sorts by suite and path, in the order of lit's listings and of its XML report.
pub(crate) fn sort_by_suite_and_path(records: &mut [TestRecord<'_>]) {
    records.sort_by(|a, b| (a.suite.name, a.suite.index, a.path).cmp(&(b.suite.name, b.suite.index, b.path)));
}
