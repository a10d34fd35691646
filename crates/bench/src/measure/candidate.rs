//! Anything that can be run once and says what that cost.

use super::{Digest, Failure, Phase, Sample};

/// One of the things that are compared.
pub trait Candidate {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Runs once before all timing; what it printed, if that is to be compared.
    fn check(&mut self) -> Result<Option<Digest>, Failure>;

    /// What must be done before a run and is not timed.
    fn prepare(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Runs once, timed.
    fn run(&mut self, phase: Phase) -> Result<Sample, Failure>;

    /// What must be done after a run and is not timed.
    fn conclude(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A candidate made of a closure, which measures by itself: for comparisons that look at more than a process, as
/// that of two lit runs whose verdicts must be the same.
pub struct FromFn<F> {
    name: String,
    run: F,
}

impl<F: FnMut(Phase) -> Result<Sample, Failure>> FromFn<F> {
    /// Names the closure.
    pub fn new(name: impl Into<String>, run: F) -> Self {
        FromFn { name: name.into(), run }
    }
}

impl<F: FnMut(Phase) -> Result<Sample, Failure>> Candidate for FromFn<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&mut self) -> Result<Option<Digest>, Failure> {
        (self.run)(Phase::Check).map(|_| None)
    }

    fn run(&mut self, phase: Phase) -> Result<Sample, Failure> {
        (self.run)(phase)
    }
}
