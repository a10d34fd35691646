//! Runs a batch on a worker, with the same scheduler, warm starts and confirmations as a run at home.
//!
//! It judges nothing but whether a script passed; the verdict is made at home, by those who know the test.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotstart_launch::{Choice, Launcher, OnDoubt, Policy, cache_directory, descriptors, signals};
use hotstart_model::{
    Event, Events, JobId, JobSource, Outcome, RunEnd, RunScript, Script, Transcript, Verdict, VerdictTable,
    Work,
};
use hotstart_run::{Checks, Interrupt, Order as Turns, RunSettings, run as run_jobs, while_testing};
use hotstart_shell::FileChecks;

use crate::order::{Answer, Ended, Order};
use crate::{ANSWER, NOT_ALL_PASSED, ORDER, root};

/// Share of passing scripts that run both warm and cold.
const VERIFY: f64 = 0.005;

/// Runs the batch in this directory, and writes the answer into it. Returns the exit code.
pub(crate) fn run(directory: &Path) -> Result<u8, String> {
    signals::take_over();
    descriptors::take_over();
    let order = root::read(&directory.join(ORDER))?;
    let answer = Answer { tests: run_order(order)? };
    let all =
        answer.tests.iter().flatten().filter(|ended| passed(&ended.transcript)).count() == answer.tests.len();
    let path = directory.join(ANSWER);
    let told = |error: &dyn std::fmt::Display| format!("cannot write '{}': {error}", path.display());
    let text = serde_json::to_vec(&answer).map_err(|error| told(&error))?;
    fs::write(&path, text).map_err(|error| told(&error))?;
    Ok(if all { 0 } else { NOT_ALL_PASSED })
}

fn run_order(order: Order) -> Result<Vec<Option<Ended>>, String> {
    let (jobs, is_warm) = (order.jobs.max(1), order.is_warm);
    let scripts = order.scripts().ok_or("the batch is damaged")?;
    let count = scripts.len();
    let mut launcher = Launcher::new().with_guard();
    if is_warm {
        launcher.prepare_warm();
    }
    let default = Policy::for_jobs(jobs.min(count).max(1));
    let policy = Policy {
        choice: if is_warm { Choice::Eager } else { Choice::Cold },
        observe_after: Duration::ZERO,
        on_doubt: OnDoubt::Repeat,
        cache: cache_directory(),
        ..default
    };
    let launcher = Arc::new(launcher.with_policy(policy));
    let filechecks =
        is_warm.then(|| FileChecks::new(Arc::clone(&launcher), cache_directory()).expecting(count, false));
    let filechecks = filechecks.map(Arc::new);
    let source = Source { ended: scripts.iter().map(|_| Mutex::default()).collect(), scripts };
    let settings = RunSettings {
        workers: jobs,
        max_failures: None,
        deadline: None,
        companions: None,
        tool_times: None,
        shells: None,
        filechecks: filechecks.clone(),
        memory: None,
        farm: None,
        fail_flaky: false,
        is_replayed: false,
        replay: None,
        order: Turns::default(),
        serially: None,
    };
    let (checks, verdicts, interrupt) = (Checks::sampled(VERIFY), VerdictTable::default(), Interrupt::new());
    let run = || run_jobs(&source, &launcher, &settings, &checks, &verdicts, &interrupt, &source);
    let end = while_testing(filechecks.as_deref(), &interrupt, run);
    if end != RunEnd::Completed {
        return Err("the batch was cut short".to_owned());
    }
    let ended = source.ended.into_iter().map(|ended| ended.into_inner().expect("no panic while locked"));
    Ok(ended.map(|known| known.filter(|known| known.is_over).map(|known| known.ended)).collect())
}

fn passed(transcript: &Transcript) -> bool {
    transcript.exit_code == Some(0) && !transcript.timed_out && transcript.fault.is_none()
}

/// What is known of a script's end.
struct Known {
    ended: Ended,
    /// Whether its outcome was announced as a plain pass or failure. A flaky script has no result that can be believed.
    is_over: bool,
}

/// The scripts as jobs, and what became of them.
struct Source {
    scripts: Vec<Script>,
    ended: Vec<Mutex<Option<Known>>>,
}

impl JobSource for Source {
    fn count(&self) -> u32 {
        u32::try_from(self.scripts.len()).unwrap_or(u32::MAX)
    }

    fn label(&self, job: JobId) -> String {
        self.scripts[job.0 as usize].tmp_base.display().to_string()
    }

    fn parallelism_group(&self, _: JobId) -> Option<(String, u32)> {
        None
    }

    fn prepare(&self, job: JobId) -> Work {
        Work::Script(Box::new(self.scripts[job.0 as usize].clone()))
    }

    fn conclude(&self, job: JobId, _: u32, transcript: Transcript) -> Option<Outcome> {
        let verdict = if passed(&transcript) { Verdict::PASS } else { Verdict::FAIL };
        let ended = Ended { transcript, elapsed: Duration::ZERO };
        *self.ended[job.0 as usize].lock().expect("no panic while locked") =
            Some(Known { ended, is_over: false });
        Some(Outcome::decided(verdict, ""))
    }

    fn would_fail(&self, _: JobId, _: u32, transcript: &Transcript) -> bool {
        !passed(transcript)
    }

    fn shown(&self, _: JobId, transcript: &Transcript) -> String {
        format!("{:?}\n{}{}", transcript.exit_code, transcript.stdout, transcript.stderr)
    }

    fn run_delegated(&self, _: JobId, _: &RunScript<'_>) -> Option<Outcome> {
        None
    }
}

impl Events for Source {
    fn send(&self, event: Event) {
        let Event::Finished { job, outcome, .. } = event else { return };
        if let Some(known) = &mut *self.ended[job.0 as usize].lock().expect("no panic while locked") {
            known.is_over = matches!(outcome.verdict, Verdict::PASS | Verdict::FAIL);
            known.ended.elapsed = Arc::unwrap_or_clone(outcome).elapsed.unwrap_or_default();
        }
    }
}
