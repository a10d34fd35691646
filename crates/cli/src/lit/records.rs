//! The tests' names and records for reports.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hotstart_lit::load::Discovered;
use hotstart_lit::plan::Plan;
use hotstart_lit::suite::Test;
use hotstart_model::{JobId, JobSource, Outcome, Verdict};
use hotstart_report::{Catalog, SuiteName, TestRecord, summary};

/// The names of a plan's jobs.
pub(super) struct Names<'a, 'p>(pub &'a Plan<'p>);

impl Catalog for Names<'_, '_> {
    fn full_name(&self, job: JobId) -> String {
        match self.0.repetition(job) {
            Some(repetition) => format!("{} (repetition {repetition})", self.0.label(job)),
            None => self.0.label(job),
        }
    }

    fn previous_elapsed(&self, job: JobId) -> f64 {
        self.0.test(job).previous.abs()
    }
}

/// Returns every discovered test's outcome; EXCLUDED if it was not selected. A repeated test gets its worst outcome: a
/// failure if there was one, and SKIPPED only if it was always skipped.
pub(super) fn outcomes(
    discovered: &Discovered,
    plan: &Plan<'_>,
    of_jobs: Vec<Arc<Outcome>>,
) -> Vec<Arc<Outcome>> {
    let excluded = Arc::new(Outcome::decided(Verdict::EXCLUDED, ""));
    let mut all = vec![excluded; discovered.tests.len()];
    for (job, outcome) in of_jobs.into_iter().enumerate() {
        let job = JobId(u32::try_from(job).expect("fewer than 2^32 jobs"));
        let place = plan.place(job) as usize;
        let weight = |outcome: &Outcome| match discovered.verdicts.kind(outcome.verdict) {
            kind if kind.is_failure => 3,
            _ if outcome.verdict == Verdict::SKIPPED => 1,
            _ if outcome.verdict == Verdict::EXCLUDED => 0,
            _ => 2,
        };
        if weight(&outcome) > weight(&all[place]) {
            all[place] = outcome;
        }
    }
    all
}

/// Reports how often repeated tests failed, one line for each that did; empty without repetitions.
pub(super) fn repetitions(discovered: &Discovered, plan: &Plan<'_>, of_jobs: &[Arc<Outcome>]) -> String {
    let mut counts: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for (job, outcome) in (0..).map(JobId).zip(of_jobs) {
        if plan.repetition(job).is_none() || outcome.verdict == Verdict::SKIPPED {
            continue;
        }
        let (failed, ran) = counts.entry(plan.place(job)).or_default();
        *failed += u32::from(discovered.verdicts.kind(outcome.verdict).is_failure);
        *ran += 1;
    }
    let failed = counts.iter().filter(|(_, (failed, _))| *failed > 0);
    let line = |(place, (failed, ran)): (&u32, &(u32, u32))| {
        let name = discovered.tests[*place as usize].full_name();
        format!("hotstart: {name}: failed in {failed} of {ran} repetitions\n")
    };
    failed.map(line).collect()
}

/// Returns the components of the tests' paths, which records only borrow.
pub(super) fn paths(tests: &[Test]) -> Vec<Vec<String>> {
    tests.iter().map(Test::path_in_suite).collect()
}

/// Returns the records of all tests for reports.
pub(super) fn records<'a>(
    tests: &'a [Test],
    paths: &'a [Vec<String>],
    outcomes: &'a [Arc<Outcome>],
    relative_to: Option<&Path>,
) -> Vec<TestRecord<'a>> {
    let record = |((test, path), outcome): ((&'a Test, &'a Vec<String>), &'a Arc<Outcome>)| TestRecord {
        full_name: test.full_name(),
        summary_name: relative_to
            .map(|from| summary::relative_path(&test.file_path(), from).display().to_string()),
        suite: SuiteName { index: test.suite().index, name: &test.suite().name },
        path,
        previous: test.previous,
        outcome,
    };
    tests.iter().zip(paths).zip(outcomes).map(record).collect()
}
