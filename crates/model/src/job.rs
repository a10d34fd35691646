//! The contract between the crate that knows the work (`lit`) and the one that schedules it (`run`).

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Outcome, Script, Transcript};

/// A job's place in its source, counted from 0 in the order in which jobs should start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

/// The work of a job, determined when its turn has come.
#[derive(Debug)]
pub enum Work {
    /// No work: the verdict is known already (unsupported, a parse error, ...).
    Decided(Box<Outcome>),
    /// Run this script.
    Script(Box<Script>),
    /// The source runs it itself, because only the source can (a test format written in Python).
    Delegated,
}

/// What another machine needs to know of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Elsewhere {
    /// The name by which jobs are sorted: neighbours have inputs in common.
    pub name: String,
    /// The directory with the test's file and the files that it may read.
    pub directory: PathBuf,
    /// Directories below which other jobs have their files.
    pub apart: Arc<[PathBuf]>,
}

/// Why a job's first attempt will probably fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikelyFailure {
    /// Its author expects it to (XFAIL).
    Expected,
    /// It failed in the last run.
    FailedLast,
}

/// Runs a script for a source that runs a job itself. The number is that of the attempt at this script, from 1.
pub type RunScript<'r> = dyn Fn(&Script, u32) -> Transcript + 'r;

/// A list of independent jobs. Many workers call it at once.
pub trait JobSource: Sync {
    /// Returns the number of jobs. Ids are smaller than it.
    fn count(&self) -> u32;

    /// Returns the job's name as users know it.
    fn label(&self, job: JobId) -> String;

    /// Returns the name of the job's group, and how many of its jobs may run at once. `None` if it is in no group.
    fn parallelism_group(&self, job: JobId) -> Option<(String, u32)>;

    /// Returns the name of the suite within which this job's verdict may be remembered for later runs. `None` if a pass of
    /// its script is not all that its verdict depends on.
    fn remembered_in(&self, _job: JobId) -> Option<String> {
        None
    }

    /// Returns what another machine needs to know of this job besides its script. `None` if it has to run here.
    fn elsewhere(&self, _job: JobId) -> Option<Elsewhere> {
        None
    }

    /// Returns the work. Called once per job, on the worker, because it reads the test's file.
    fn prepare(&self, job: JobId) -> Work;

    /// Judges a finished attempt at the prepared script, counted from 1. `None` requests another attempt at the same
    /// script. The caller fills in times, worker and attempts of the outcome.
    fn conclude(&self, job: JobId, attempt: u32, transcript: Transcript) -> Option<Outcome>;

    /// Whether the verdict of this attempt would be a failure. Called before [`JobSource::conclude`].
    fn would_fail(&self, job: JobId, attempt: u32, transcript: &Transcript) -> bool;

    /// Returns why the job will probably fail, if so. Called after [`JobSource::prepare`].
    fn likely_failure(&self, _job: JobId) -> Option<LikelyFailure> {
        None
    }

    /// Returns the text of an attempt that users would see. Called before [`JobSource::conclude`].
    fn shown(&self, job: JobId, transcript: &Transcript) -> String;

    /// Returns how the names of the job's own files begin, before `.tmp`. `None` if it has none.
    fn own_files(&self, _job: JobId) -> Option<PathBuf> {
        None
    }

    /// Runs a job whose work is [`Work::Delegated`]. `run_script` runs its scripts. `None` if the run was interrupted
    /// meanwhile.
    fn run_delegated(&self, job: JobId, run_script: &RunScript<'_>) -> Option<Outcome>;
}
