//! The contract between who knows the work (`lit`) and who does it when (`run`).

use crate::{Outcome, Script, Transcript};

/// A job's place in its source, counted from 0 in the order in which jobs should start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

/// What is to be done for a job, found out when its turn has come.
#[derive(Debug)]
pub enum Work {
    /// Nothing: the verdict is known already (unsupported, a parse error, ...).
    Decided(Box<Outcome>),
    /// Run this script.
    Script(Box<Script>),
    /// Run by the source itself, because only it can (a test format written in Python).
    Delegated,
}

/// Runs a script for a source that runs a job itself. The number is that of the attempt at this script, from 1.
pub type RunScript<'r> = dyn Fn(&Script, u32) -> Transcript + 'r;

/// A list of independent jobs. Called from many workers at once.
pub trait JobSource: Sync {
    /// How many jobs there are; ids run from 0 to this.
    fn count(&self) -> u32;

    /// The job's name as users know it.
    fn label(&self, job: JobId) -> String;

    /// Name and size of the group of jobs of which only so many may run at once, if the job is in one.
    fn parallelism_group(&self, job: JobId) -> Option<(String, u32)>;

    /// What to do. Called once per job, on the worker, as it reads the test's file.
    fn prepare(&self, job: JobId) -> Work;

    /// Judges a finished attempt at the prepared script, counted from 1. `None` asks for another attempt at the
    /// same script. Times, worker and attempts of the outcome are filled in by the caller.
    fn conclude(&self, job: JobId, attempt: u32, transcript: Transcript) -> Option<Outcome>;

    /// Whether the verdict of this attempt would be a failure. Asked before [`JobSource::conclude`].
    fn would_fail(&self, job: JobId, attempt: u32, transcript: &Transcript) -> bool;

    /// What people would be shown of an attempt. Asked before [`JobSource::conclude`].
    fn shown(&self, job: JobId, transcript: &Transcript) -> String;

    /// Runs a job whose work is [`Work::Delegated`]; its scripts are run by `run_script`. `None` if the run was cut
    /// short meanwhile.
    fn run_delegated(&self, job: JobId, run_script: &RunScript<'_>) -> Option<Outcome>;
}
