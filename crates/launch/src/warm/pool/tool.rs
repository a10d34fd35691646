//! One tool of a pool, shared by all threads that start it: its state under a lock, and the starts that wait for a process.
//!
//! `decide` chooses the steps of a start. This file locks, waits, and turns claims into values. Nothing here knows how a
//! process is made. A [`Permit`] locks the tool when it is dropped, so none is dropped while the tool is locked.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use super::decide::{Start, State, Step};
use super::doubt::Doubted;
use super::foresight::Arguments;
use super::health::{Health, Stopped};
use super::memory::{Base, Budget};
use super::permit::{Held, Kind, Owner, Permit};
use super::places::{Id, Why};
use super::statistics::ToolStatistics;
use super::stem::Stem;
use super::wait::{Waiting, are_busy, are_learning};
use super::{Make, Process, Unit, Zygote};
use crate::warm::ahead::Made;
use crate::warm::layout::Layout;
use crate::warm::observe::{Observed, Refusal, Tally};
use crate::warm::worker::Doubts;
use crate::warm::{Choice, Clones, OnDoubt, Policy, affinity, exe, key};
use crate::{Allocators, Reason, Spec, Via};

/// Memory layouts that a runner gives up for a word that seems by chance to lead to the strings of dry runs. About one in a hundred has
/// such a word, so a tool that has it in more has it by nature.
const LAYOUTS_LOST_MAX: u32 = 2;

type States<M> = State<<M as Make>::Zygote, <M as Make>::Worker>;

/// One tool.
#[derive(Debug)]
pub(crate) struct Tool<M: Make> {
    path: PathBuf,
    state: Mutex<State<M::Zygote, M::Worker>>,
    /// Completed once the tool has taken its zygote from the prefork, if there is one.
    begun: Once,
}

/// The next step of a start. The caller owns the processes and permits in it.
#[derive(Debug)]
pub(crate) enum Plan<M: Make> {
    /// This persistent process runs it. The flag says whether the run is audited.
    Reset(Held<M::Worker>, bool),
    /// This stem makes a persistent process, which runs it.
    Clone(Arc<Stem<M::Worker>>, Permit, bool, u32),
    /// This zygote forks. With a permit, it makes a persistent process for that.
    Use(Held<M::Zygote>, Option<Permit>),
    /// Make a zygote, then continue as with `Use`.
    Make(Permit, Option<Permit>),
}

impl<M: Make> Owner for Tool<M> {
    fn free(&self, kind: Kind, id: Id, why: Why) {
        // If a panic drops this, a second panic would abort.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match kind {
            Kind::Zygote => drop(state.zygotes.retire(id, why)),
            Kind::Worker => drop(state.workers.retire(id, why)),
        }
        state.queue.wake_all();
    }
}

impl<M: Make> Tool<M> {
    /// Creates the state of a program. `tried` is what [`KnownDoubts::tries`](crate::warm::KnownDoubts::tries) returns.
    pub(crate) fn new(path: &Path, allocators: Option<&Allocators>, tried: Option<bool>) -> Self {
        let allocation = allocators.map_or(Ok(None), |allocators| allocators.of(path));
        let no_allocator = allocation.as_ref().err().copied();
        let allocator = allocation.ok().flatten().map(|preload| preload.library.clone());
        // The name of an interpreter's script has NULs.
        let shown: Vec<u8> =
            path.as_os_str().as_bytes().iter().map(|&byte| if byte == 0 { b' ' } else { byte }).collect();
        let program = OsString::from_vec(shown).into();
        let statistics = ToolStatistics { program, allocator, no_allocator, ..ToolStatistics::default() };
        let mut state = State::new(statistics);
        state.health.doubted = tried.map_or_else(Doubted::default, Doubted::known);
        Tool { path: path.to_owned(), state: Mutex::new(state), begun: Once::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the tool has become one that is doubtful in most runs (`true`), or is so no more, since the last call.
    pub(crate) fn news(&self) -> Option<bool> {
        self.lock().health.news.take()
    }

    fn lock(&self) -> MutexGuard<'_, States<M>> {
        self.state.lock().expect("no panic while locked")
    }

    fn permit(self: &Arc<Self>, kind: Kind, id: Id) -> Permit {
        Permit::new(Arc::clone(self) as Arc<dyn Owner>, kind, id)
    }

    /// Before the tool's first start: takes its zygote from the prefork, and counts it in `budget`. Returns whether that
    /// happened now.
    pub(crate) fn begin(&self, maker: &M, budget: &Budget) -> bool {
        let mut took = false;
        self.begun.call_once(|| took = self.take_ahead(maker, budget));
        took
    }

    fn take_ahead(&self, maker: &M, budget: &Budget) -> bool {
        let Some(Made { zygote, observed, is_new, guess, .. }) = maker.made_ahead(&self.path) else {
            return false;
        };
        let base = Base::new(budget.take(zygote.mapped()));
        let mut state = self.lock();
        // Zygotes of the prefork have libc's allocator.
        if state.statistics.allocator.is_some() {
            return false;
        }
        state.take_note(&observed, is_new);
        let spec = guess.spec(&self.path);
        let key = state
            .learn(&zygote, |asked| key::of_zygote(&spec, Layout::default(), asked, zygote.program_exe()));
        state.pays_from_now_on(&key);
        let id = state.zygotes.claim(Arc::clone(&key));
        state.zygotes.park(id, Unit::zygote(zygote, key, observed, base));
        true
    }

    /// Decides how to start. Waits briefly while all processes are in use.
    pub(crate) fn plan(
        self: &Arc<Self>,
        spec: &Spec<'_>,
        layout: Layout,
        policy: &Policy,
    ) -> Result<Plan<M>, Reason> {
        let mut waiting = Waiting::default();
        let exe = exe::of_file(&spec.program);
        let mut state = self.lock();
        let plan = loop {
            let (here, now) = (affinity::current(), Instant::now());
            let start = Start {
                spec,
                layout,
                policy,
                exe: &exe,
                here,
                now,
                looks: false,
                busy: are_busy,
                learning: are_learning,
            };
            let until = match self.decide(&mut state, start, &mut waiting) {
                Ok(Err(until)) => until,
                Ok(Ok(plan)) => break Ok(plan),
                Err(reason) => break Err(reason),
            };
            drop(state);
            std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
            state = self.lock();
        };
        if waiting.ticket.is_some() {
            state.queue.leave(waiting.ticket);
            // More than one process may have come back.
            let key = key::of_zygote(spec, layout, &state.asked, &exe);
            state.queue.wake(&key);
        }
        plan
    }

    /// Returns a plan, or the time until which to wait.
    fn decide(
        self: &Arc<Self>,
        state: &mut States<M>,
        start: Start<'_>,
        waiting: &mut Waiting,
    ) -> Result<Result<Plan<M>, Instant>, Reason> {
        let worker = |id| self.permit(Kind::Worker, id);
        let zygote = |id| self.permit(Kind::Zygote, id);
        Ok(Ok(match state.decide(start, waiting)? {
            Step::Reset(id, unit, audited) => Plan::Reset(Held::new(unit, worker(id)), audited),
            Step::Clone(stem, id, audited, audits) => Plan::Clone(stem, worker(id), audited, audits),
            Step::Use(id, unit, grown) => Plan::Use(Held::new(unit, zygote(id)), grown.map(worker)),
            Step::Make(id, grown) => Plan::Make(zygote(id), grown.map(worker)),
            Step::Wait(until, key) => {
                state.queue.join(&key, &mut waiting.ticket);
                return Ok(Err(until));
            }
        }))
    }

    /// Returns the number of stems.
    #[cfg(test)]
    pub(super) fn stems(&self) -> usize {
        self.lock().stems.len()
    }

    /// Returns the numbers of places and of idle processes, for zygotes and for persistent processes.
    #[cfg(test)]
    pub(super) fn census(&self) -> [[usize; 2]; 2] {
        let state = self.lock();
        [
            [state.zygotes.live(), state.zygotes.idle().count()],
            [state.workers.live(), state.workers.idle().count()],
        ]
    }

    #[cfg(test)]
    pub(super) fn try_plan(
        self: &Arc<Self>,
        start: Start<'_>,
        waiting: &mut Waiting,
    ) -> Result<Option<Plan<M>>, Reason> {
        let mut state = self.lock();
        let plan = self.decide(&mut state, start, waiting);
        if !matches!(plan, Ok(Err(_))) {
            state.queue.leave(waiting.ticket);
        }
        plan.map(Result::ok)
    }

    /// Claims a place for a zygote that replaces one just ended.
    pub(crate) fn claim(
        self: &Arc<Self>,
        spec: &Spec<'_>,
        layout: Layout,
        policy: &Policy,
    ) -> Result<Permit, Reason> {
        self.lock().claim_zygote(spec, layout, policy).map(|id| self.permit(Kind::Zygote, id))
    }

    /// Has a zygote made in a claimed place, if `admit` finds room for its memory.
    pub(crate) fn make(
        &self,
        spec: &Spec<'_>,
        layout: Layout,
        maker: &M,
        permit: Permit,
        policy: &Policy,
        admit: impl FnOnce(&M::Zygote) -> Result<Arc<Base>, Reason>,
    ) -> Result<Held<M::Zygote>, Reason> {
        let allocator = self.lock().statistics.allocator.clone();
        self.observation_is_due(spec, maker, allocator.as_deref(), policy)?;
        let findings = self.learn(maker, || maker.observe(spec, allocator.as_deref()))?;
        let noted = {
            let mut state = self.lock();
            state.take_note(&findings.observed, findings.is_new);
            state.asked.refuses(spec)
        };
        if let Some(reason) = findings.observed.refusal.as_ref().map(|refusal| refusal.reason).or(noted) {
            return Err(reason);
        }
        let mut zygote = maker.zygote(spec, allocator.as_deref(), &findings)?;
        let base = admit(&zygote)?;
        let spent = zygote.spent();
        let mut state = self.lock();
        state.account.made(spent);
        let key = state.learn(&zygote, |asked| key::of_zygote(spec, layout, asked, zygote.program_exe()));
        state.zygotes.made(permit.id(), &key, 0);
        Ok(Held::new(Unit::zygote(zygote, key, findings.observed, base), permit))
    }

    /// Returns an error while the program is unknown and its starts have not paid for an observation.
    fn observation_is_due(
        &self,
        spec: &Spec<'_>,
        maker: &M,
        allocator: Option<&Path>,
        policy: &Policy,
    ) -> Result<(), Reason> {
        if policy.observe_after.is_zero() || maker.is_known(spec, allocator) {
            return Ok(());
        }
        let mut state = self.lock();
        let load = || maker.tally(&self.path, allocator);
        // In a run of many tests it will start often under other keys as well.
        let is_frequent = state.is_eager || (state.is_observed && policy.choice == Choice::Eager);
        if !is_frequent && !state.unobserved.get_or_insert_with(load).pays(policy.observe_after) {
            return Err(Reason::Unobserved);
        }
        state.unobserved = Some(Tally::default());
        drop(state);
        maker.count(&self.path, allocator, None);
        Ok(())
    }

    /// Records the CPU time of a start that was cold because the program is not observed yet.
    pub(crate) fn ran_unobserved(&self, maker: &M, spent: Duration) {
        let mut state = self.lock();
        if let Some(tally) = &mut state.unobserved {
            tally.add(spent);
            let allocator = state.statistics.allocator.clone();
            drop(state);
            maker.count(&self.path, allocator.as_deref(), Some(spent));
        }
    }

    /// Calls `observe`, and accounts for its CPU time.
    fn learn<R>(&self, maker: &M, observe: impl FnOnce() -> R) -> R {
        let before = maker.time_of_observations();
        let result = observe();
        let spent = maker.time_of_observations().saturating_sub(before);
        if spent > Duration::ZERO {
            self.lock().account.learned(spent);
        }
        result
    }

    /// Has the constructors observed with as many arguments as `spec` has, if there were enough starts with unknown numbers.
    pub(crate) fn extend(
        &self,
        spec: &Spec<'_>,
        maker: &M,
        observed: &Observed,
        policy: &Policy,
    ) -> Result<(), Reason> {
        let (numbers, allocator) = {
            let mut state = self.lock();
            let numbers = state.numbers_due(spec, policy).ok_or(Reason::FewStarts)?;
            (numbers, state.statistics.allocator.clone())
        };
        let extended = self.learn(maker, || maker.extend(observed, &numbers, spec, allocator.as_deref()));
        let Err(Refusal { reason, detail }) = extended else {
            self.lock().statistics.observed += 1;
            return Ok(());
        };
        if reason != Reason::FewStarts {
            self.lock().statistics.constructors = Some((reason, detail));
            self.failed(reason);
        }
        Err(reason)
    }

    /// Records that no zygote could be made.
    pub(crate) fn failed(&self, reason: Reason) {
        let mut state = self.lock();
        state.failed(reason);
        state.queue.wake_all();
    }

    /// Records that a zygote died over a request.
    pub(crate) fn lost_zygote(&self) {
        self.lock().stumble(Reason::ZygoteDied);
    }

    /// Records the CPU time of a start that was cold for the comparison with warm ones.
    pub(crate) fn ran_cold(&self, spent: Duration) {
        self.lock().account.ran_cold(spent);
    }

    /// Records the CPU time that a warm start took, if it was a typical one, and the part of it that a cold one would not.
    pub(crate) fn ran_warm(&self, spent: Option<Duration>, extra: Duration) {
        let mut state = self.lock();
        state.account.ran_warm(spent);
        state.account.extra(extra);
    }

    /// Makes the tool warm from the next start on, under each key.
    pub(crate) fn make_eager(&self) {
        self.lock().is_eager = true;
    }

    /// Quarantines the tool: a warm start was seen to differ from a cold one.
    pub(crate) fn quarantine(&self) {
        let mut state = self.lock();
        state.give_up(Reason::Quarantined);
        state.queue.wake_all();
    }

    /// Records that no persistent process can be made of this tool.
    pub(crate) fn cannot_reset(&self) {
        self.lock().health.stopped = Some(Stopped::Impossible);
    }

    /// Records that the persistent process of `permit` exists, and has this key.
    pub(crate) fn grown(&self, permit: &Permit, key: &Arc<[u8]>, pid: i32) {
        self.lock().workers.made(permit.id(), key, pid);
    }

    /// Records that the persistent process of this place has another number now.
    pub(super) fn renumbered(&self, id: Id, pid: i32) {
        self.lock().workers.renumbered(id, pid);
    }

    /// Returns whether a run of this request gets a process number of its own.
    pub(super) fn renumbers(&self, spec: &Spec<'_>) -> bool {
        self.lock().health.foresight.expects(&spec.argv)
    }

    /// Records whether a run with these arguments has looked at its process number.
    pub(super) fn has_looked(&self, arguments: &Arguments, looked: bool) {
        self.lock().health.foresight.ran(arguments, looked);
    }

    /// Returns whether a zygote in whose memory layout nothing can be learned is to be replaced.
    pub(super) fn may_lose_layout(&self) -> bool {
        let mut state = self.lock();
        state.layouts_lost += 1;
        state.layouts_lost <= LAYOUTS_LOST_MAX
    }

    /// Counts a clone that was made.
    pub(super) fn cloned(&self) {
        self.lock().statistics.clones += 1;
    }

    /// Returns whether a clone of this process, which has just been reset, should become a stem.
    pub(super) fn wants_stem(&self, unit: &Unit<M::Worker>, policy: &Policy) -> bool {
        let is_wanted = {
            let mut state = self.lock();
            if !unit.is_numbered {
                state.stems.ran(&unit.key, unit.knows);
            }
            let may_be = state.health.stopped.is_none() && state.unfit.is_none();
            may_be
                && !unit.is_numbered
                && match policy.clones {
                    Clones::None => false,
                    Clones::OfLearned => state.stems.want(&unit.key, unit.knows),
                    Clones::Each => true,
                }
        };
        is_wanted && unit.process.is_current()
    }

    /// Adds a stem.
    pub(super) fn put_stem(&self, stem: Stem<M::Worker>, policy: &Policy) {
        let mut state = self.lock();
        if state.health.stopped.is_none() && state.unfit.is_none() {
            state.stems.put(stem, policy.zygotes_per_tool);
            state.queue.wake_all();
        }
    }

    /// Removes a stem that can serve no more.
    pub(super) fn lose_stem(&self, stem: &Arc<Stem<M::Worker>>) {
        self.lock().stems.remove(stem);
    }

    /// Returns whether its forks can have the gate, as far as is known.
    pub(crate) fn has_gate(&self) -> bool {
        self.lock().health.stopped != Some(Stopped::Impossible)
    }

    /// Records a run after which its process retired, and the doubts about the run.
    pub(crate) fn retired(&self, why: u32, doubts: Doubts, on_doubt: OnDoubt) {
        self.note(|health| {
            health.retired(why, doubts);
            health.doubted(doubts, on_doubt);
        });
        self.note_cause(doubts);
    }

    /// Records a run in a process of its own.
    pub(crate) fn ran_once(&self, doubts: Doubts, on_doubt: OnDoubt) {
        self.note(|health| health.doubted(doubts, on_doubt));
        self.note_cause(doubts);
    }

    fn note_cause(&self, doubts: Doubts) {
        let mut state = self.lock();
        if doubts.of_children() {
            state.account.starts_others();
        }
        if let Some(call) = doubts.call() {
            *state.statistics.unknown_calls.entry(call).or_default() += 1;
        }
    }

    /// Updates the record with `what`. A tool whose doubtful run cannot be repeated becomes cold.
    fn note(&self, what: impl FnOnce(&mut Health)) {
        let mut state = self.lock();
        what(&mut state.health);
        if state.health.is_doubtful && state.unfit.is_none() {
            state.give_up(Reason::Doubtful);
            state.queue.wake_all();
        }
    }

    /// Records a run that ended with a reset, whether it began at a deferred snapshot, and the number of its children. Returns
    /// whether its process can be used again.
    pub(crate) fn was_reset(&self, audited: bool, differs: u32, is_deferred: bool, children: u32) -> bool {
        let mut state = self.lock();
        if children > 0 {
            state.account.starts_others();
        }
        state.health.was_reset(audited, differs);
        state.statistics.audits += u64::from(audited);
        state.statistics.at_point += u64::from(is_deferred);
        differs == 0
    }

    pub(crate) fn give_back_worker(&self, mut held: Held<M::Worker>, now: u64) {
        let mut state = self.lock();
        if state.health.stopped.is_some() || state.unfit.is_some() {
            drop(state);
            return held.retire(Why::Unfit);
        }
        held.unit.touch(now);
        let (id, unit) = held.into_parts();
        let key = Arc::clone(&unit.key);
        state.workers.park(id, unit);
        state.queue.wake(&key);
    }

    pub(crate) fn give_back_zygote(&self, mut held: Held<M::Zygote>, now: u64) {
        let mut state = self.lock();
        if state.unfit.is_some() {
            drop(state);
            return held.retire(Why::Unfit);
        }
        held.unit.touch(now);
        let (id, unit) = held.into_parts();
        let key = Arc::clone(&unit.key);
        state.zygotes.park(id, unit);
        state.queue.wake(&key);
    }

    /// Returns the last use of the idle process that was unused for longest.
    pub(crate) fn oldest_idle(&self) -> Option<u64> {
        self.lock().oldest_idle()
    }

    /// Ends the idle process that was unused for longest, for its memory. Returns whether there was one.
    pub(crate) fn drop_oldest(&self) -> bool {
        self.lock().drop_oldest()
    }

    pub(crate) fn statistics(&self) -> ToolStatistics {
        let state = self.lock();
        let dropped = |why| state.workers.retired(why) + state.zygotes.retired(why);
        ToolStatistics {
            retired: state.health.retired.clone(),
            only_forked: state.health.stopped.clone(),
            ended_for_memory: dropped(Why::Memory),
            ended_for_room: dropped(Why::Room),
            cpu: state.account.times(),
            ..state.statistics.clone()
        }
    }

    /// Records a start and the time that it took.
    pub(crate) fn record(&self, via: Via, took: Duration) {
        let mut state = self.lock();
        state.statistics.record(via, took);
        if via.is_warm() {
            state.succeeded();
        }
    }
}
