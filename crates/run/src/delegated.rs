//! Tests whose format runs their scripts and judges by itself. A script's exit status says little about their verdict.
//!
//! So the verdict is confirmed. If a script was started warm and its result was believed, a failure counts only if the format
//! reaches it again with everything cold.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use hotstart_model::{JobId, Outcome, Severity};

use crate::check;
use crate::difference::Difference;
use crate::execute::{Ran, Way};
use crate::flaky::{self, Contradiction, Doubt, Trials};
use crate::schedule::Run;
use crate::worker::run_attempt;

/// The scripts of one job.
#[derive(Default)]
struct Scripts {
    /// Scripts that passed with warm starts and were believed.
    believed: Vec<Ran>,
    /// Failures that a cold run did not confirm.
    doubts: Vec<Doubt>,
    /// Where their own files lie.
    bases: BTreeSet<PathBuf>,
}

/// Runs the job to its outcome; `None` if the run was cut short meanwhile.
pub(crate) fn execute(run: &Run<'_>, job: JobId) -> Option<Outcome> {
    // A format may look at the job's files, and change them, before its first script.
    let base = run.source.own_files(job);
    if let Some(base) = &base {
        run.keep_files(job, base, true);
    }
    let (mut outcome, scripts) = warm(run, job)?;
    if scripts.believed.is_empty() || !is_failure(run, &outcome) {
        if let Some(doubt) = scripts.doubts.first() {
            flaky::settle(run, &mut outcome, doubt);
        }
        return Some(outcome);
    }
    check::confirmed(run);
    if let Err(why) = run.restore_first_files(job) {
        let text = format!("{}: its failure is not confirmed cold: {why}", run.source.label(job));
        run.tell(Severity::Doubt, text);
        return Some(outcome);
    }
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
    let again = || run.restore_first_files(job).ok();
    let trials = Trials {
        cold: &|| again().and_then(|()| cold(run, job)).map(|outcome| is_failure(run, &outcome)),
        warm: &|| again().and_then(|()| warm(run, job)).map(|(again, _)| again.verdict == outcome.verdict),
    };
    let bases: BTreeSet<PathBuf> = scripts.bases.into_iter().chain(base).collect();
    let left: Option<Vec<_>> =
        bases.iter().map(|base| run.files_now(job, base).map(|left| (base, left))).collect();
    let doubt = match left {
        // Further runs would leave other files.
        None => flaky::report_untried(run, &found),
        Some(left) => {
            let doubt = flaky::report(run, &found, &trials);
            left.iter().for_each(|(base, left)| run.leave_files(job, base, left));
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
    if run.restore_first_files(job).is_err() {
        return Some(());
    }
    let (again, _) = warm(run, job)?;
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

fn cold(run: &Run<'_>, job: JobId) -> Option<Outcome> {
    run.source.run_delegated(job, &|script, _| run.once(job, script, Way::Cold).transcript)
}

/// Runs the job with its checks, warm where possible.
fn warm(run: &Run<'_>, job: JobId) -> Option<(Outcome, Scripts)> {
    let scripts = RefCell::new(Scripts::default());
    let outcome = run.source.run_delegated(job, &|script, attempt| {
        let believed = run_attempt(run, job, attempt, script, false);
        let mut scripts = scripts.borrow_mut();
        scripts.bases.insert(script.tmp_base.clone());
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
