//! The contract between the engine and `report`: the events of a run.

use std::sync::Arc;

use crate::{JobId, Outcome};

/// How serious a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Only with `--debug`.
    Debug,
    /// For information.
    Note,
    /// Counted; does not change the exit code.
    Warning,
    /// A warning that warm and cold runs of a test, or a run and what is remembered of it, disagree. Quiet runs show it, too.
    Doubt,
    /// Counted; the run ends with exit code 2.
    Error,
    /// The run gave up the part that it concerns; exit code 2.
    Fatal,
}

/// A message to the user that belongs to no single test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The `FILE:LINE` of the cause. For configs, the place in the config.
    pub place: Option<String>,
    /// The problem, and what to do.
    pub message: String,
}

/// The numbers of started processes, by kind of start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartCounts {
    /// By exec.
    pub cold: u64,
    /// Forks of a zygote.
    pub fork: u64,
    /// Runs in a persistent process.
    pub resets: u64,
}

/// The reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Every job has its outcome.
    Completed,
    /// The user stopped it.
    Interrupted,
    /// As many tests failed as `--max-failures` allows.
    MaxFailures,
    /// The time given by `--max-time` was over.
    MaxTime,
}

/// An event of a run.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message that belongs to no test.
    Diagnostic(Diagnostic),
    /// The run begins.
    RunStarted {
        /// Jobs that will run.
        jobs: u32,
        /// Workers that run them.
        workers: usize,
    },
    /// A worker took up a job.
    Started {
        /// The job.
        job: JobId,
        /// The worker's index.
        worker: usize,
    },
    /// A job has its outcome.
    Finished {
        /// The job.
        job: JobId,
        /// The number of jobs that have ended, including this one.
        completed: u32,
        /// The result.
        outcome: Arc<Outcome>,
    },
    /// The run ended; jobs without a `Finished` were skipped.
    RunFinished {
        /// The reason.
        end: RunEnd,
    },
}

/// The receiver of events. Many threads call it.
pub trait Events: Sync {
    /// Takes one event.
    fn send(&self, event: Event);
}
