//! What a campaign has done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::generate::Sequence;
use crate::run::Tally;

/// Figures of a campaign, or of one of its jobs.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Programs compiled.
    pub programs: usize,
    /// Sequences drawn.
    pub sequences: usize,
    /// Starts, by mode.
    pub tally: Tally,
    /// Acts that were run.
    pub covered: BTreeSet<String>,
    /// All acts there are.
    pub acts: usize,
    /// Acts that were in a run that two cold runs showed differently.
    pub nondeterministic: BTreeMap<String, u64>,
}

impl Statistics {
    /// Takes note of a sequence that was run.
    pub fn covers(&mut self, sequence: &Sequence) {
        self.sequences += 1;
        self.covered.extend(sequence.before.iter().cloned());
        for request in &sequence.requests {
            self.covered.extend(request.acts.iter().cloned());
        }
    }

    /// Takes note that run `at` of a sequence is not deterministic.
    pub fn nondeterministic(&mut self, sequence: &Sequence, at: usize) {
        for act in &sequence.requests[at].acts {
            *self.nondeterministic.entry(act.clone()).or_default() += 1;
        }
    }

    /// Adds another job's.
    pub fn merge(&mut self, other: &Statistics) {
        self.programs += other.programs;
        self.sequences += other.sequences;
        self.tally.merge(&other.tally);
        self.covered.extend(other.covered.iter().cloned());
        for (act, count) in &other.nondeterministic {
            *self.nondeterministic.entry(act.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "programs {}, sequences {}", self.programs, self.sequences)?;
        for (mode, [cold, forked, reset]) in &self.tally.runs {
            writeln!(f, "{:>8}: {cold} cold, {forked} forked, {reset} reset", mode.name())?;
        }
        let Tally { retired, lost, reasons, .. } = &self.tally;
        writeln!(f, "workers retired {retired}, runs lost and repeated {lost}")?;
        for (reason, count) in reasons {
            writeln!(f, "    cold {count} times: {reason}")?;
        }
        writeln!(f, "acts covered {} of {}", self.covered.len(), self.acts)?;
        if !self.nondeterministic.is_empty() {
            let each = self.nondeterministic.iter().map(|(act, count)| format!("{act} {count}"));
            writeln!(f, "runs that differ when cold had: {}", each.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}
