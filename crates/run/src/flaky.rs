//! Tests that failed with warm starts and passed cold. The cold run counts, but the failure is never dropped.
//!
//! Such a test gets lit's FLAKYPASS, and a diagnostic that shows both outputs, the earlier runs of its persistent processes,
//! and a command that runs the same tests in that order. Repeated cold runs distinguish a nondeterministic test from one that
//! fails each time it is started warm, whose tools are then quarantined.

use std::collections::HashSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

use hotstart_launch::Visit;
use hotstart_model::{JobId, Outcome, Script, Severity, Transcript, Verdict};

use crate::execute::{Ran, Way};
use crate::schedule::{Replay, Run};

/// Most cold runs that look for the cause, and the time after which no more start.
const COLD_RUNS: u32 = 6;
const COLD_RUNS_FOR: Duration = Duration::from_secs(5);
/// Bytes that are shown of each output.
const OUTPUT_MAX: usize = 4096;
/// Most persistent processes that are shown, and most earlier runs of each.
const WORKERS_SHOWN: usize = 8;
const EARLIER_SHOWN: usize = 16;

/// A failure of a warm run that the cold run did not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// The report on it.
    pub text: String,
}

/// The two runs that contradict each other.
pub(crate) struct Contradiction<'c> {
    pub job: JobId,
    /// The runs in which tools were started warm.
    pub warm: &'c [Ran],
    /// Both outputs, as reports show them.
    pub shown: [String; 2],
    /// Whether the warm run reached its time limit.
    pub timed_out: bool,
}

/// Functions that run the test again. They return `None` if it was interrupted.
pub(crate) struct Trials<'t> {
    /// Runs the test cold. Returns whether it fails.
    pub cold: &'t dyn Fn() -> Option<bool>,
    /// Runs the test warm. Returns whether it fails in the same way as before.
    pub warm: &'t dyn Fn() -> Option<bool>,
}

/// The reason for which a test failed only when warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// Cold runs fail, too: the number of failures, and of all cold runs.
    Nondeterministic(u32, u32),
    /// Every warm run fails.
    Warm(u32),
    /// Every warm run fails, and makes calls that hotstart does not know: it cannot tell whose fault that is.
    Doubtful(u32),
    /// Another warm run did not fail in this way, nor did this many cold ones.
    Unknown(u32),
    /// The time limit was reached once.
    Late(u32),
    /// The run was interrupted before the cause was found.
    Interrupted,
    /// It was not looked for: no further run could leave the same files.
    Untried,
}

impl Cause {
    fn find(trials: &Trials<'_>, timed_out: bool, is_doubtful: bool) -> Cause {
        let begun = Instant::now();
        let mut runs = 1;
        while runs == 1 || (runs < COLD_RUNS && begun.elapsed() < COLD_RUNS_FOR) {
            runs += 1;
            match (trials.cold)() {
                None => return Cause::Interrupted,
                Some(true) => return Cause::Nondeterministic(1, runs),
                Some(false) => {}
            }
        }
        match (trials.warm)() {
            None => Cause::Interrupted,
            Some(true) if is_doubtful => Cause::Doubtful(runs),
            Some(true) => Cause::Warm(runs),
            Some(false) if timed_out => Cause::Late(runs),
            Some(false) => Cause::Unknown(runs),
        }
    }

    fn told(self) -> String {
        match self {
            Cause::Nondeterministic(failed, runs) => {
                format!("The test is nondeterministic by itself: {failed} of {runs} cold runs failed.")
            }
            Cause::Warm(runs) => format!(
                "Most likely that is a fault of hotstart, not of the test: a second warm run failed in the same way, and \
                 {runs} cold runs did not. The cold run counts, and its tools are started cold from now on. Please report this."
            ),
            Cause::Doubtful(runs) => format!(
                "A second warm run failed in the same way, and {runs} cold runs did not. Its warm starts make calls that \
                 hotstart does not know, so their runs prove nothing, and the cold run counts. `HOTSTART-COLD:` in the test \
                 keeps it cold."
            ),
            Cause::Unknown(runs) => format!(
                "A second warm run did not fail in this way, nor did {runs} cold runs: it may depend on what its workers \
                 ran before, on tests that ran at the same time, or on files that its first run left. The cold run counts, \
                 and these workers are not used again. If the command below makes it fail once more, please report this."
            ),
            Cause::Late(runs) => format!(
                "It reached its time limit once; a second warm run and {runs} cold runs did not. The cold run counts."
            ),
            Cause::Interrupted => "The run ended before the cause could be looked for.".to_owned(),
            Cause::Untried => {
                "The cause was not looked for: the files that the test has made cannot be restored after further runs.".to_owned()
            }
        }
    }
}

/// Looks for the cause of a contradiction and reports it.
pub(crate) fn report(run: &Run<'_>, found: &Contradiction<'_>, trials: &Trials<'_>) -> Doubt {
    let is_doubtful = found.warm.iter().any(|ran| ran.is_doubtful);
    told(run, found, Cause::find(trials, found.timed_out, is_doubtful))
}

/// Reports a contradiction whose cause further runs may not look for.
pub(crate) fn report_untried(run: &Run<'_>, found: &Contradiction<'_>) -> Doubt {
    told(run, found, Cause::Untried)
}

fn told(run: &Run<'_>, found: &Contradiction<'_>, cause: Cause) -> Doubt {
    let label = run.source.label(found.job);
    match cause {
        Cause::Warm(_) => found.warm.iter().for_each(|ran| run.executor.quarantine(ran)),
        Cause::Unknown(_) | Cause::Untried => {
            found.warm.iter().for_each(|ran| run.executor.doubt_workers(ran))
        }
        _ => {}
    }
    let is_fault = matches!(cause, Cause::Warm(_));
    run.checks.note_flaky(&label, is_fault, matches!(cause, Cause::Nondeterministic(..)));
    let visits: Vec<_> = found
        .warm
        .iter()
        .flat_map(|ran| run.executor.visits(ran, EARLIER_SHOWN))
        .take(WORKERS_SHOWN)
        .collect();
    let mut text =
        format!("{label} failed when its tools were started warm, and not when cold. {}", cause.told());
    for (title, output) in ["warm", "cold"].into_iter().zip(&found.shown) {
        let _ = write!(text, "\n--- {title}\n{}", shorten(output.trim_end()));
    }
    text.push_str(&earlier(run, &visits));
    text.push_str(&replay(run, found.job, &visits));
    text.push_str("\n---");
    let severity = if is_fault && run.checks.is_parity() { Severity::Error } else { Severity::Doubt };
    run.tell(severity, text.clone());
    Doubt { text }
}

/// Looks for the cause for a script that was run warm and then cold, if it `can_try`, and reports it.
pub(crate) fn report_script(
    run: &Run<'_>,
    job: JobId,
    script: &Script,
    [warm, cold]: [&Ran; 2],
    fails: &dyn Fn(&Transcript) -> bool,
    can_try: bool,
) -> Doubt {
    let again = |way| {
        let ran = run.again(job, script, way);
        (!ran.is_interrupted() && !ran.had_no_room()).then_some(ran.transcript)
    };
    let found = Contradiction {
        job,
        warm: std::slice::from_ref(warm),
        shown: [run.source.shown(job, &warm.transcript), run.source.shown(job, &cold.transcript)],
        timed_out: warm.transcript.timed_out,
    };
    let trials = Trials {
        cold: &|| again(Way::Cold).map(|transcript| fails(&transcript)),
        warm: &|| again(Way::Warm).map(|transcript| end(&transcript) == end(&warm.transcript)),
    };
    if can_try { report(run, &found, &trials) } else { report_untried(run, &found) }
}

/// Returns the end of a script, without its output.
pub(crate) fn end(transcript: &Transcript) -> impl PartialEq {
    (transcript.exit_code, transcript.fault.clone(), transcript.timed_out)
}

/// Sets the verdict for the doubt, and puts the report into the output.
pub(crate) fn settle(run: &Run<'_>, outcome: &mut Outcome, doubt: &Doubt) {
    if run.verdicts.kind(outcome.verdict).is_failure {
        return;
    }
    if run.settings.fail_flaky {
        outcome.verdict = Verdict::FAIL;
        outcome.blame = "it failed with warm starts and passed cold (--fail-flaky)".to_owned();
    } else if outcome.verdict == Verdict::PASS {
        outcome.verdict = Verdict::FLAKYPASS;
        let (made, allowed) = outcome.attempts;
        outcome.attempts = (made + 1, allowed.max(made + 1));
    }
    outcome.output = format!("{}\n", doubt.text);
}

fn earlier(run: &Run<'_>, visits: &[Visit]) -> String {
    if visits.is_empty() {
        return "\n--- no worker took part that had run anything before".to_owned();
    }
    let mut text = "\n--- what its workers had run before".to_owned();
    for Visit { worker, command, earlier, last } in visits {
        let runs = if *earlier == 1 { "run" } else { "runs" };
        let _ = write!(text, "\nworker {worker} ran `{command}` after {earlier} {runs}:");
        for served in last {
            let label = served.job.map_or_else(String::new, |job| run.source.label(JobId(job)) + ": ");
            let _ = write!(text, "\n  {label}{}", served.command);
        }
    }
    text
}

/// Returns a command that runs the tests of the earlier commands, and then this one.
fn replay(run: &Run<'_>, job: JobId, visits: &[Visit]) -> String {
    let Some(Replay { before, after }) = &run.settings.replay else { return String::new() };
    let served = visits.iter().flat_map(|visit| &visit.last).filter_map(|served| served.job);
    let mut seen = HashSet::from([job.0]);
    let jobs: Vec<u32> = served.filter(|job| seen.insert(*job)).chain([job.0]).collect();
    let mut text = format!("\n--- to run these tests again in this order\n{before}");
    for job in jobs {
        let _ = write!(text, " --replay={}", quote(&run.source.label(JobId(job))));
    }
    format!("{text} {after}")
}

/// Quotes a word for a POSIX shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Returns the beginning and the end of a text that is too long to be shown.
fn shorten(text: &str) -> String {
    if text.len() <= OUTPUT_MAX {
        return text.to_owned();
    }
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (head, tail) = (boundary(OUTPUT_MAX / 2), boundary(text.len() - OUTPUT_MAX / 2));
    format!("{}\n... {} bytes left out ...\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
#[path = "flaky_tests.rs"]
mod tests;
