//! The statistics of a campaign.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::generate::Sequence;
use crate::run::Tally;

/// Statistics of a campaign, or of one of its jobs.
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
    /// The number of all acts.
    pub acts: usize,
    /// Acts in runs in which two cold runs differed.
    pub nondeterministic: BTreeMap<String, u64>,
}

impl Statistics {
    /// Records a sequence that was run.
    pub fn covers(&mut self, sequence: &Sequence) {
        self.sequences += 1;
        self.covered.extend(sequence.before.iter().cloned());
        for request in &sequence.requests {
            self.covered.extend(request.acts.iter().cloned());
        }
    }

    /// Records that run `at` of a sequence is nondeterministic.
    pub fn nondeterministic(&mut self, sequence: &Sequence, at: usize) {
        for act in &sequence.requests[at].acts {
            *self.nondeterministic.entry(act.clone()).or_default() += 1;
        }
    }

    /// Adds the statistics of another job.
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
        let Tally { deferred, retired, lost, reasons, .. } = &self.tally;
        writeln!(f, "runs deferred {deferred}, workers retired {retired}, runs lost and repeated {lost}")?;
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
