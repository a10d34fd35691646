//! Tests whose format runs their scripts and judges by itself: a script's exit status says little about the verdict.
//!
//! So it is the verdict that is confirmed: a failure of which a script was started warm, and was believed as it was,
//! counts only if the format comes to it once more with everything cold.

use std::cell::RefCell;
use std::sync::Arc;

use hotstart_launch::Group;
use hotstart_model::{JobId, Outcome};

use crate::check;
use crate::difference::Difference;
use crate::schedule::Run;
use crate::worker::{run_attempt, run_once};

/// Runs the job to its outcome; `None` if the run was cut short meanwhile.
pub(crate) fn execute(run: &Run<'_>, job: JobId) -> Option<Outcome> {
    let (outcome, groups) = warm(run, job)?;
    if groups.is_empty() || !run.verdicts.kind(outcome.verdict).is_failure {
        return Some(outcome);
    }
    check::confirmed(run);
    let cold = run.source.run_delegated(job, &|script, _| run_once(run, script, &run.cold).0)?;
    if cold.verdict == outcome.verdict {
        return Some(cold);
    }
    // Once more: a test that is flaky by itself is no fault of ours.
    let (again, _) = warm(run, job)?;
    if again.verdict == outcome.verdict {
        let name = |outcome: &Outcome| run.verdicts.kind(outcome.verdict).name.clone();
        let shown = |outcome: &Outcome| format!("{}\n{}", name(outcome), outcome.output);
        let what = "the verdict of its format".to_owned();
        let found = Difference { what, first: shown(&outcome), second: shown(&cold) };
        groups.iter().for_each(|group| run.launcher.distrust(group));
        check::fault(run, job, &groups[0], &found);
    } else {
        check::unsteady(run);
    }
    Some(cold)
}

/// As usual; also tells of the scripts that passed warm and were believed.
fn warm(run: &Run<'_>, job: JobId) -> Option<(Outcome, Vec<Arc<Group>>)> {
    let believed = RefCell::new(Vec::new());
    let outcome = run.source.run_delegated(job, &|script, attempt| {
        let (transcript, group) = run_attempt(run, job, attempt, script);
        if transcript.exit_code == Some(0) && group.warm_starts() > 0 {
            believed.borrow_mut().push(group);
        }
        transcript
    })?;
    Some((outcome, believed.into_inner()))
}
