//! Tests whose format runs their scripts and judges by itself. A script's exit status says little about their verdict.
//!
//! So the verdict is confirmed. If a script was started warm and its result was believed, a failure counts only if the format
//! reaches it again with everything cold.

use std::cell::{Cell, RefCell};

use hotstart_model::{JobId, Outcome, Script};

use crate::check;
use crate::difference::Difference;
use crate::execute::{Ran, Way};
use crate::flaky::{self, Contradiction, Doubt, Trials};
use crate::kept::Kept;
use crate::schedule::Run;
use crate::worker::run_attempt;

/// The scripts of one job.
#[derive(Default)]
struct Scripts {
    /// Scripts that passed with warm starts and were believed.
    believed: Vec<Ran>,
    /// Failures that a cold run did not confirm.
    doubts: Vec<Doubt>,
    /// The last one.
    last: Option<Script>,
}

/// Runs the job to its outcome; `None` if the run was cut short meanwhile.
pub(crate) fn execute(run: &Run<'_>, job: JobId) -> Option<Outcome> {
    let (mut outcome, scripts) = warm(run, job, false)?;
    if scripts.believed.is_empty() || !is_failure(run, &outcome) {
        if let Some(doubt) = scripts.doubts.first() {
            flaky::settle(run, &mut outcome, doubt);
        }
        return Some(outcome);
    }
    check::confirmed(run);
    let mut counts = cold(run, job)?;
    if counts.verdict == outcome.verdict {
        return Some(counts);
    }
    if is_failure(run, &counts) {
        differing_failures(run, job, &outcome, &counts, &scripts.believed)?;
        return Some(counts);
    }
    let found = Contradiction {
        job,
        warm: &scripts.believed,
        shown: [outcome.output.clone(), counts.output.clone()],
        timed_out: outcome.verdict == hotstart_model::Verdict::TIMEOUT,
    };
    let trials = Trials {
        cold: &|| cold(run, job).map(|outcome| is_failure(run, &outcome)),
        warm: &|| warm(run, job, true).map(|(again, _)| again.verdict == outcome.verdict),
    };
    let left = scripts.last.as_ref().map(|script| (script, Kept::of(script)));
    let doubt = match left {
        // Further runs would leave other files.
        Some((_, None)) => flaky::report_untried(run, &found),
        left => {
            let doubt = flaky::report(run, &found, &trials);
            if let Some((script, Some(left))) = left {
                run.make(job, script, &left);
            }
            doubt
        }
    };
    flaky::settle(run, &mut counts, &doubt);
    Some(counts)
}

fn is_failure(run: &Run<'_>, outcome: &Outcome) -> bool {
    run.verdicts.kind(outcome.verdict).is_failure
}

/// Handles two failures that differ. The test may be nondeterministic, so it runs once more.
fn differing_failures(
    run: &Run<'_>,
    job: JobId,
    outcome: &Outcome,
    cold: &Outcome,
    believed: &[Ran],
) -> Option<()> {
    let (again, _) = warm(run, job, true)?;
    if again.verdict != outcome.verdict {
        check::nondeterministic(run);
        return Some(());
    }
    let name = |outcome: &Outcome| run.verdicts.kind(outcome.verdict).name.clone();
    let shown = |outcome: &Outcome| format!("{}\n{}", name(outcome), outcome.output);
    let what = "the verdict of its format".to_owned();
    let found = Difference { what, first: shown(outcome), second: shown(cold) };
    check::fault(run, job, &believed.iter().collect::<Vec<_>>(), &found);
    Some(())
}

/// Runs the job cold, from the files that its first run has found.
fn cold(run: &Run<'_>, job: JobId) -> Option<Outcome> {
    let is_first = Cell::new(true);
    run.source.run_delegated(job, &|script, _| {
        if is_first.replace(false) {
            run.restore_first_files(job, script);
        }
        run.once(job, script, Way::Cold).transcript
    })
}

/// Runs the job with its checks, warm where possible; `is_again` if that repeats a run.
fn warm(run: &Run<'_>, job: JobId, is_again: bool) -> Option<(Outcome, Scripts)> {
    let scripts = RefCell::new(Scripts::default());
    let outcome = run.source.run_delegated(job, &|script, attempt| {
        if is_again && scripts.borrow().last.is_none() {
            run.restore_first_files(job, script);
        }
        // Its format may have written files before, or have run another script.
        let believed = run_attempt(run, job, attempt, script, false);
        let mut scripts = scripts.borrow_mut();
        scripts.last = Some(script.clone());
        scripts.doubts.extend(believed.doubt);
        if believed.transcript.exit_code == Some(0) && believed.first.warm_starts > 0 {
            scripts.believed.push(believed.first);
        }
        believed.transcript
    })?;
    Some((outcome, scripts.into_inner()))
}

#[cfg(test)]
#[path = "delegated_tests.rs"]
mod tests;
