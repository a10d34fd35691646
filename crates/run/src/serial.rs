//! Repeats failures that concurrent tests may have caused, after all other tests, one by one.
//!
//! The caller chooses these failures: without a condition, any flaky test would count as passing. A test that passes then is
//! FLAKYPASS, with the output of its failure. A run that is cut short keeps the failure.

use std::fmt;
use std::sync::{Arc, Mutex};

use hotstart_model::{JobId, Outcome, Verdict};

use crate::schedule::Run;
use crate::worker;

/// Chooses the failures that run once more.
#[derive(Clone)]
pub struct Serially(pub Arc<dyn Fn(&Outcome) -> bool + Send + Sync>);

impl fmt::Debug for Serially {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Serially")
    }
}

/// Failures that wait for their second run.
#[derive(Debug, Default)]
pub(crate) struct PutOff(Mutex<Vec<(JobId, Outcome)>>);

impl Run<'_> {
    /// Returns the outcome, unless the job runs once more.
    pub(crate) fn unless_put_off(&self, job: JobId, outcome: Outcome) -> Option<Outcome> {
        let is_failure = self.verdicts.kind(outcome.verdict).is_failure;
        match &self.settings.serially {
            Some(Serially(wanted)) if is_failure && wanted(&outcome) => {
                self.put_off.0.lock().expect("no panic while locked").push((job, outcome));
                None
            }
            _ => Some(outcome),
        }
    }

    /// Runs the postponed jobs, after everything else.
    pub(crate) fn run_put_off(&self) {
        let mut jobs = std::mem::take(&mut *self.put_off.0.lock().expect("no panic while locked"));
        jobs.sort_by_key(|(job, _)| *job);
        for (job, first) in jobs {
            let again = if self.is_over() { None } else { worker::one(self, job, 0) };
            let outcome = match again {
                Some(again) => self.second(first, again),
                None => first,
            };
            self.announce(job, outcome, true);
        }
    }

    fn second(&self, first: Outcome, mut again: Outcome) -> Outcome {
        let (made, allowed) = again.attempts;
        again.attempts = (first.attempts.0 + made, (first.attempts.1 + allowed).max(first.attempts.0 + made));
        if matches!(again.verdict, Verdict::PASS | Verdict::FLAKYPASS) {
            let name = &self.verdicts.kind(first.verdict).name;
            again.verdict = Verdict::FLAKYPASS;
            again.output = format!(
                "It was {name} beside other tests, and passed when it ran alone. Its first run:\n{}",
                first.output
            );
        }
        again
    }
}
