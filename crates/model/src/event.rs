//! The contract between the engine and `report`: what is announced while a run goes on.

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
    /// Counted; the run ends with exit code 2.
    Error,
    /// The part of the run it concerns was given up; exit code 2.
    Fatal,
}

/// A message to the user that belongs to no single test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How serious.
    pub severity: Severity,
    /// `FILE:LINE` it is about; for configs the place in the config.
    pub place: Option<String>,
    /// What happened and what to do.
    pub message: String,
}

/// Processes started, by way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartCounts {
    /// By exec.
    pub cold: u64,
    /// Cloned from a template.
    pub fork: u64,
    /// In a rewound worker.
    pub rewind: u64,
}

/// Why a run ended.
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

/// Something happened.
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
        /// Which.
        job: JobId,
        /// By whom.
        worker: usize,
    },
    /// A job has its outcome.
    Finished {
        /// Which.
        job: JobId,
        /// How many jobs have ended with this one, from 1.
        completed: u32,
        /// What came of it.
        outcome: Arc<Outcome>,
    },
    /// The run ended; jobs without a `Finished` were skipped.
    RunFinished {
        /// Why it ended.
        end: RunEnd,
    },
}

/// Where events go. Called from many threads.
pub trait Events: Sync {
    /// Takes one event.
    fn send(&self, event: Event);
}
