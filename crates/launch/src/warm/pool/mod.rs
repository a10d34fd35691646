//! The processes that a runner keeps for warm starts: decides which start gets which, when to make another, and when to end
//! one.
//!
//! The pool knows no system call. A [`Make`] makes its processes, so its decisions are tested without processes: `tests`
//! drives it with random sequences of events. A start is served in three steps: [`Pool::lease`] chooses a process, or returns
//! the reason for a cold start; [`Lease::start`] has it run the request; [`ActiveRun::finish`] gives a persistent process
//! back. Each claim on a process is a value ([`permit::Permit`]).

pub(crate) mod account;
mod decide;
pub(crate) mod doubt;
mod foresight;
pub(crate) mod health;
mod lease;
pub(crate) mod memory;
pub(crate) mod permit;
mod places;
pub(crate) mod statistics;
mod stem;
#[cfg(test)]
mod tests;
pub(crate) mod tool;
mod wait;

pub use account::CpuTime;
pub use health::{Retirement, Stopped};
pub use statistics::{Statistics, ToolStatistics};

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ahead::Made;
use super::doubts::KnownDoubts;
use super::eligible::Traits;
use super::layout::Layout;
use super::observe::{Observed, Refusal, Tally};
use super::request::Failure;
use super::wire::Knowledge;
use super::worker::How;
use super::{Policy, refuses};
use crate::slots::Slot;
use crate::{Allocators, Reason, Spec};
pub(crate) use lease::{ActiveRun, Lease, Started};
use memory::{Base, Budget, Owns, Share};
use permit::{Held, Permit};
use places::Why;
use stem::Stem;
use tool::{Plan, Tool};

/// A process that serves starts.
pub(crate) trait Process: fmt::Debug + Send + 'static {
    /// Returns whether a cold start would still load the files that it was made of, and none of its runs is doubted.
    fn is_current(&self) -> bool;
    /// Returns whether it is dead, or its memory layout was used for `starts` starts.
    fn is_worn(&self, starts: u32) -> bool;
    /// Returns whether a cold start in `cwd` might load other files.
    fn is_shadowed(&self, cwd: &Path) -> bool;
    /// Returns the private memory that it maps, in bytes.
    fn mapped(&self) -> u64;
    /// Returns its CPU time since the last call.
    fn spent(&mut self) -> Duration;
}

/// A tool stopped before `main`, which makes forks of itself.
pub(crate) trait Zygote: Process {
    type Worker: Worker;
    /// Returns the variables that its constructors asked for.
    fn names(&self) -> &[Vec<u8>];
    /// Returns the path that its program has in `/proc/self/exe`.
    fn program_exe(&self) -> &[u8];
    /// Returns the time that a warm start saves: from the zygote's own exec until it stopped.
    fn start_time(&self) -> Duration;
    /// Makes a fork that runs `spec` without the gate. After an error there is none. If `near`, it begins on this processor.
    fn fork(&mut self, spec: &Spec<'_>, slot: Slot<'_>, near: bool) -> Result<i32, Failure>;
    /// Makes a process that runs `spec` behind the gate, once. After an error there is none.
    fn once(&mut self, spec: &Spec<'_>, slot: Slot<'_>, near: bool) -> Result<Self::Worker, Failure>;
    /// Makes a persistent process, which runs `spec` first. After an error there is none.
    fn worker(&mut self, spec: &Spec<'_>, slot: Slot<'_>, near: bool) -> Result<Self::Worker, Failure>;
}

/// A persistent process.
pub(crate) trait Worker: Process {
    fn pid(&self) -> i32;
    /// Has it, its zygote, and all others with its memory layout be worn from now on.
    fn wear_out(&mut self);
    /// Starts `spec` in it. Its number may be another one then.
    fn start(&mut self, spec: &Spec<'_>, how: How) -> Result<(), Failure>;
    /// Reaps the process whose memory it has taken over, if there is one.
    fn settle(&mut self);
    /// Returns the memory that only it has; slow.
    fn private(&self) -> Option<u64>;
    /// Makes another process that is as this one, which waits. After an error there is none.
    fn clone_process(&mut self) -> Result<Self, Failure>
    where
        Self: Sized;
}

/// Knowledge about a program before it has a zygote.
#[derive(Debug)]
pub(crate) struct Findings {
    pub traits: Traits,
    pub observed: Arc<Observed>,
    /// Whether its constructors were observed just now.
    pub is_new: bool,
}

/// Makes the processes of a pool.
pub(crate) trait Make: fmt::Debug + Send + Sync + 'static {
    type Zygote: Zygote<Worker = Self::Worker>;
    type Worker: Worker;
    /// Returns the zygote of `program` from the prefork. Called once for each program.
    fn made_ahead(&self, program: &Path) -> Option<Made<Self::Zygote>>;
    /// Returns the CPU time of all observations so far.
    fn time_of_observations(&self) -> Duration;
    /// Returns whether it is already known what the constructors of `spec`'s program do, or why it is cold.
    fn is_known(&self, spec: &Spec<'_>, allocator: Option<&Path>) -> bool;
    /// Returns the cold starts in earlier runs of a program that was not observed.
    fn tally(&self, program: &Path, allocator: Option<&Path>) -> Tally;
    /// Stores such a start with its CPU time, or, without one, forgets all: the program is observed now.
    fn count(&self, program: &Path, allocator: Option<&Path>, spent: Option<Duration>);
    /// Observes the constructors of `spec`'s program.
    fn observe(&self, spec: &Spec<'_>, allocator: Option<&Path>) -> Result<Findings, Reason>;
    /// Observes them with these `numbers` of arguments, too, `spec`'s among them; or returns the reason for a cold start.
    fn extend(
        &self,
        observed: &Observed,
        numbers: &[usize],
        spec: &Spec<'_>,
        allocator: Option<&Path>,
    ) -> Result<(), Refusal>;
    /// Starts the program up to its `main`.
    fn zygote(
        &self,
        spec: &Spec<'_>,
        allocator: Option<&Path>,
        findings: &Findings,
    ) -> Result<Self::Zygote, Reason>;
}

/// A process, and the pool's knowledge about it.
#[derive(Debug)]
pub(crate) struct Unit<P> {
    pub process: P,
    key: Arc<[u8]>,
    /// The observation of its constructors.
    observed: Arc<Observed>,
    base: Arc<Base>,
    /// The memory of a persistent process beyond the shared part. A zygote has its base.
    own: Option<Share>,
    is_zygote: bool,
    /// Number of forks of a zygote, persistent processes not counted.
    forks: u32,
    last_use: u64,
    /// The processor of the thread that made the last request.
    asked_on: usize,
    /// The kind of a persistent process, for its memory.
    owns: Owns,
    /// Number of runs of a persistent process that were reset, for [`Clones::Each`](crate::Clones::Each).
    runs: u32,
    /// The deferred snapshots of a persistent process.
    knows: Knowledge,
    /// Number of runs that are audited, whatever the sample.
    audits_due: u32,
    /// Number of its runs that would have begun later in a clone.
    missed: u32,
    /// Whether its runs get process numbers of their own (`foresight.rs`).
    is_numbered: bool,
}

/// All tools of a runner, and their processes.
#[derive(Debug)]
pub(crate) struct Pool<M: Make> {
    policy: Policy,
    maker: M,
    tools: Mutex<HashMap<OsString, Arc<Tool<M>>>>,
    budget: Budget,
    clock: AtomicU64,
    doubts: KnownDoubts,
}

impl<P> Unit<P> {
    fn zygote(process: P, key: Arc<[u8]>, observed: Arc<Observed>, base: Arc<Base>) -> Self {
        Unit {
            process,
            key,
            observed,
            base,
            own: None,
            is_zygote: true,
            forks: 0,
            last_use: 0,
            asked_on: usize::MAX,
            owns: Owns::Plain,
            runs: 0,
            knows: Knowledge::default(),
            audits_due: 0,
            missed: 0,
            is_numbered: false,
        }
    }

    /// Wraps a persistent process made from the zygote `origin`, requested by a thread on processor `asked_on`.
    fn worker<Z>(process: P, origin: &Unit<Z>, asked_on: usize) -> Self {
        let (key, observed, base) = (&origin.key, &origin.observed, &origin.base);
        let unit = Unit::zygote(process, Arc::clone(key), Arc::clone(observed), Arc::clone(base));
        Unit { is_zygote: false, asked_on, ..unit }
    }

    /// Wraps a clone of the persistent process `source`.
    fn clone_of(process: P, source: &Unit<P>) -> Self {
        let unit = Unit::worker(process, source, usize::MAX);
        Unit { owns: Owns::Clone, knows: source.knows, ..unit }
    }

    /// Returns the time of the last use. A zygote counts as used while its processes are, since its memory is theirs.
    fn last_use(&self) -> u64 {
        if self.is_zygote { self.base.last_use() } else { self.last_use }
    }

    fn touch(&mut self, now: u64) {
        self.last_use = now;
        self.base.touch(now);
    }
}

impl<M: Make> Pool<M> {
    pub(crate) fn new(policy: Policy, maker: M) -> Self {
        let policy = Policy {
            zygotes_per_tool: crate::descriptors::fit(policy.zygotes_per_tool),
            workers_per_tool: crate::descriptors::fit(policy.workers_per_tool),
            ..policy
        };
        let doubts = KnownDoubts::new(policy.cache.clone().filter(|_| policy.remembers_doubts));
        let (tools, budget, clock) = (Mutex::default(), Budget::default(), AtomicU64::new(0));
        Pool { policy, maker, tools, budget, clock, doubts }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn doubts(&self) -> &KnownDoubts {
        &self.doubts
    }

    /// Remembers that a tool is doubtful in most runs, or is so no more, once that is seen.
    pub(crate) fn remember_doubts(&self, tool: &Tool<M>) {
        let Some(is_doubtful) = tool.news() else { return };
        if let Some(known) = self.doubts.of_tool(tool.path()) {
            self.doubts.record(known, is_doubtful);
        }
    }

    /// Returns the state of a program.
    pub(crate) fn tool(&self, program: &Path, allocators: Option<&Allocators>) -> Arc<Tool<M>> {
        let mut tools = self.tools.lock().expect("no panic while locked");
        if let Some(tool) = tools.get(program.as_os_str()) {
            return Arc::clone(tool);
        }
        let tried = self.doubts.tries(self.doubts.of_tool(program));
        let tool = Arc::new(Tool::new(program, allocators, tried));
        tools.insert(program.into(), Arc::clone(&tool));
        tool
    }

    /// Returns a process for `spec`, or the reason for which it is started cold.
    pub(crate) fn lease(
        &self,
        tool: &Arc<Tool<M>>,
        spec: &Spec<'_>,
        layout: Layout,
    ) -> Result<Lease<'_, M>, Reason> {
        if let Some(reason) = self.policy.refuses(&spec.program).or_else(|| refuses(spec)) {
            return Err(reason);
        }
        if tool.begin(&self.maker, &self.budget) {
            self.evict();
        }
        loop {
            let plan = tool.plan(spec, layout, &self.policy)?;
            let Some(lease) = self.carry_out(tool, spec, layout, plan)? else { continue };
            let Some(observed) = lease.observed().filter(|observed| !observed.covers(spec)) else {
                return Ok(lease);
            };
            // Other starts can use the process meanwhile.
            drop(lease);
            tool.extend(spec, &self.maker, &observed, &self.policy)?;
        }
    }

    /// Returns the process of `plan`, made if necessary. `None` if it can serve no more, and another plan is needed.
    fn carry_out(
        &self,
        tool: &Arc<Tool<M>>,
        spec: &Spec<'_>,
        layout: Layout,
        plan: Plan<M>,
    ) -> Result<Option<Lease<'_, M>>, Reason> {
        let lease = match plan {
            Plan::Reset(held, _) if !held.unit.process.is_current() => {
                held.retire(Why::Outdated);
                return Ok(None);
            }
            Plan::Reset(held, audited) => Lease::worker(self, tool, held, audited),
            Plan::Clone(stem, permit, audited, audits) => match self.clone_of(tool, &stem, permit) {
                Some(mut held) => {
                    held.unit.audits_due = audits;
                    Lease::worker(self, tool, held, audited)
                }
                None => return Ok(None),
            },
            Plan::Use(held, grown) => match self.end_of(&held.unit.process) {
                None => Lease::zygote(self, tool, held, grown),
                Some(why) => {
                    held.retire(why);
                    let permit = tool.claim(spec, layout, &self.policy)?;
                    Lease::zygote(self, tool, self.make(tool, spec, layout, permit)?, grown)
                }
            },
            Plan::Make(permit, grown) => {
                Lease::zygote(self, tool, self.make(tool, spec, layout, permit)?, grown)
            }
        };
        if lease.is_shadowed(&spec.cwd) { Err(Reason::RelativePath) } else { Ok(Some(lease)) }
    }

    /// Has a stem make the persistent process of `permit`; `None` if it can serve no more.
    fn clone_of(
        &self,
        tool: &Tool<M>,
        stem: &Arc<Stem<M::Worker>>,
        permit: Permit,
    ) -> Option<Held<M::Worker>> {
        let Some(unit) = stem.make(self.policy.starts_per_zygote, self.tick()) else {
            tool.lose_stem(stem);
            return None;
        };
        tool.grown(&permit, &unit.key, unit.process.pid());
        tool.cloned();
        Some(Held::new(unit, permit))
    }

    /// Returns the reason for which a zygote can serve no more, if there is one.
    fn end_of(&self, zygote: &M::Zygote) -> Option<Why> {
        if !zygote.is_current() {
            return Some(Why::Outdated);
        }
        zygote.is_worn(self.policy.starts_per_zygote).then_some(Why::Worn)
    }

    /// Makes a zygote in the place of `permit`.
    fn make(
        &self,
        tool: &Tool<M>,
        spec: &Spec<'_>,
        layout: Layout,
        permit: Permit,
    ) -> Result<Held<M::Zygote>, Reason> {
        let made = tool.make(spec, layout, &self.maker, permit, &self.policy, |zygote| {
            let memory = zygote.mapped();
            let fits = memory <= self.policy.memory;
            fits.then(|| Base::new(self.budget.take(memory))).ok_or(Reason::Memory)
        });
        match &made {
            Ok(_) => self.evict(),
            Err(reason) => tool.failed(*reason),
        }
        made
    }

    /// Ends the idle processes that were unused for longest, while all together own more than they may.
    fn evict(&self) {
        if self.budget.used() <= self.policy.memory {
            return;
        }
        let tools: Vec<_> = self.tools.lock().expect("no panic while locked").values().cloned().collect();
        while self.budget.used() > self.policy.memory {
            let oldest =
                tools.iter().filter_map(|tool| Some((tool.oldest_idle()?, tool))).min_by_key(|(t, _)| *t);
            if !oldest.is_some_and(|(_, tool)| tool.drop_oldest()) {
                return;
            }
        }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Records the CPU time of a start that was cold because its program is not observed yet.
    pub(crate) fn ran_unobserved(&self, tool: &Tool<M>, spent: Duration) {
        tool.ran_unobserved(&self.maker, spent);
    }

    /// Returns how the starts so far were made.
    pub(crate) fn statistics(&self) -> Statistics {
        let tools = self.tools.lock().expect("no panic while locked");
        let mut tools: Vec<_> = tools.values().map(|tool| tool.statistics()).collect();
        tools.sort_by(|a, b| a.program.cmp(&b.program));
        Statistics { tools, memory: self.policy.memory }
    }
}
