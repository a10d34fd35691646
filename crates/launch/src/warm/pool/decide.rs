//! Decides the next step of a tool's start. The state has no locks, processes or clock; the caller has them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use super::account::{Account, Rest, Verdict};
use super::health::Health;
use super::places::{Id, Places, Why};
use super::statistics::ToolStatistics;
use super::stem::{Stem, Stems, bit_of};
use super::wait::{For, Patience, Queue, Waiting};
use super::{Unit, Worker, Zygote};
use crate::warm::key::{self, Asked};
use crate::warm::layout::{self, Layout};
use crate::warm::observe::{Observed, Tally, numbers};
use crate::warm::{Choice, Clones, Policy, exe};
use crate::{Reason, Spec};

/// Number of kinds of standard streams of a tool that looks at them: mostly pipes, files and the null device.
const STREAM_KINDS: usize = 3;
/// Failures in a row because files changed during a start. After them the tool stays cold.
const CHANGING_MAX: u32 = 16;
/// A Python script is observed so often, and then only if each observation has served so many forks: it reads many files and
/// directories, and where one of them changes all the time, observing costs more than it saves.
const OBSERVED_FREELY: u64 = 12;
const FORKS_OF_OBSERVED: u64 = 4;
/// Most keys that are counted. A tool whose environment never repeats stays cold.
const KEYS_MAX: usize = 1024;
/// New numbers of arguments are observed after this many times the cold starts that a zygote needs, since the observation
/// runs take as long as some cold starts.
const NUMBER_PRICE: u32 = 3;
/// Of a tool that was started with several numbers, the smaller ones up to this are likely to come, and cost less if they are observed
/// with the others: each observation begins with a run for all of its numbers.
const NUMBERS_USUAL: usize = 12;
/// Forks before the first persistent process after one was ended for its memory. The next time takes twice as many.
const REGROW_FIRST: u32 = 8;
/// Most forks in between, and the largest factor on the cold starts between zygotes.
const REGROW_MOST: u32 = 1024;
const PAY_MOST: u32 = 64;

/// Runs of a process that would have begun later in a clone, before one takes its place: a clone costs about as much as two save.
const MISSED_MAX: u32 = 2;
/// Persistent processes at a time from which on one learns first, and the others are its clones.
const MANY_WORKERS: usize = 8;
/// Runs in each process with [`Clones::Each`].
const RUNS_EACH: u32 = 2;
/// The first clones of a tool whose first runs are audited: one begins at `main`, the other at the deferred snapshot.
const CLONES_AUDITED: u64 = 4;
const AUDITS_OF_CLONE: u32 = 2;

/// The state of one tool.
#[derive(Debug)]
pub(super) struct State<Z, W> {
    /// The reason for which it stays cold, if there is one.
    pub unfit: Option<Reason>,
    pub asked: Asked,
    was_started: bool,
    /// Whether it is warm from the first start on under each key.
    pub is_eager: bool,
    /// Whether its constructors have been observed, under any key.
    pub is_observed: bool,
    /// Rations zygotes after some have failed, and the reason of the last failure.
    rest: Rest,
    stumbled: Reason,
    /// CPU time of its starts, and whether they are measured.
    pub account: Account,
    /// Cold starts while it was not observed; `None` before the first.
    pub unobserved: Option<Tally>,
    /// Starts by key, while they are too few for a zygote.
    seen: HashMap<Vec<u8>, u32>,
    /// By key, the numbers of arguments of starts that were cold because these numbers were not observed.
    numbers: HashMap<Vec<u8>, BTreeSet<usize>>,
    /// Factor on the starts that must pay for a zygote, since earlier zygotes were ended for their memory.
    price: u32,
    /// Rations persistent processes after one was ended for its memory.
    regrow: Regrow,
    pub zygotes: Places<Z>,
    pub workers: Places<W>,
    pub stems: Stems<W>,
    /// Number of memory layouts that were found to be such that nothing can be learned in them.
    pub layouts_lost: u32,
    /// Clones that were decided on; a stem may turn out to serve no more.
    clones_begun: u64,
    pub queue: Queue,
    pub health: Health,
    pub statistics: ToolStatistics,
}

/// If persistent processes of a tool evict others' processes, the tool is forked for a while.
#[derive(Debug, Default)]
struct Regrow {
    /// Forks before the next persistent process.
    left: u32,
    /// Forks before the last persistent process.
    last: u32,
}

/// The next step of a start. The caller owns the processes and places named here.
#[derive(Debug)]
pub(super) enum Step<Z, W> {
    /// This persistent process runs it. The flag says whether the run is audited.
    Reset(Id, Unit<W>, bool),
    /// This stem makes a persistent process for this place, which runs it. The flag says whether the run is audited, and the
    /// number in how many of its runs the process is audited, whatever the sample.
    Clone(Arc<Stem<W>>, Id, bool, u32),
    /// This zygote forks. With a second place, it makes a persistent process for that place.
    Use(Id, Unit<Z>, Option<Id>),
    /// Make a zygote for this place, then continue as with `Use`.
    Make(Id, Option<Id>),
    /// Wait until a process with this key comes back, or until this moment.
    Wait(Instant, Vec<u8>),
}

/// The answer to whether a persistent process may be made.
enum Grow {
    No,
    Yes(Id),
    Wait(Instant),
}

/// One start, and the time of its decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'a> {
    pub spec: &'a Spec<'a>,
    pub layout: Layout,
    pub policy: &'a Policy,
    /// The path that the program would have in `/proc/self/exe`.
    pub exe: &'a [u8],
    /// The requester's processor.
    pub here: usize,
    pub now: Instant,
    /// Whether its run is expected to look at its process number. Set by [`State::decide`].
    pub looks: bool,
    /// Returns whether these processes, or others if the list is empty, keep all processors busy. Called seldom.
    pub busy: fn(&[i32]) -> bool,
    /// Returns whether one of these processes, of which none has learned, is about to.
    pub learning: fn(&[i32]) -> bool,
}

impl<Z: Zygote<Worker = W>, W: Worker> State<Z, W> {
    pub(super) fn new(statistics: ToolStatistics) -> Self {
        State {
            unfit: None,
            asked: Asked::default(),
            was_started: false,
            is_eager: false,
            is_observed: false,
            rest: Rest::default(),
            stumbled: Reason::ZygoteDied,
            account: Account::default(),
            unobserved: None,
            seen: HashMap::new(),
            numbers: HashMap::new(),
            price: 1,
            regrow: Regrow::default(),
            zygotes: Places::default(),
            workers: Places::default(),
            stems: Stems::default(),
            layouts_lost: 0,
            clones_begun: 0,
            queue: Queue::default(),
            health: Health::default(),
            statistics,
        }
    }

    /// Decides the next step. After a wait, everything may have changed: a zygote made by another start shows which inputs
    /// belong to the key, and a check may have found the tool unfit.
    pub(super) fn decide(&mut self, start: Start<'_>, waiting: &mut Waiting) -> Result<Step<Z, W>, Reason> {
        let Start { spec, policy, .. } = start;
        if let Some(reason) = self.unfit.or_else(|| self.asked.refuses(spec)) {
            return Err(reason);
        }
        if self.asked.is_python() && policy.refuses_seed(spec) {
            return Err(Reason::HashSeed);
        }
        if waiting.counted.is_none() && waiting.ticket.is_none() && self.health.doubted.rests() {
            return Err(Reason::Doubtful);
        }
        if policy.compares(spec) && !self.is_eager && waiting.counted.is_none() && waiting.ticket.is_none() {
            self.compare()?;
        }
        let start = Start { looks: self.health.foresight.expects(&spec.argv), ..start };
        let key = key::of_zygote(spec, start.layout, &self.asked, start.exe);
        let resets = policy.may_reset(spec) && self.health.resets_next();
        let step = self.in_turn(&key, resets, start, waiting);
        if let Some(step) = step.or_else(|| self.at_hand(&key, resets, start, waiting)) {
            return Ok(step);
        }
        if waiting.counted.as_ref() != Some(&key) {
            if !self.pays(&key, policy) {
                return Err(Reason::FewStarts);
            }
            waiting.counted = Some(key.clone());
        }
        self.new_zygote(&key, resets, start, waiting)
    }

    /// Returns the reason for a cold start where warm ones do not pay, or one is due that shows whether they do.
    fn compare(&mut self) -> Result<(), Reason> {
        if self.account.verdict() == Verdict::Loses {
            self.give_up(Reason::DoesNotPay);
            return Err(Reason::DoesNotPay);
        }
        if self.account.compares_next() { Err(Reason::Compared) } else { Ok(()) }
    }

    /// In a crowd, waits while other starts wait longer for the same.
    fn in_turn(
        &self,
        key: &[u8],
        resets: bool,
        start: Start<'_>,
        waiting: &mut Waiting,
    ) -> Option<Step<Z, W>> {
        if !resets || start.policy.crowding() == 1 || self.queue.is_next(key, waiting.ticket) {
            return None;
        }
        self.wait_for_worker(key, start, waiting).map(|until| Step::Wait(until, key.into()))
    }

    /// Returns the time until which to wait for a persistent process that is in use.
    fn wait_for_worker(&self, key: &[u8], start: Start<'_>, waiting: &mut Waiting) -> Option<Instant> {
        let begin = || Patience::new(For::Worker, start.policy.crowding(), start.now);
        waiting
            .for_worker
            .get_or_insert_with(begin)
            .left(start.now, || (start.busy)(&self.workers.pids_in_use(key)))
    }

    /// Takes an idle process.
    fn at_hand(
        &mut self,
        key: &[u8],
        resets: bool,
        start: Start<'_>,
        waiting: &mut Waiting,
    ) -> Option<Step<Z, W>> {
        let stem = if resets { self.stems.of(key).cloned() } else { None };
        let worker = if resets { self.idle_worker(key, stem.as_ref(), start) } else { None };
        if worker.is_some() {
            return worker;
        }
        let of_key = self.zygotes.idle().filter(|(_, unit)| *unit.key == *key);
        let zygote = of_key.max_by_key(|(_, unit)| unit.last_use()).map(|(id, _)| id);
        if stem.is_none() && zygote.is_none() {
            return None;
        }
        let worker = match if resets { self.grow(key, start, waiting) } else { Grow::No } {
            Grow::Wait(until) => return Some(Step::Wait(until, key.into())),
            Grow::Yes(worker) => Some(worker),
            Grow::No => None,
        };
        match (stem, worker) {
            (Some(stem), Some(worker)) => Some(self.clone_from(stem, worker, start.policy)),
            (_, worker) => Some(Step::Use(zygote?, self.zygotes.take(zygote?)?, worker)),
        }
    }

    /// Takes an idle persistent process. If the stem knows more than that for this start, a clone takes its place.
    fn idle_worker(
        &mut self,
        key: &[u8],
        stem: Option<&Arc<Stem<W>>>,
        start: Start<'_>,
    ) -> Option<Step<Z, W>> {
        // Without clones each process learns for itself, and has to be asked for that.
        let bit = if start.policy.clones == Clones::None { 0 } else { bit_of(start.spec.argv.len()) };
        let id = self.nearest_worker(key, bit, start)?;
        let mut unit = self.workers.take(id)?;
        let begins_late = !start.looks && stem.is_some_and(|stem| stem.knows_more(&unit, bit));
        unit.missed += u32::from(begins_late);
        let is_over = start.policy.clones == Clones::Each && unit.runs >= RUNS_EACH;
        let is_outdone = unit.missed > if unit.knows.learned == 0 { 0 } else { MISSED_MAX };
        if let Some(stem) = stem.filter(|_| is_outdone || is_over) {
            self.workers.retire(id, Why::Outdone);
            let id = self.workers.claim(key.into());
            return Some(self.clone_from(Arc::clone(stem), id, start.policy));
        }
        let audit = self.health.audits_next(start.policy.audit_one_in) || unit.audits_due > 0;
        Some(Step::Reset(id, unit, audit))
    }

    fn clone_from(&mut self, stem: Arc<Stem<W>>, place: Id, policy: &Policy) -> Step<Z, W> {
        self.clones_begun += 1;
        let audits = if self.clones_begun <= CLONES_AUDITED { AUDITS_OF_CLONE } else { 0 };
        let is_audited = self.health.audits_next(policy.audit_one_in) || audits > 0;
        Step::Clone(stem, place, is_audited, audits)
    }

    /// Claims a place for a zygote. One zygote makes all persistent processes, so a start waits for it while others use it.
    fn new_zygote(
        &mut self,
        key: &[u8],
        resets: bool,
        start: Start<'_>,
        waiting: &mut Waiting,
    ) -> Result<Step<Z, W>, Reason> {
        if let Some(until) = if resets { self.wait_for_learned(key, start, waiting) } else { None } {
            return Ok(Step::Wait(until, key.into()));
        }
        let is_made = self.zygotes.is_being_made(key);
        let is_in_use = resets && (is_made || self.zygotes.is_in_use(key));
        let what = match is_in_use {
            true if is_made && self.workers.live_of(key) <= 1 => For::First(start.policy.first_wait),
            true => For::Worker,
            false => For::Zygote,
        };
        let begin = || Patience::new(what, start.policy.crowding(), start.now);
        let left = waiting.for_zygote.get_or_insert_with(begin).left(start.now, || (start.busy)(&[]));
        if !is_in_use || left.is_none() {
            let room = self.room(start.policy.zygotes_per_tool);
            if !self.rest.is_over() {
                return Err(self.stumbled);
            }
            if self.zygotes.live() < room || self.drop_zygote(Why::Room) {
                let id = self.zygotes.claim(key.into());
                let worker = if resets { self.claim_worker(key, start.policy) } else { None };
                return Ok(Step::Make(id, worker));
            }
        }
        left.map(|until| Step::Wait(until, key.into())).ok_or(Reason::Busy)
    }

    /// Returns the idle persistent process that ran last: of those that know of `bit` if there are any, and of these one
    /// requested from processor `here`. The memory of a run is in that processor's caches. The kernel wakes the next stage of
    /// a pipeline where the last one ran, so concurrent tests do not queue for one processor while another is idle.
    fn nearest_worker(&self, key: &[u8], bit: u64, start: Start<'_>) -> Option<Id> {
        // A process that gets another number begins at `main` from then on: it serves the requests that need one, and no others.
        let fits = |unit: &Unit<W>| {
            let is_of_kind =
                if start.looks { unit.is_numbered || unit.knows.learned == 0 } else { !unit.is_numbered };
            is_of_kind && *unit.key == *key
        };
        let fitting = self.workers.idle().filter(|(_, unit)| fits(unit));
        let bit = if start.looks { 0 } else { bit };
        let rank = |unit: &Unit<W>| {
            let is_best = unit.knows.learned & bit != 0 || unit.is_numbered;
            (is_best, unit.asked_on == start.here, unit.last_use())
        };
        fitting.max_by_key(|(_, unit)| rank(unit)).map(|(id, _)| id)
    }

    /// Returns the limit for all keys, with `each` for one: tests start one tool with several kinds of standard error.
    fn room(&self, each: usize) -> usize {
        each * if self.asked.has_streams() { STREAM_KINDS } else { 1 }
    }

    /// Decides whether the zygote makes another persistent process. If there are enough for all processors, and more starts
    /// than processors, the start waits for one that is in use.
    fn grow(&mut self, key: &[u8], start: Start<'_>, waiting: &mut Waiting) -> Grow {
        if let Some(until) = self.wait_for_learned(key, start, waiting) {
            return Grow::Wait(until);
        }
        let crowding = start.policy.crowding();
        let are_enough = self.workers.live_of(key) >= start.policy.workers_at_once;
        if are_enough && crowding > 1 && self.workers.is_in_use(key) {
            if let Some(until) = self.wait_for_worker(key, start, waiting) {
                return Grow::Wait(until);
            }
        }
        self.claim_worker(key, start.policy).map_or(Grow::No, Grow::Yes)
    }

    /// Returns the time until which to wait for a process that learns, instead of having another one learn the same.
    fn wait_for_learned(&self, key: &[u8], start: Start<'_>, waiting: &mut Waiting) -> Option<Instant> {
        let Policy { clones, workers_at_once, .. } = *start.policy;
        let is_worth_it = clones == Clones::OfLearned && workers_at_once >= MANY_WORKERS;
        if !is_worth_it || start.looks || !self.workers.is_in_use(key) || !self.stems.are_hoped_for(key) {
            return None;
        }
        let begin = || Patience::new(For::Learned, start.policy.crowding(), start.now);
        let learning = || (start.learning)(&self.workers.pids_in_use(key));
        waiting.for_learned.get_or_insert_with(begin).left(start.now, learning)
    }

    /// Claims a place for a persistent process, if necessary that of an idle one of another key.
    fn claim_worker(&mut self, key: &[u8], policy: &Policy) -> Option<Id> {
        if self.regrow.left > 0 {
            self.regrow.left -= 1;
            self.statistics.not_grown_for_memory += 1;
            return None;
        }
        if self.workers.live() >= self.room(policy.workers_per_tool) && !self.drop_worker(Why::Room) {
            self.statistics.not_grown_for_room += 1;
            return None;
        }
        Some(self.workers.claim(key.into()))
    }

    /// Claims a place for a zygote that replaces one just ended.
    pub(super) fn claim_zygote(
        &mut self,
        spec: &Spec<'_>,
        layout: Layout,
        policy: &Policy,
    ) -> Result<Id, Reason> {
        if self.zygotes.live() >= self.room(policy.zygotes_per_tool) {
            return Err(Reason::Busy);
        }
        let exe = exe::of_file(&spec.program);
        Ok(self.zygotes.claim(key::of_zygote(spec, layout, &self.asked, &exe).into()))
    }

    /// Records a new zygote. Returns its key, which depends on the inputs that the tool asks for.
    pub(super) fn learn(&mut self, zygote: &Z, key: impl FnOnce(&Asked) -> Vec<u8>) -> Arc<[u8]> {
        let mut learned = false;
        for name in zygote.names() {
            learned |= self.asked.add(name);
        }
        if learned {
            self.forget_keys();
        }
        self.statistics.zygotes += 1;
        self.statistics.zygote_time += zygote.start_time();
        key(&self.asked).into()
    }

    /// Records the inputs that constructors have looked at, which are in the key from now on.
    pub(super) fn take_note(&mut self, observed: &Observed, is_new: bool) {
        self.is_observed |= observed.refusal.is_none();
        self.statistics.observed += u64::from(is_new);
        let mut learned = self.asked.add_looks(&observed.looks);
        for name in &observed.names {
            learned |= self.asked.add(name);
        }
        if learned {
            self.forget_keys();
        }
        self.statistics.constructors = observed.refusal.as_ref().map(|r| (r.reason, r.detail.clone()));
        if !observed.line.is_empty() {
            self.statistics.halts_at = Some(observed.line.clone());
        }
        let ToolStatistics { observed: times, forks, .. } = self.statistics;
        if is_new && observed.place != 0 && times > OBSERVED_FREELY && forks < FORKS_OF_OBSERVED * times {
            self.give_up(Reason::FilesChanging);
        }
    }

    /// Records that no zygote could be made. A reason that lies in the tool keeps it cold.
    pub(super) fn failed(&mut self, reason: Reason) {
        let of_request = matches!(
            reason,
            Reason::Busy | Reason::LooksAtStream | Reason::Limits | Reason::Unobserved | Reason::HashSeed
        );
        let is_passing = match reason {
            Reason::FilesChanging => self.stumble(reason) <= CHANGING_MAX,
            // Under another value of the variable, or in another environment, there may be one.
            Reason::LibraryPath => self.stumble(reason) > 0,
            _ => false,
        };
        if !of_request && !is_passing {
            self.give_up(reason);
        }
    }

    /// Records a failure that the next zygote may not have. Returns the number of such failures in a row.
    pub(super) fn stumble(&mut self, reason: Reason) -> u32 {
        self.stumbled = reason;
        self.rest.failed()
    }

    /// Records a warm start.
    pub(super) fn succeeded(&mut self) {
        self.rest.succeeded();
    }

    /// Keeps the tool cold, and ends its idle processes.
    pub(super) fn give_up(&mut self, reason: Reason) {
        self.unfit = Some(reason);
        self.retire_idle();
    }

    /// Ends idle processes after the keys have changed: the keys of older zygotes lack the new names, whose values may
    /// differ.
    fn forget_keys(&mut self) {
        self.retire_idle();
        self.queue.wake_all();
    }

    fn retire_idle(&mut self) {
        self.stems.clear();
        self.zygotes.retire_idle(Why::Unfit);
        self.workers.retire_idle(Why::Unfit);
    }

    /// Counts this start. Returns whether there were enough under this key.
    fn pays(&mut self, key: &[u8], policy: &Policy) -> bool {
        let price = self.price.max(self.debt(policy));
        self.pays_after(policy.cold_starts() * price, layout::without(key), policy)
    }

    /// Records a zygote that was made without a start: one of another layout has to wait for none, either.
    pub(super) fn pays_from_now_on(&mut self, key: &[u8]) {
        self.seen.insert(layout::without(key).to_vec(), u32::MAX / 2);
    }

    /// Returns the factor on cold starts while zygotes and observations are not paid for. Where CPU times are not compared, runs
    /// are not measured, and nothing is known of that.
    fn debt(&self, policy: &Policy) -> u32 {
        if policy.compare { self.account.price() } else { 1 }
    }

    fn pays_after(&mut self, starts_before: u32, key: &[u8], policy: &Policy) -> bool {
        if policy.cold_starts() == 0 || self.is_eager {
            return true;
        }
        if self.seen.len() >= KEYS_MAX && !self.seen.contains_key(key) {
            self.seen.retain(|_, starts| *starts > 1);
            if self.seen.len() >= KEYS_MAX {
                return false;
            }
        }
        let is_first = !std::mem::replace(&mut self.was_started, true);
        let starts = self.seen.entry(key.to_vec()).or_default();
        *starts += 1;
        *starts > starts_before || (is_first && policy.choice == Choice::Eager)
    }

    /// Counts this start. If there were enough starts with numbers of arguments that were not observed, returns the numbers
    /// to observe, `spec`'s among them. One observation of several numbers is cheaper than several.
    pub(super) fn numbers_due(&mut self, spec: &Spec<'_>, policy: &Policy) -> Option<Vec<usize>> {
        let key = key::of(spec, &self.asked);
        let unknown = [&key[..], b"#"].concat();
        let price = NUMBER_PRICE * self.debt(policy);
        let is_due = self.pays_after(policy.cold_starts() * price, &unknown, policy);
        if is_due {
            self.seen.remove(&unknown);
        }
        if self.numbers.len() >= KEYS_MAX {
            self.numbers.clear();
        }
        let seen = self.numbers.entry(key).or_default();
        seen.extend(numbers::needed(spec));
        is_due.then(|| with_gaps(std::mem::take(seen)))
    }

    /// Returns the last use of the idle process that was unused for longest.
    pub(super) fn oldest_idle(&self) -> Option<u64> {
        let zygote = self.zygotes.oldest().map(|(_, last_use)| last_use);
        let worker = self.workers.oldest().map(|(_, last_use)| last_use);
        zygote.into_iter().chain(worker).chain(self.stems.oldest()).min()
    }

    /// Ends the idle process that was unused for longest, for its memory, and raises the price of the next one. Returns
    /// whether there was one. A persistent process goes before the stem and the zygote with which it shares most of its memory.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let at = |oldest: Option<(Id, u64)>| oldest.map_or(u64::MAX, |(_, last_use)| last_use);
        let (zygote, worker) = (at(self.zygotes.oldest()), at(self.workers.oldest()));
        if worker <= zygote.min(self.stems.oldest().unwrap_or(u64::MAX)) && self.drop_worker(Why::Memory) {
            self.regrow.last = (self.regrow.last * 2).clamp(REGROW_FIRST, REGROW_MOST);
            self.regrow.left = self.regrow.last;
            return true;
        }
        if self.stems.oldest().is_some_and(|stem| stem <= zygote) {
            return self.stems.drop_oldest();
        }
        let dropped = self.drop_zygote(Why::Memory);
        if dropped {
            self.price = (self.price * 2).min(PAY_MOST);
        }
        dropped
    }

    fn drop_worker(&mut self, why: Why) -> bool {
        self.workers.oldest().is_some_and(|(id, _)| self.workers.retire(id, why).is_some())
    }

    fn drop_zygote(&mut self, why: Why) -> bool {
        let Some(unit) = self.zygotes.oldest().and_then(|(id, _)| self.zygotes.retire(id, why)) else {
            return false;
        };
        // If there is not room for all, each has to pay again.
        self.seen.remove(layout::without(&unit.key));
        true
    }
}

/// Adds the numbers of arguments that are likely to come.
fn with_gaps(mut seen: BTreeSet<usize>) -> Vec<usize> {
    let usual = seen.range(..=NUMBERS_USUAL).next_back().copied();
    seen.extend(usual.into_iter().flat_map(|largest| 2..largest));
    seen.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_numbers_of_arguments_are_observed_with_a_usual_one() {
        assert_eq!(with_gaps([4, 6].into()), [2, 3, 4, 5, 6]);
        assert_eq!(with_gaps([5, 90].into()), [2, 3, 4, 5, 90]);
        assert_eq!(with_gaps([1, 40].into()), [1, 40]);
    }
}
