//! The interface of everything that can be run once and reports its cost.

use super::{Digest, Failure, Phase, Sample};

/// One of the compared things.
pub trait Candidate {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Runs once before all timing. Returns the output if it is to be compared.
    fn check(&mut self) -> Result<Option<Digest>, Failure>;

    /// Prepares a run, untimed.
    fn prepare(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Runs once, timed.
    fn run(&mut self, phase: Phase) -> Result<Sample, Failure>;

    /// Cleans up after a run, untimed.
    fn conclude(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A candidate made of a closure that measures by itself. It serves comparisons of more than a process, such as two lit runs
/// whose verdicts must be equal.
pub struct FromFn<F> {
    name: String,
    run: F,
}

impl<F: FnMut(Phase) -> Result<Sample, Failure>> FromFn<F> {
    /// Creates a candidate from a name and a closure.
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
