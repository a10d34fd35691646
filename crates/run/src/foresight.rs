//! Tests that will probably fail. A failure counts only if the cold run has it, so their warm run would be for nothing.
//!
//! An XFAIL seldom passes. A test that failed in the last run fails again until somebody mends it, but a mended tool may mend a
//! thousand tests at once. So the run counts how many of them fail again, and starts them warm as soon as they pass.

use std::sync::atomic::{AtomicU32, Ordering};

use hotstart_model::{Fault, JobId, LikelyFailure, Transcript};

use crate::schedule::Run;

/// Failures for each pass among the tests that failed in the last run, from which on a cold start pays: a warm run takes an eighth of a
/// cold one's time, or more.
const FAILURES_TO_A_PASS: u32 = 8;

/// Counts how the tests ended that failed in the last run.
#[derive(Debug, Default)]
pub(crate) struct Foresight {
    failed: AtomicU32,
    passed: AtomicU32,
}

impl Foresight {
    /// Returns whether the first attempt at the job starts its tools cold at once.
    pub(crate) fn starts_cold(&self, run: &Run<'_>, job: JobId) -> bool {
        // Parity compares all, and a replay is there to show what warm starts do.
        if run.checks.is_parity() || run.settings.is_replayed {
            return false;
        }
        match run.source.likely_failure(job) {
            None => false,
            Some(LikelyFailure::Expected) => true,
            // It may have failed only warm.
            Some(LikelyFailure::FailedLast) if run.settings.fail_flaky => false,
            Some(LikelyFailure::FailedLast) => {
                let [failed, passed] =
                    [&self.failed, &self.passed].map(|count| count.load(Ordering::Relaxed));
                passed.saturating_mul(FAILURES_TO_A_PASS) <= failed
            }
        }
    }

    /// Records how the first attempt at a job ended. Called before [`JobSource::conclude`](hotstart_model::JobSource::conclude).
    pub(crate) fn ended(&self, run: &Run<'_>, job: JobId, transcript: &Transcript) {
        if run.source.likely_failure(job) == Some(LikelyFailure::FailedLast)
            && transcript.fault != Some(Fault::Interrupted)
        {
            let fails = run.source.would_fail(job, 1, transcript);
            let count = if fails { &self.failed } else { &self.passed };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::execute::Way;
    use crate::fake::{FakeExecutor, FakeSource, KeptEvents, code, run_job, settings};
    use crate::watch::Watch;
    use crate::{Checks, worker};
    use hotstart_model::{Verdict, VerdictTable};

    #[test]
    fn a_test_that_will_probably_fail_runs_once_and_cold() {
        for (likely, verdict) in
            [(LikelyFailure::Expected, Verdict::XFAIL), (LikelyFailure::FailedLast, Verdict::FAIL)]
        {
            let xfail = likely == LikelyFailure::Expected;
            let source = FakeSource { likely_failure: Some(likely), xfail, ..FakeSource::default() };
            let executor = FakeExecutor::new(vec![code(0)], vec![code(1)]);
            let ended = run_job(&source, &executor, &settings(), &Checks::sampled(0.0));
            assert_eq!(
                (ended.verdict(), executor.runs(Way::Warm), executor.runs(Way::Cold)),
                (verdict, 0, 1)
            );
        }
    }

    #[test]
    fn parity_runs_it_both_ways() {
        let likely_failure = Some(LikelyFailure::FailedLast);
        let source = FakeSource { likely_failure, ..FakeSource::default() };
        let executor = FakeExecutor::new(vec![code(1)], vec![code(1)]);
        let ended = run_job(&source, &executor, &settings(), &Checks::parity());
        assert_eq!(ended.verdict(), Verdict::FAIL);
        assert!(executor.runs(Way::Warm) > 0 && executor.runs(Way::Cold) > 0);
    }

    #[test]
    fn tests_that_pass_again_are_started_warm() {
        let likely_failure = Some(LikelyFailure::FailedLast);
        let source = FakeSource { likely_failure, further: 3, ..FakeSource::default() };
        let executor = FakeExecutor::new(vec![code(0)], vec![code(0)]);
        let (settings, checks) = (settings(), Checks::sampled(0.0));
        let (verdicts, events) = (VerdictTable::default(), KeptEvents::default());
        let run =
            Run::new(&source, &executor, &settings, &checks, &verdicts, &events, Arc::new(Watch::default()));
        worker::work(&run, 0);
        assert_eq!((executor.runs(Way::Cold), executor.runs(Way::Warm)), (1, 3));
    }
}
