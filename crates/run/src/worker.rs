//! Runs one job in one worker, from preparation to outcome.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Instant, SystemTime};

use hotstart_model::{Event, Fault, JobId, Outcome, Script, Verdict, Work};

use crate::check::{self, Believed};
use crate::delegated;
use crate::execute::Way;
use crate::flaky;
use crate::memory::{self, Advice};
use crate::schedule::Run;
use crate::shells;

/// Takes jobs until none is left.
pub(crate) fn work(run: &Run<'_>, worker: usize) {
    while let Some(job) = run.take(worker) {
        match &run.remote {
            Some(remote) => remote.sort(run, job, worker),
            None => end(run, job, one(run, job, worker)),
        }
        run.left();
    }
    if let Some(remote) = &run.remote {
        remote.all_taken();
        while let Some((job, script)) = remote.take_local(run) {
            end(run, job, one_prepared(run, job, worker, script));
        }
    }
}

/// Announces the end of a job, unless the run was cut short meanwhile or the job runs once more.
pub(crate) fn end(run: &Run<'_>, job: JobId, outcome: Option<Outcome>) {
    if let Some(outcome) = outcome.and_then(|outcome| run.unless_put_off(job, outcome)) {
        run.finished(job, outcome);
    }
}

/// Runs one job to its outcome, in its parallelism group; `None` if the run was cut short meanwhile.
pub(crate) fn one(run: &Run<'_>, job: JobId, worker: usize) -> Option<Outcome> {
    one_prepared(run, job, worker, None)
}

/// Runs one job to its outcome, which may be prepared already.
pub(crate) fn one_prepared(
    run: &Run<'_>,
    job: JobId,
    worker: usize,
    script: Option<Box<Script>>,
) -> Option<Outcome> {
    let _place = run.source.parallelism_group(job).map(|(name, size)| run.gate.enter(name, size));
    run.events.send(Event::Started { job, worker });
    let (started, begun) = (SystemTime::now(), Instant::now());
    let work = || match script {
        Some(script) => attempts(run, job, &script),
        None => execute(run, job),
    };
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Some(fault(&*panic)));
    run.forget_files(job);
    let mut outcome = outcome?;
    outcome.started = Some(started);
    outcome.elapsed = Some(begun.elapsed());
    outcome.worker = worker;
    Some(outcome)
}

/// Prepares and runs a job; `None` if the run was cut short meanwhile.
fn execute(run: &Run<'_>, job: JobId) -> Option<Outcome> {
    match run.source.prepare(job) {
        Work::Decided(outcome) => Some(*outcome),
        Work::Delegated => delegated::execute(run, job),
        Work::Script(script) => attempts(run, job, &script),
    }
}

/// Runs a job with a script, unless it is known to pass.
fn attempts(run: &Run<'_>, job: JobId, script: &Script) -> Option<Outcome> {
    match memory::consult(run, job, script) {
        Advice::Settled(outcome) => Some(*outcome),
        Advice::Run => ordinary(run, job, script),
        Advice::Check(expected) => {
            let outcome = ordinary(run, job, script)?;
            expected.confirm(run, job, &outcome);
            Some(outcome)
        }
    }
}

fn ordinary(run: &Run<'_>, job: JobId, script: &Script) -> Option<Outcome> {
    let _running = run.settings.memory.as_ref().map(|memory| memory.test_runs());
    for attempt in 1.. {
        let Believed { transcript, doubt, .. } = run_attempt(run, job, attempt, script, true);
        if transcript.fault == Some(Fault::Interrupted) {
            return None;
        }
        if let Some(mut outcome) = run.source.conclude(job, attempt, transcript) {
            if let Some(doubt) = doubt {
                flaky::settle(run, &mut outcome, &doubt);
            }
            return Some(outcome);
        }
    }
    unreachable!("attempts are limited by the source")
}

/// Runs one attempt, and believes its result only as far as it was checked. `is_listed` if nothing of the job has run yet, so that a list
/// of its directory may be older.
pub(crate) fn run_attempt(
    run: &Run<'_>,
    job: JobId,
    attempt: u32,
    script: &Script,
    is_listed: bool,
) -> Believed {
    let can_repeat = run.keep_files(job, &script.tmp_base, is_listed && attempt == 1);
    let believed = checked_attempt(run, job, attempt, script, can_repeat);
    if attempt == 1 {
        run.foresight.ended(run, job, &believed.transcript);
    }
    believed
}

/// `can_repeat` says that another run of this attempt could find the same files. If not, or if it will probably fail, it starts cold.
fn checked_attempt(run: &Run<'_>, job: JobId, attempt: u32, script: &Script, can_repeat: bool) -> Believed {
    // A later attempt sees the files of earlier ones, so another run cannot confirm it.
    let is_foreseen = attempt == 1 && run.foresight.starts_cold(run, job);
    if is_foreseen {
        check::foreseen(run);
    } else if attempt == 1 && !can_repeat {
        check::unrepeatable(run);
    }
    let way = if attempt > 1 || is_foreseen || !can_repeat { Way::Cold } else { Way::Warm };
    let asked = if way == Way::Cold { shells::as_asked(script) } else { None };
    if is_foreseen && asked.is_some() {
        shells::note_foreseen(run);
    }
    let script = asked.as_ref().unwrap_or(script);
    let begun = Instant::now();
    let ran = run.once(job, script, way);
    run.took(script, &ran.transcript, begun);
    if shells::must_be_confirmed(&ran.transcript)
        || shells::passes_unexpectedly(run, job, attempt, &ran.transcript)
    {
        return shells::confirm(run, job, script, ran);
    }
    shells::note(run, &ran.transcript);
    check::check(run, job, attempt, script, ran)
}

/// Reports a panic while a job was handled as a fault of hotstart. It does not end the run.
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
