//! Counts of starts by tool and way, for `--explain`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::account::CpuTime;
use super::health::{Retirement, Stopped};
use crate::{Reason, Via};

/// All tools, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// One entry for each program that was started.
    pub tools: Vec<ToolStatistics>,
    /// Limit on the memory that all processes together own, in bytes.
    pub memory: u64,
}

/// One tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolStatistics {
    /// Its path.
    pub program: PathBuf,
    /// The allocator's library that the tool got; `None` is the system's.
    pub allocator: Option<PathBuf>,
    /// The reason for which it did not get the chosen allocator.
    pub no_allocator: Option<Reason>,
    /// Starts by exec, by reason.
    pub cold: BTreeMap<Reason, u64>,
    /// Observations of its constructors, made because none was stored.
    pub observed: u64,
    /// The reason and the details of a refusal by observation, if there was one.
    pub constructors: Option<(Reason, String)>,
    /// The line at which a Python script halts, and what it touches there.
    pub halts_at: Option<String>,
    /// Starts as a fork.
    pub forks: u64,
    /// Starts in persistent processes.
    pub resets: u64,
    /// Time that the runner spent on starts in persistent processes.
    pub reset_time: Duration,
    /// Runs in persistent processes that were audited.
    pub audits: u64,
    /// Runs in persistent processes that began at a deferred snapshot, not at `main`.
    pub at_point: u64,
    /// Persistent processes that were made by a clone of one that had learned.
    pub clones: u64,
    /// Retired persistent processes, by reason.
    pub retired: BTreeMap<Retirement, u64>,
    /// System calls that made runs doubtful, by name: the first such call of each run.
    pub unknown_calls: BTreeMap<&'static str, u64>,
    /// The reason for which it no longer runs in persistent processes.
    pub only_forked: Option<Stopped>,
    /// Idle processes that were ended because all together owned more memory than allowed.
    pub ended_for_memory: u64,
    /// Idle processes that were ended for one of another key, because one tool may have only so many.
    pub ended_for_room: u64,
    /// Forks that were made because no persistent process could be made: one had been ended for its memory shortly before.
    pub not_grown_for_memory: u64,
    /// Forks that were made because there were as many persistent processes as allowed.
    pub not_grown_for_room: u64,
    /// Time that the runner spent on cold starts. The tool's own start-up is not included.
    pub cold_time: Duration,
    /// Time that the runner spent on forks, zygotes included.
    pub fork_time: Duration,
    /// Number of zygotes.
    pub zygotes: u64,
    /// Sum of their times from exec to stop, which each fork saves.
    pub zygote_time: Duration,
    /// CPU times, if starts are measured ([`crate::Policy::compare`]).
    pub cpu: CpuTime,
}

impl ToolStatistics {
    /// Returns the number of cold starts, whatever the reason.
    pub fn cold_total(&self) -> u64 {
        self.cold.values().sum()
    }

    /// Returns the number of warm starts of either kind.
    pub fn warm_total(&self) -> u64 {
        self.forks + self.resets
    }

    pub(super) fn record(&mut self, via: Via, took: Duration) {
        match via {
            Via::Cold(reason) => {
                *self.cold.entry(reason).or_default() += 1;
                self.cold_time += took;
            }
            Via::Fork => {
                self.forks += 1;
                self.fork_time += took;
            }
            Via::Reset => {
                self.resets += 1;
                self.reset_time += took;
            }
        }
    }

    /// Returns the time saved by warm starts: each saves the average time of making a zygote.
    pub fn saved(&self) -> Duration {
        let Some(each) = self.zygote_time.checked_div(self.zygotes as u32) else { return Duration::ZERO };
        (each * self.warm_total() as u32).saturating_sub(self.fork_time + self.reset_time)
    }
}
