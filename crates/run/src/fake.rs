//! A source and an executor for unit tests: the test chooses how runs end, and no process is started.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hotstart_launch::Visit;
use hotstart_model::{
    ColdTools, Dialect, Event, Events, ExternalShell, Fault, Interpreter, JobId, JobSource, LikelyFailure,
    Outcome, RunScript, Script, Severity, Transcript, Verdict, VerdictTable, Work,
};

use crate::execute::{Execute, Ran, Way};
use crate::schedule::{Run, RunSettings};
use crate::traced::{TraceError, Traced};
use crate::watch::Watch;
use crate::{Checks, worker};

/// Returns a run with this exit code. It counts as warm if it is run warm.
pub(crate) fn code(exit_code: i32) -> Ran {
    Ran { transcript: Transcript { exit_code: Some(exit_code), ..Transcript::default() }, ..Ran::default() }
}

/// Returns a run that wrote `stdout`.
pub(crate) fn wrote(exit_code: i32, stdout: &str) -> Ran {
    let mut ran = code(exit_code);
    ran.transcript.stdout = stdout.to_owned();
    ran
}

/// Returns a run without a status.
pub(crate) fn fault(fault: Fault) -> Ran {
    Ran { transcript: Transcript { fault: Some(fault), ..Transcript::default() }, ..Ran::default() }
}

/// Returns a run that was ended at its time limit.
pub(crate) fn timeout() -> Ran {
    let mut ran = code(-9);
    ran.transcript.timed_out = true;
    ran
}

/// Returns a run that proves nothing.
pub(crate) fn doubtful(ran: Ran) -> Ran {
    Ran { is_doubtful: true, ..ran }
}

/// Ends runs as listed. The last entry holds for all that follow.
#[derive(Debug, Default)]
pub(crate) struct FakeExecutor {
    warm: Mutex<VecDeque<Ran>>,
    cold: Mutex<VecDeque<Ran>>,
    ways: Mutex<Vec<Way>>,
    pub traced: Mutex<VecDeque<Traced>>,
    pub quarantined: AtomicUsize,
    pub doubted: AtomicUsize,
    pub visits: Vec<Visit>,
}

impl FakeExecutor {
    pub(crate) fn new(warm: Vec<Ran>, cold: Vec<Ran>) -> Self {
        let warm = warm.into_iter().map(|ran| Ran { warm_starts: 1, ..ran }).collect();
        FakeExecutor { warm: Mutex::new(warm), cold: Mutex::new(cold.into()), ..Self::default() }
    }

    /// Creates an executor whose warm runs start no tool warm.
    pub(crate) fn of_cold_tools(runs: Vec<Ran>) -> Self {
        let mut executor = Self::default();
        executor.start_nothing_warm(runs);
        executor
    }

    /// Ends warm runs as listed, in which no tool is started warm.
    pub(crate) fn start_nothing_warm(&mut self, runs: Vec<Ran>) {
        self.warm = Mutex::new(runs.into());
    }

    /// Returns how many runs had their tools quarantined.
    pub(crate) fn quarantined(&self) -> usize {
        self.quarantined.load(Ordering::Relaxed)
    }

    /// Returns how many runs were made in this way.
    pub(crate) fn runs(&self, way: Way) -> usize {
        self.ways.lock().unwrap().iter().filter(|made| **made == way).count()
    }
}

impl Execute for FakeExecutor {
    fn run(&self, _: JobId, _: &Script, way: Way) -> Ran {
        self.ways.lock().unwrap().push(way);
        let mut queue = match way {
            Way::Warm => self.warm.lock().unwrap(),
            Way::Cold => self.cold.lock().unwrap(),
        };
        if queue.len() > 1 { queue.pop_front().unwrap() } else { queue[0].clone() }
    }

    fn trace(&self, _: JobId, _: &Script) -> Result<Traced, TraceError> {
        self.traced.lock().unwrap().pop_front().ok_or(TraceError::Lost)
    }

    fn quarantine_matches(&self, _: &Ran, _: &str) {}

    fn quarantine(&self, _: &Ran) {
        self.quarantined.fetch_add(1, Ordering::Relaxed);
    }

    fn doubt_workers(&self, _: &Ran) {
        self.doubted.fetch_add(1, Ordering::Relaxed);
    }

    fn visits(&self, _: &Ran, _: usize) -> Vec<Visit> {
        self.visits.clone()
    }
}

/// One job, which passes if its script exits with 0.
#[derive(Debug, Default)]
pub(crate) struct FakeSource {
    /// Whether the job is expected to fail.
    pub xfail: bool,
    /// Why the job will probably fail.
    pub likely_failure: Option<LikelyFailure>,
    /// Number of jobs, less one.
    pub further: u32,
    /// Whether the job runs its script itself.
    pub delegated: bool,
    /// Allowed attempts, less one.
    pub retries: u32,
    /// Whether the script asks for an external shell but may run without it.
    pub may_be_native: bool,
    /// The suite within which its verdict may be remembered.
    pub suite: Option<String>,
}

impl FakeSource {
    fn outcome(&self, attempt: u32, transcript: &Transcript) -> Option<Outcome> {
        let verdict = match (transcript.exit_code, &transcript.fault) {
            (_, Some(_)) => Verdict::UNRESOLVED,
            (Some(0), _) if self.xfail => Verdict::XPASS,
            (Some(0), _) if attempt > 1 => Verdict::FLAKYPASS,
            (Some(0), _) => Verdict::PASS,
            _ if attempt <= self.retries => return None,
            _ if transcript.timed_out => Verdict::TIMEOUT,
            _ if self.xfail => Verdict::XFAIL,
            _ => Verdict::FAIL,
        };
        Some(Outcome::decided(verdict, ""))
    }
}

impl JobSource for FakeSource {
    fn count(&self) -> u32 {
        1 + self.further
    }

    fn label(&self, job: JobId) -> String {
        format!("t :: {}", job.0)
    }

    fn parallelism_group(&self, _: JobId) -> Option<(String, u32)> {
        None
    }

    fn remembered_in(&self, _: JobId) -> Option<String> {
        self.suite.clone()
    }

    fn prepare(&self, _: JobId) -> Work {
        let mut script = script();
        if self.may_be_native {
            let (shell, script_path) = (PathBuf::from("/bin/bash"), PathBuf::from("/t.script"));
            let shell = ExternalShell { shell, script_path, prefix: Vec::new(), may_be_native: true };
            script.interpreter = Interpreter::External(shell);
        }
        if self.delegated { Work::Delegated } else { Work::Script(Box::new(script)) }
    }

    fn conclude(&self, _: JobId, attempt: u32, transcript: Transcript) -> Option<Outcome> {
        self.outcome(attempt, &transcript)
    }

    fn would_fail(&self, _: JobId, attempt: u32, transcript: &Transcript) -> bool {
        let is_failure = |outcome: Outcome| VerdictTable::default().kind(outcome.verdict).is_failure;
        self.outcome(attempt, transcript).is_none_or(is_failure)
    }

    fn likely_failure(&self, _: JobId) -> Option<LikelyFailure> {
        self.likely_failure
    }

    fn shown(&self, _: JobId, transcript: &Transcript) -> String {
        format!("Exit Code: {:?}\n{}", transcript.exit_code, transcript.stdout)
    }

    fn run_delegated(&self, _: JobId, run_script: &RunScript<'_>) -> Option<Outcome> {
        let transcript = run_script(&script(), 1);
        if transcript.fault == Some(Fault::Interrupted) {
            return None;
        }
        // The format reports a failure for a script that writes "bad", although it exits with 0.
        let verdict = if transcript.stdout.contains("bad") {
            Verdict::FAIL
        } else {
            self.outcome(1, &transcript)?.verdict
        };
        Some(Outcome::decided(verdict, transcript.stdout))
    }
}

pub(crate) fn script() -> Script {
    Script {
        commands: Vec::new(),
        dialect: Dialect::V23,
        interpreter: Interpreter::Internal,
        pipefail: true,
        cwd: PathBuf::from("/"),
        make_dirs: Vec::new(),
        env: Arc::default(),
        timeout: None,
        tmp_base: PathBuf::new(),
        captures: false,
        lit_package_dir: None,
        lit_python: None,
        cold: ColdTools::None,
        wraps: Default::default(),
    }
}

/// Keeps the announced events.
#[derive(Default)]
pub(crate) struct KeptEvents(Mutex<Vec<Event>>);

impl Events for KeptEvents {
    fn send(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// The result of the one job.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The job's outcome, if it was not interrupted.
    pub outcome: Option<Arc<Outcome>>,
    pub told: Vec<(Severity, String)>,
}

impl Ended {
    pub(crate) fn verdict(&self) -> Verdict {
        self.outcome.as_ref().expect("an outcome").verdict
    }

    /// Returns the only message.
    pub(crate) fn message(&self) -> &str {
        assert_eq!(self.told.len(), 1, "{self:#?}");
        &self.told[0].1
    }
}

pub(crate) fn settings() -> RunSettings {
    RunSettings {
        order: crate::Order::default(),
        serially: None,
        workers: 1,
        max_failures: None,
        deadline: None,
        companions: None,
        tool_times: None,
        shells: None,
        filechecks: None,
        memory: None,
        farm: None,
        fail_flaky: false,
        is_replayed: false,
        replay: None,
    }
}

/// Runs the source's job.
pub(crate) fn run_job(
    source: &FakeSource,
    executor: &FakeExecutor,
    settings: &RunSettings,
    checks: &Checks,
) -> Ended {
    let (verdicts, events) = (VerdictTable::default(), KeptEvents::default());
    let run = Run::new(source, executor, settings, checks, &verdicts, &events, Arc::new(Watch::default()));
    worker::work(&run, 0);
    let mut ended = Ended { outcome: None, told: Vec::new() };
    for event in events.0.into_inner().unwrap() {
        match event {
            Event::Finished { outcome, .. } => ended.outcome = Some(outcome),
            Event::Diagnostic(diagnostic) => ended.told.push((diagnostic.severity, diagnostic.message)),
            _ => {}
        }
    }
    ended
}
