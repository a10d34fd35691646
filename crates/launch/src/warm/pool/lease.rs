//! A process of the pool on loan: for one start, or for one run.
//!
//! A lease and an active run are values. Whichever way they are dropped, the process goes back or ends, and its place is free; no caller
//! can forget it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::foresight::Arguments;
use super::health::Retirement;
use super::memory::{Base, Owns, Share};
use super::permit::{Held, Permit};
use super::places::Why;
use super::stem::Stem;
use super::tool::Tool;
use super::{Make, Pool, Process, Unit, Worker, Zygote};
use crate::slots::{Entry, Slot};
use crate::warm::affinity;
use crate::warm::observe::Observed;
use crate::warm::request::Failure;
use crate::warm::wire;
use crate::warm::worker::{Doubts, Ended, How};
use crate::{Reason, Spec, Usage, Via};

/// Forks after which the memory of a zygote is measured again: it puts its text on large pages after some of them.
const MEASURE_EACH: u32 = 16;

/// A process that no other start uses. When the lease is dropped, the process goes back to the pool.
#[derive(Debug)]
pub(crate) struct Lease<'p, M: Make> {
    pool: &'p Pool<M>,
    tool: Arc<Tool<M>>,
    what: Option<What<M>>,
}

#[derive(Debug)]
enum What<M: Make> {
    /// With a permit if it makes a persistent process.
    Zygote(Held<M::Zygote>, Option<Permit>),
    Worker(Held<M::Worker>, bool),
}

/// A process that was started.
pub(crate) struct Started<'p, M: Make> {
    pub pid: i32,
    pub via: Via,
    /// Its run, if it runs behind the gate.
    pub run: Option<ActiveRun<'p, M>>,
}

/// A process behind the gate while it runs a request.
pub(crate) struct ActiveRun<'p, M: Make> {
    pool: &'p Pool<M>,
    tool: Arc<Tool<M>>,
    held: Held<M::Worker>,
    arguments: Arguments,
    audited: bool,
    /// Whether the process ends with the run, and has no place.
    is_once: bool,
    /// Whether the process was made for this run, and is used again.
    is_new: bool,
    cpu: Cpu,
}

/// CPU times of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// Of the zygote that has forked its process.
    fork: Duration,
    /// Of its process, and the part outside the run; `None` until it has ended.
    run: Option<(Duration, Duration)>,
}

impl<M: Make> Started<'_, M> {
    /// Describes a process that was started by exec.
    pub(crate) fn cold(pid: i32, reason: Reason) -> Self {
        Started { pid, via: Via::Cold(reason), run: None }
    }
}

impl<'p, M: Make> Lease<'p, M> {
    pub(super) fn zygote(
        pool: &'p Pool<M>,
        tool: &Arc<Tool<M>>,
        held: Held<M::Zygote>,
        grown: Option<Permit>,
    ) -> Self {
        Lease { pool, tool: Arc::clone(tool), what: Some(What::Zygote(held, grown)) }
    }

    pub(super) fn worker(
        pool: &'p Pool<M>,
        tool: &Arc<Tool<M>>,
        held: Held<M::Worker>,
        audited: bool,
    ) -> Self {
        Lease { pool, tool: Arc::clone(tool), what: Some(What::Worker(held, audited)) }
    }

    /// Returns the numbers of zygotes, persistent processes, and claims on a new one.
    #[cfg(test)]
    pub(super) fn holds(&self) -> [usize; 3] {
        match &self.what {
            Some(What::Zygote(_, grown)) => [1, 0, usize::from(grown.is_some())],
            Some(What::Worker(..)) => [0, 1, 0],
            None => [0, 0, 0],
        }
    }

    /// Returns the observation of the constructors of its process.
    pub(super) fn observed(&self) -> Option<Arc<Observed>> {
        match self.what.as_ref()? {
            What::Zygote(held, _) => Some(Arc::clone(&held.unit.observed)),
            What::Worker(held, _) => Some(Arc::clone(&held.unit.observed)),
        }
    }

    /// Returns whether a cold start in `cwd` might load other files than its process has.
    pub(super) fn is_shadowed(&self, cwd: &std::path::Path) -> bool {
        match &self.what {
            Some(What::Zygote(held, _)) => held.unit.process.is_shadowed(cwd),
            Some(What::Worker(held, _)) => held.unit.process.is_shadowed(cwd),
            None => false,
        }
    }

    /// Starts `spec` in `slot`. After an error nothing was started. Without a slot nothing can be started. If it is `alone`,
    /// the requester waits for it next.
    pub(crate) fn start(
        mut self,
        spec: &Spec<'_>,
        slot: Option<Slot<'_>>,
        alone: bool,
    ) -> Result<Started<'p, M>, Reason> {
        let slot = slot.ok_or(Reason::System)?;
        match self.what.take().expect("held until dropped") {
            What::Worker(held, audited) => {
                self.reset(held, audited, spec, slot, alone && self.pool.policy.near)
            }
            What::Zygote(mut held, grown) => {
                let mut started = match grown {
                    Some(permit) => self.grow(&mut held, permit, spec, slot),
                    None => self.fork(&mut held, spec, slot),
                };
                if self.pool.policy.compare {
                    let fork = held.unit.process.spent();
                    let run = started.as_mut().ok().and_then(|started| started.run.as_mut());
                    run.into_iter().for_each(|run| run.cpu.fork = fork);
                }
                // The zygote goes back when this is dropped.
                self.what = Some(What::Zygote(held, None));
                started
            }
        }
    }

    fn reset(
        &self,
        mut held: Held<M::Worker>,
        audited: bool,
        spec: &Spec<'_>,
        slot: Slot<'_>,
        near: bool,
    ) -> Result<Started<'p, M>, Reason> {
        // A persistent process would report only at the end that it could not enter the directory.
        if rustix::fs::access(spec.cwd.join("."), rustix::fs::Access::EXISTS).is_err() {
            self.give_back_unused(held);
            return Err(Reason::Refused);
        }
        let pid = held.unit.process.pid();
        let pgid = spec.process_group.number(pid);
        // The tool's children are in this group, and must not be missed if this process is killed now.
        slot.enter(Entry { pid, pgid });
        held.unit.asked_on = affinity::current();
        held.unit.is_numbered |= self.tool.renumbers(spec);
        let how = How {
            audit: audited,
            near,
            renumber: held.unit.is_numbered,
            learn: self.pool.policy.learn_at_once,
        };
        match held.unit.process.start(spec, how) {
            Ok(()) => {
                let now = held.unit.process.pid();
                if now != pid {
                    slot.enter(Entry { pid: now, pgid: spec.process_group.number(now) });
                    self.tool.renumbered(held.id(), now);
                    held.unit.process.settle();
                }
                Ok(self.active(held, audited, Via::Reset, spec))
            }
            Err(Failure::Request(reason)) => {
                self.give_back_unused(held);
                Err(reason)
            }
            // Its process ends, which frees its place.
            Err(Failure::Died | Failure::NoWorker) => Err(Reason::ZygoteDied),
        }
    }

    /// Gives a process back that its start did not use. A clone that has not run at all believes that its number is that of the run that it
    /// was made for, and a later run would find it older than commands before: it ends.
    fn give_back_unused(&self, held: Held<M::Worker>) {
        if held.unit.runs == 0 {
            return held.retire(Why::Gone);
        }
        let last_use = held.unit.last_use();
        self.tool.give_back_worker(held, last_use);
    }

    /// Has the zygote make a persistent process.
    fn grow(
        &self,
        held: &mut Held<M::Zygote>,
        permit: Permit,
        spec: &Spec<'_>,
        slot: Slot<'_>,
    ) -> Result<Started<'p, M>, Reason> {
        match held.unit.process.worker(spec, slot, self.pool.policy.near) {
            Ok(worker) => {
                // The zygote keeps a copy of its memory for the processes that it makes.
                held.unit.base.resize(held.unit.process.mapped());
                let mut unit = Unit::worker(worker, &held.unit, affinity::current());
                unit.is_numbered = self.tool.renumbers(spec);
                self.tool.grown(&permit, &unit.key, unit.process.pid());
                Ok(self.active(Held::new(unit, permit), false, Via::Fork, spec))
            }
            Err(Failure::NoWorker) => {
                drop(permit);
                self.tool.cannot_reset();
                self.fork(held, spec, slot)
            }
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Has the zygote make a fork: behind the gate, if possible.
    fn fork(
        &self,
        held: &mut Held<M::Zygote>,
        spec: &Spec<'_>,
        slot: Slot<'_>,
    ) -> Result<Started<'p, M>, Reason> {
        let near = self.pool.policy.near;
        let zygote = &mut held.unit.process;
        let started =
            match if self.tool.has_gate() { zygote.once(spec, slot, near) } else { Err(Failure::NoWorker) } {
                Ok(worker) => {
                    let unit = Unit::worker(worker, &held.unit, affinity::current());
                    let held = Held::new(unit, Permit::without_place());
                    let run = ActiveRun { is_once: true, ..self.run(held, false, spec) };
                    Started { pid: run.worker().pid(), via: Via::Fork, run: Some(run) }
                }
                Err(Failure::NoWorker) => {
                    self.tool.cannot_reset();
                    let pid = zygote.fork(spec, slot, near).map_err(|failure| self.failed(failure))?;
                    Started { pid, via: Via::Fork, run: None }
                }
                Err(failure) => return Err(self.failed(failure)),
            };
        held.unit.forks += 1;
        if held.unit.forks % MEASURE_EACH == 0 {
            held.unit.base.resize(held.unit.process.mapped());
        }
        Ok(started)
    }

    /// Returns the reason for which a zygote has not served a request.
    fn failed(&self, failure: Failure) -> Reason {
        match failure {
            Failure::Request(reason) => reason,
            Failure::Died | Failure::NoWorker => {
                self.tool.lost_zygote();
                Reason::ZygoteDied
            }
        }
    }

    fn active(&self, held: Held<M::Worker>, audited: bool, via: Via, spec: &Spec<'_>) -> Started<'p, M> {
        let run = ActiveRun { is_new: via == Via::Fork, ..self.run(held, audited, spec) };
        Started { pid: run.worker().pid(), via, run: Some(run) }
    }

    fn run(&self, held: Held<M::Worker>, audited: bool, spec: &Spec<'_>) -> ActiveRun<'p, M> {
        let (pool, tool, arguments) = (self.pool, Arc::clone(&self.tool), Arguments::of(&spec.argv));
        ActiveRun { pool, tool, held, arguments, audited, is_once: false, is_new: false, cpu: Cpu::default() }
    }
}

impl<M: Make> Drop for Lease<'_, M> {
    fn drop(&mut self) {
        match self.what.take() {
            None => {}
            Some(What::Zygote(held, grown)) => {
                drop(grown);
                if held.unit.process.is_worn(self.pool.policy.starts_per_zygote) {
                    held.retire(Why::Worn);
                } else {
                    self.tool.give_back_zygote(held, self.pool.tick());
                    self.pool.evict();
                }
            }
            Some(What::Worker(held, _)) => self.give_back_unused(held),
        }
    }
}

impl<M: Make> fmt::Debug for ActiveRun<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ActiveRun").field(&self.held).finish()
    }
}

impl<M: Make> ActiveRun<'_, M> {
    /// Returns whether the process ends with the run, and has no place.
    #[cfg(test)]
    pub(super) fn is_once(&self) -> bool {
        self.is_once
    }

    pub(crate) fn worker(&self) -> &M::Worker {
        &self.held.unit.process
    }

    pub(crate) fn worker_mut(&mut self) -> &mut M::Worker {
        &mut self.held.unit.process
    }

    /// Measures a run that has ended, before its process is reaped. `usage` is that of the run alone, if the process lives on.
    pub(crate) fn measure(&mut self, usage: Option<&Usage>) {
        if self.pool.policy.compare {
            let spent = self.held.unit.process.spent();
            let outside =
                usage.map_or(Duration::ZERO, |usage| spent.saturating_sub(usage.user + usage.system));
            self.cpu.run = Some((spent, outside));
        }
    }

    /// Accounts for the run's CPU time. The first run of a process includes its making, and an audited one the audit.
    fn account(&self) {
        let Cpu { fork, run: Some((spent, outside)) } = self.cpu else { return };
        let is_typical = !self.is_new && !self.audited;
        self.tool.ran_warm(is_typical.then_some(spent + fork), outside + fork);
    }

    /// Gives the process back after it has reported `ended`. Only then may it serve others.
    pub(crate) fn finish(self, ended: &Ended) {
        self.account();
        let ActiveRun { pool, tool, mut held, arguments, audited, is_once, .. } = self;
        let on_doubt = pool.policy.on_doubt;
        if is_once {
            if let Ended::Process { doubts, .. } = ended {
                tool.ran_once(*doubts, on_doubt);
                pool.remember_doubts(&tool);
            }
            return held.retire(Why::Gone);
        }
        match ended {
            Ended::Reset { has_shown, .. } => tool.has_looked(&arguments, *has_shown),
            Ended::Process { retired, .. } => tool.has_looked(&arguments, Retirement::Number.is_in(*retired)),
            Ended::NotRun => {}
        }
        let deferred = match ended {
            // A program has run as its child that may know it.
            Ended::Reset { differs: 0, is_spoiled: true, .. } => {
                tool.retired(wire::RETIRED_CHILDREN, Doubts::new(wire::RUN_CHILDREN), on_doubt);
                None
            }
            Ended::Reset { differs, at_point, children, knows, .. } => {
                tool.was_reset(audited, *differs, *at_point, *children).then_some((*at_point, *knows))
            }
            Ended::Process { retired, doubts } => {
                tool.retired(*retired, *doubts, on_doubt);
                None
            }
            Ended::NotRun => None,
        };
        pool.remember_doubts(&tool);
        let Some((is_deferred, knows)) = deferred else { return held.retire(Why::Gone) };
        held.unit.knows = knows;
        held.unit.runs += 1;
        held.unit.audits_due = held.unit.audits_due.saturating_sub(u32::from(audited));
        let is_worn = held.unit.process.is_worn(pool.policy.starts_per_zygote);
        let is_lost = !is_worn && knows.is_in_the_way && knows.learned == 0 && tool.may_lose_layout();
        if is_lost {
            held.unit.process.wear_out();
        }
        if is_worn || is_lost {
            return held.retire(Why::Worn);
        }
        held.unit.measure(is_deferred, |bytes| pool.budget.take(bytes));
        if tool.wants_stem(&held.unit, &pool.policy) && !add_stem(pool, &tool, &mut held.unit) {
            return held.retire(Why::Gone);
        }
        tool.give_back_worker(held, pool.tick());
        pool.evict();
    }
}

/// Makes a stem of a process that has learned. Returns whether that lives.
fn add_stem<M: Make>(pool: &Pool<M>, tool: &Tool<M>, unit: &mut Unit<M::Worker>) -> bool {
    let share = pool.budget.take(unit.own.as_ref().map_or(0, Share::bytes));
    match Stem::of(unit, share) {
        Ok(stem) => tool.put_stem(stem, &pool.policy),
        Err(Failure::Died) => return false,
        Err(_) => {}
    }
    true
}

impl<W: Worker> Unit<W> {
    /// Counts the memory of a persistent process once it has run, and again when it has a deferred snapshot, which takes as
    /// much as the first one.
    fn measure(&mut self, is_deferred: bool, take: impl FnOnce(u64) -> Share) {
        let has_grown = is_deferred && self.owns == Owns::Plain;
        if !has_grown && self.own.is_some() {
            return;
        }
        if has_grown {
            self.owns = Owns::Deferred;
        }
        let process = &self.process;
        let bytes = Base::owned(&self.base, process.mapped(), self.owns, || process.private());
        match &self.own {
            Some(share) => share.resize(bytes),
            None => self.own = Some(take(bytes)),
        }
    }
}
