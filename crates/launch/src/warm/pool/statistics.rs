//! What was started how, for `--explain`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::health::{Retirement, Stopped};
use crate::{Reason, Via};

/// All tools, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// One entry for each program that was started.
    pub tools: Vec<ToolStatistics>,
    /// The memory that all processes together might own, in bytes.
    pub memory: u64,
}

/// One tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolStatistics {
    /// Its path.
    pub program: PathBuf,
    /// The allocator's library that it was given; `None` is the system's.
    pub allocator: Option<PathBuf>,
    /// Why it was not given the allocator that was chosen.
    pub no_allocator: Option<Reason>,
    /// Starts by exec, by reason.
    pub cold: BTreeMap<Reason, u64>,
    /// How often it was started to see what its constructors do, for want of what is kept about them.
    pub observed: u64,
    /// Which reason its constructors gave, if they did, and what exactly it was.
    pub constructors: Option<(Reason, String)>,
    /// Starts by copying.
    pub forks: u64,
    /// Starts in workers.
    pub rewinds: u64,
    /// Time that starting it in workers took the runner.
    pub rewind_time: Duration,
    /// Runs in workers after which everything was compared with the snapshot.
    pub audits: u64,
    /// Runs in workers that began where the tool first looks at its request, not at `main`.
    pub at_point: u64,
    /// Workers that could not be used again, and why.
    pub retired: BTreeMap<Retirement, u64>,
    /// Why it is not rewound any more.
    pub not_rewound: Option<Stopped>,
    /// Idle processes that were ended because all together owned more memory than they may.
    pub ended_for_memory: u64,
    /// Idle processes that were ended for one of another key, as there may be so many of one tool.
    pub ended_for_room: u64,
    /// Forks that were made because no persistent process could be: one was ended for its memory shortly before.
    pub not_grown_for_memory: u64,
    /// Or because there were as many as there may be.
    pub not_grown_for_room: u64,
    /// Time that starting it cold took the runner; the tool's own start-up comes on top of it.
    pub cold_time: Duration,
    /// Time that copying took the runner, templates included.
    pub fork_time: Duration,
    /// Templates made, and how long they took from exec to stop: what each copy saves.
    pub templates: u64,
    /// Sum over the templates.
    pub template_time: Duration,
}

impl ToolStatistics {
    /// Starts by exec, whatever the reason.
    pub fn cold_total(&self) -> u64 {
        self.cold.values().sum()
    }

    /// Starts that were warm in either way.
    pub fn warm_total(&self) -> u64 {
        self.forks + self.rewinds
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
            Via::Rewind => {
                self.rewinds += 1;
                self.rewind_time += took;
            }
        }
    }

    /// What warm starts saved: each was spared what making a template takes on average.
    pub fn saved(&self) -> Duration {
        let Some(each) = self.template_time.checked_div(self.templates as u32) else { return Duration::ZERO };
        (each * self.warm_total() as u32).saturating_sub(self.fork_time + self.rewind_time)
    }
}
