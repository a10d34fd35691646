//! One of the two lits: a process whose results are read after each run.

use std::cell::RefCell;
use std::path::PathBuf;

use hotstart_bench::command::Command;
use hotstart_bench::measure::{
    Candidate, Digest, Failure, Phase, Process, ProcessSettings, Sample, describe,
};

use super::verdicts::{Run, Verdicts};

/// A lit that can run as a candidate.
pub(super) struct Contestant<'s> {
    process: Process<'s>,
    results: PathBuf,
    side: usize,
    verdicts: &'s RefCell<Verdicts>,
}

impl<'s> Contestant<'s> {
    /// Creates the candidate. Its command writes the file `results`, whose verdicts are recorded for this side.
    pub(super) fn new(
        command: Command,
        settings: &'s ProcessSettings,
        results: PathBuf,
        side: usize,
        verdicts: &'s RefCell<Verdicts>,
    ) -> Result<Self, Failure> {
        Ok(Contestant { process: Process::new(command, settings)?, results, side, verdicts })
    }
}

impl Candidate for Contestant<'_> {
    fn name(&self) -> &str {
        self.process.name()
    }

    fn prepare(&mut self) -> Result<(), Failure> {
        // The results of an earlier run must not count for this one.
        std::fs::remove_file(&self.results).ok();
        Ok(())
    }

    fn check(&mut self) -> Result<Option<Digest>, Failure> {
        self.process.check().map_err(|failure| in_lits_words(failure, "see what it said"))
    }

    fn run(&mut self, phase: Phase) -> Result<Sample, Failure> {
        self.process.run(phase).map_err(|failure| in_lits_words(failure, "run it alone to see why"))
    }

    fn conclude(&mut self) -> Result<(), Failure> {
        let unreadable = |why: String| {
            let name = self.process.name();
            let path = self.results.display();
            Failure::Other(format!("'{name}' left no results in '{path}', which -o named: {why}"))
        };
        let text = std::fs::read(&self.results).map_err(|error| unreadable(error.to_string()))?;
        let run = Run::parse(&text).map_err(unreadable)?;
        self.verdicts.borrow_mut().add(self.side, run);
        Ok(())
    }
}

/// Rewords a failure: a lit ends with 0 or 1, so the advice of `hotstart ab` on other codes does not apply.
fn in_lits_words(failure: Failure, advice: &str) -> Failure {
    let Failure::Status { name, phase, status, said, .. } = failure else { return failure };
    let said = said.trim_end();
    let said = if said.is_empty() { String::new() } else { format!(":\n{said}") };
    Failure::Other(format!(
        "'{name}' {} {phase}, where a lit ends with 0 or 1; {advice}{said}",
        describe(status)
    ))
}
