//! What one worker does with one job.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hotstart_launch::{Group, Launcher};
use hotstart_model::{Event, Fault, JobId, Outcome, RunEnd, Script, Transcript, Verdict, Work};

use crate::check;
use crate::delegated;
use crate::schedule::Run;
use crate::shells;

/// Takes jobs until none is left.
pub(crate) fn work(run: &Run<'_>, worker: usize) {
    while let Some(job) = run.take() {
        let _place = run.source.parallelism_group(job).map(|(name, size)| run.gate.enter(name, size));
        run.events.send(Event::Started { job, worker });
        let (started, begun) = (SystemTime::now(), Instant::now());
        let outcome =
            catch_unwind(AssertUnwindSafe(|| execute(run, job))).unwrap_or_else(|panic| Some(fault(&*panic)));
        if let Some(mut outcome) = outcome {
            outcome.started = Some(started);
            outcome.elapsed = Some(begun.elapsed());
            outcome.worker = worker;
            run.finished(job, outcome);
        }
    }
}

/// Runs a job to its outcome; `None` if the run was cut short meanwhile.
fn execute(run: &Run<'_>, job: JobId) -> Option<Outcome> {
    match run.source.prepare(job) {
        Work::Decided(outcome) => Some(*outcome),
        Work::Delegated => delegated::execute(run, job),
        Work::Script(script) => attempts(run, job, &script),
    }
}

fn attempts(run: &Run<'_>, job: JobId, script: &Script) -> Option<Outcome> {
    for attempt in 1.. {
        let (transcript, _) = run_attempt(run, job, attempt, script);
        if transcript.fault == Some(Fault::Interrupted) {
            return None;
        }
        if let Some(outcome) = run.source.conclude(job, attempt, transcript) {
            return Some(outcome);
        }
    }
    unreachable!("attempts are limited by the source")
}

/// One attempt, believed only as far as it was checked, and the processes of its first run.
pub(crate) fn run_attempt(
    run: &Run<'_>,
    job: JobId,
    attempt: u32,
    script: &Script,
) -> (Transcript, Arc<Group>) {
    // A later attempt sees what the earlier ones left, so it cannot be confirmed by yet another run.
    let launcher = if attempt == 1 { run.launcher } else { &run.cold };
    let asked = if attempt == 1 { None } else { shells::as_asked(script) };
    let script = asked.as_ref().unwrap_or(script);
    let begun = Instant::now();
    let (transcript, group) = run_once(run, script, launcher);
    run.took(script, &transcript, begun);
    if shells::must_be_confirmed(&transcript) || shells::passes_unexpectedly(run, job, attempt, &transcript) {
        return (shells::confirm(run, job, script, transcript), group);
    }
    shells::note(run, &transcript);
    (check::check(run, job, attempt, script, transcript, &group), group)
}

/// One attempt, under the watch that ends it when its time, or the run's, is up.
pub(crate) fn run_once(run: &Run<'_>, script: &Script, launcher: &Launcher) -> (Transcript, Arc<Group>) {
    let group = Arc::new(Group::new());
    let own = script.timeout.map(|limit| Instant::now() + limit);
    let deadline = [own, run.deadline()].into_iter().flatten().min();
    let transcript = {
        let _watched = run.watch.over(&group, deadline);
        hotstart_shell::run_script(script, launcher, &group)
    };
    // The run's own deadline is no test's timeout: what it cut off is not a result.
    let now = Instant::now() + Duration::from_millis(1);
    if run.deadline().is_some_and(|at| at <= now) && group.is_killed() && own.is_none_or(|at| at > now) {
        run.cut_short(RunEnd::MaxTime);
        return (Transcript { fault: Some(Fault::Interrupted), ..transcript }, group);
    }
    (transcript, group)
}

/// A panic while a job was handled is hotstart's fault, and says so; it does not end the run.
fn fault(panic: &(dyn std::any::Any + Send)) -> Outcome {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    Outcome::decided(
        Verdict::UNRESOLVED,
        format!("hotstart failed while it ran this test, which may well be in order: {text}\n"),
    )
}
