//! What is known of one program: whether it can be warm, what its key is made of, its templates.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, Once};
use std::time::{Duration, Instant};

use super::ahead::Ahead;
use super::budget::Budget;
use super::eligible;
use super::key::{self, Asked};
use super::observe::{self, Observed};
use super::place;
use super::rewinding::{Rewinding, Stopped};
use super::template::{Means, Template};
use super::worker::Worker;
use super::{Choice, Policy, Retirement, ToolStatistics};
use crate::slots::Slots;
use crate::{Allocators, EnvBlock, Reason, Spec, Via};

/// How long a start waits for a template that others use: about the time of two copies.
const WAIT: Duration = Duration::from_millis(3);
/// How long a start waits for a worker that others use, or for the template to make one: less than it takes to make
/// another template of a large tool.
const WORKER_WAIT: Duration = Duration::from_millis(15);
/// How long a first start waits for a template that was begun before: a cold start would take as long as that still does,
/// unless the tool does not get to `main`.
const AHEAD_WAIT: Duration = Duration::from_millis(500);
/// How many kinds of standard streams a tool has that looks at them: mostly pipes, files and the null device.
const STREAM_KINDS: usize = 3;
/// A tool whose files change so often while it is started stays cold: to try again costs more than a cold start.
const CHANGING_MAX: u32 = 64;
/// Keys that are counted; a tool whose environment never repeats stays cold.
const KEYS_MAX: usize = 1024;

/// One program, shared by all who start it.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    state: Mutex<State>,
    given_back: Condvar,
    /// Done once it has the template that was made ahead, if there is one.
    begun: Once,
}

#[derive(Debug, Default)]
struct State {
    /// Why it stays cold, if it does.
    unfit: Option<Reason>,
    /// Whether its file was read once.
    examined: bool,
    asked: Asked,
    was_started: bool,
    /// Whether it is to be warm from the first start on under each key.
    is_eager: bool,
    /// How often in a row there was no template because its files changed.
    changing: u32,
    /// Starts by key, while they are cold for being few.
    seen: HashMap<Vec<u8>, u32>,
    idle: Vec<Template>,
    /// Templates that exist or are being made.
    live: usize,
    workers: Vec<Worker>,
    /// Workers that exist or are being made, also those that run.
    live_workers: usize,
    /// Starts that wait for a template or a worker.
    waiting: usize,
    rewinding: Rewinding,
    statistics: ToolStatistics,
}

/// What a start is to do.
pub(crate) enum Plan {
    /// This worker is now the caller's; whether its run is to be audited.
    Rewind(Box<Worker>, bool),
    /// This template is now the caller's; whether to have it make a worker, for which a place is claimed.
    Use(Box<Template>, bool),
    /// Make a template: the caller has claimed a place for it. Then as with `Use`.
    Make(bool),
}

impl Program {
    pub(crate) fn new(path: &Path, allocators: Option<&Allocators>) -> Self {
        let allocation = allocators.map_or(Ok(None), |allocators| allocators.of(path));
        let no_allocator = allocation.as_ref().err().copied();
        let allocator = allocation.ok().flatten().map(|preload| preload.library.clone());
        let statistics =
            ToolStatistics { program: path.to_owned(), allocator, no_allocator, ..ToolStatistics::default() };
        let state = State { statistics, ..State::default() };
        Program {
            path: path.to_owned(),
            state: Mutex::new(state),
            given_back: Condvar::new(),
            begun: Once::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while locked")
    }

    /// Before its first start: takes what was made ahead for it, and counts it in `budget`. Whether that was now.
    pub(crate) fn begin(&self, ahead: &Ahead, budget: &Budget) -> bool {
        let mut took = false;
        self.begun.call_once(|| took = self.take_ahead(ahead, budget));
        took
    }

    fn take_ahead(&self, ahead: &Ahead, budget: &Budget) -> bool {
        let Some(mut made) = ahead.take(&self.path, AHEAD_WAIT) else { return false };
        let mut state = self.lock();
        // What is made ahead has libc's.
        if state.statistics.allocator.is_some() {
            return false;
        }
        made.template.share = Some(budget.take(made.template.memory));
        state.take_note(&made.observed, made.is_new);
        let spec = made.guess.spec(&self.path);
        state.learn(&mut made.template, |asked| key::of(&spec, asked));
        state.live += 1;
        state.idle.push(made.template);
        true
    }

    /// Decides how to start; waits shortly where all templates are in use.
    pub(crate) fn plan(&self, spec: &Spec<'_>, policy: &Policy) -> Result<Plan, Reason> {
        let mut state = self.lock();
        let mut counted = None;
        let mut waiting = None;
        // Everything may be another after a wait: a template that somebody else made tells what the tool asks for, and so
        // what a key is; a check may have found the tool unfit.
        loop {
            if let Some(reason) = state.unfit {
                return Err(reason);
            }
            if let Some(reason) = state.asked.refuses(spec) {
                return Err(reason);
            }
            let key = key::of(spec, &state.asked);
            let rewinds = policy.rewinds(spec) && state.rewinding.stopped.is_none();
            if let Some(plan) = state.at_hand(&key, rewinds, policy) {
                return Ok(plan);
            }
            if counted.as_ref() != Some(&key) {
                if !state.pays(&key, policy) {
                    return Err(Reason::FewStarts);
                }
                counted = Some(key);
            }
            if !state.examined {
                state.examined = true;
                if let Err(reason) = eligible::examine(&self.path) {
                    state.unfit = Some(reason);
                    return Err(reason);
                }
            }
            // One template makes all workers, so it is waited for while somebody else makes it, or has a worker made.
            let (patience, until) = *waiting.get_or_insert_with(|| {
                let is_in_use = rewinds && state.live > 0 && state.idle.is_empty();
                let patience = match is_in_use {
                    true if state.statistics.templates == 0 => policy.first_wait,
                    true => WORKER_WAIT,
                    false => WAIT,
                };
                (patience, Instant::now() + patience)
            });
            let may_make = patience == WAIT || until <= Instant::now();
            if may_make && (state.live < state.room(policy.templates_per_tool) || state.drop_idle()) {
                state.live += 1;
                return Ok(Plan::Make(rewinds && state.claim_worker(policy)));
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else { return Err(Reason::Busy) };
            state.waiting += 1;
            state = self.given_back.wait_timeout(state, left).expect("no panic while locked").0;
            state.waiting -= 1;
        }
    }

    /// Claims a place for a template in the place of one just retired.
    pub(crate) fn claim(&self, policy: &Policy) -> Result<(), Reason> {
        let mut state = self.lock();
        if state.live >= state.room(policy.templates_per_tool) {
            return Err(Reason::Busy);
        }
        state.live += 1;
        Ok(())
    }

    /// Makes a template in a claimed place.
    pub(crate) fn make(
        &self,
        spec: &Spec<'_>,
        image: &OwnedFd,
        slots: &Slots,
        kept: Option<&Path>,
    ) -> Result<Template, Reason> {
        // Each time, as it may have been replaced since by one that would run past the runtime.
        let traits = eligible::examine(&self.path)?;
        let allocator = self.lock().statistics.allocator.clone();
        let means = Means { runtime: image, slots, allocator: allocator.as_deref(), kept, is_over: None };
        let (observed, is_new) = observe::observe(spec, means);
        self.lock().take_note(&observed, is_new);
        if let Some(refusal) = &observed.refusal {
            return Err(refusal.reason);
        }
        if let Some(reason) = self.lock().asked.refuses(spec) {
            return Err(reason);
        }
        let mut template = Template::start(spec, &traits, means, Some(&observed))?;
        self.lock().learn(&mut template, |asked| key::of(spec, asked));
        Ok(template)
    }

    /// Gives up a claimed place; a reason that lies in the tool keeps it cold.
    pub(crate) fn failed(&self, reason: Reason) {
        let mut state = self.lock();
        state.live -= 1;
        let of_request = matches!(reason, Reason::Busy | Reason::LooksAtStream | Reason::Limits);
        let is_passing = reason == Reason::FilesChanging && state.changing < CHANGING_MAX;
        state.changing += u32::from(reason == Reason::FilesChanging);
        if !of_request && !is_passing {
            state.give_up(reason);
        }
    }

    /// Has it warm from the next start on, under each key.
    pub(crate) fn make_eager(&self) {
        self.lock().is_eager = true;
    }

    /// Keeps it cold: a warm start was seen to differ from a cold one.
    pub(crate) fn distrust(&self) {
        self.lock().give_up(Reason::Distrusted);
    }

    /// Gives up a worker's claimed place, or that of one that is gone.
    pub(crate) fn worker_gone(&self) {
        self.lock().live_workers -= 1;
    }

    /// No worker can be made of this tool.
    pub(crate) fn cannot_rewind(&self) {
        self.lock().rewinding.stopped = Some(Stopped::Impossible);
    }

    /// Takes note of a run after which its worker cannot go on, and gives up its place. A run that `cannot_stand` is to be the
    /// last one in a worker.
    pub(crate) fn worker_retired(&self, why: u32, cannot_stand: bool) {
        let mut state = self.lock();
        state.live_workers -= 1;
        state.rewinding.retired(why);
        if cannot_stand {
            state.rewinding.stop_for(Retirement::Calls);
        }
    }

    /// Takes note of a run that was rewound, and whether it began later than `main`; whether the worker can be used
    /// again.
    pub(crate) fn rewound(&self, audited: bool, differs: u32, at_point: bool) -> bool {
        let mut state = self.lock();
        state.rewinding.rewound(audited, differs);
        state.statistics.audits += u64::from(audited);
        state.statistics.at_point += u64::from(at_point);
        differs == 0
    }

    pub(crate) fn give_back_worker(&self, worker: Worker) {
        let mut state = self.lock();
        if state.rewinding.stopped.is_some() || state.unfit.is_some() {
            state.live_workers -= 1;
            return;
        }
        state.workers.push(worker);
        self.tell(&state);
    }

    /// Wakes a start that waits; to tell nobody would be a system call, too.
    fn tell(&self, state: &State) {
        if state.waiting > 0 {
            self.given_back.notify_one();
        }
    }

    pub(crate) fn retired(&self) {
        self.lock().live -= 1;
    }

    pub(crate) fn give_back(&self, template: Template) {
        let mut state = self.lock();
        if state.unfit.is_some() {
            state.live -= 1;
            return;
        }
        state.idle.push(template);
        self.tell(&state);
    }

    /// When the idle template that was not used for longest was used.
    pub(crate) fn oldest_idle(&self) -> Option<u64> {
        let state = self.lock();
        let templates = state.idle.iter().map(|t| t.last_use);
        templates.chain(state.workers.iter().map(|w| w.last_use)).min()
    }

    /// Drops the idle template or worker that was not used for longest; whether there was one.
    pub(crate) fn drop_oldest(&self) -> bool {
        let mut state = self.lock();
        let template = state.idle.iter().map(|t| t.last_use).min().unwrap_or(u64::MAX);
        let worker = state.workers.iter().map(|w| w.last_use).min().unwrap_or(u64::MAX);
        if worker < template {
            return state.take_oldest_worker().is_some();
        }
        state.drop_idle()
    }

    pub(crate) fn statistics(&self) -> ToolStatistics {
        let state = self.lock();
        ToolStatistics {
            retired: state.rewinding.retired.clone(),
            not_rewound: state.rewinding.stopped.clone(),
            ..state.statistics.clone()
        }
    }

    pub(crate) fn record(&self, via: Via, took: Duration) {
        let statistics = &mut self.lock().statistics;
        match via {
            Via::Cold(reason) => {
                *statistics.cold.entry(reason).or_default() += 1;
                statistics.cold_time += took;
            }
            Via::Fork => {
                statistics.forks += 1;
                statistics.fork_time += took;
            }
            Via::Rewind => {
                statistics.rewinds += 1;
                statistics.rewind_time += took;
            }
        }
    }
}

impl State {
    /// Takes note of a template just made, and gives it its key, which is made of what is asked for.
    fn learn(&mut self, template: &mut Template, key: impl FnOnce(&Asked) -> Vec<u8>) {
        let mut learned = false;
        for name in &template.names {
            learned |= self.asked.add(name);
        }
        if learned {
            // Older templates lack the new names in their keys; theirs is not known to be equal.
            self.drop_all_idle();
        }
        template.key = key(&self.asked);
        self.changing = 0;
        self.statistics.templates += 1;
        self.statistics.template_time += template.start_time;
    }

    /// Takes note of what constructors have looked at, which is in the key from now on.
    fn take_note(&mut self, observed: &Observed, is_new: bool) {
        self.statistics.observed += u64::from(is_new);
        let mut learned = self.asked.add_looks(&observed.looks);
        for name in &observed.names {
            learned |= self.asked.add(name);
        }
        if learned {
            self.drop_all_idle();
        }
        self.statistics.constructors = observed.refusal.as_ref().map(|r| (r.reason, r.detail.clone()));
    }

    /// A worker, or else a template.
    fn at_hand(&mut self, key: &[u8], rewinds: bool, policy: &Policy) -> Option<Plan> {
        if rewinds && let Some(at) = self.nearest_worker(key, place::current()) {
            let worker = self.workers.swap_remove(at);
            let audit = self.rewinding.audits_next(policy.audit_one_in);
            return Some(Plan::Rewind(Box::new(worker), audit));
        }
        let template = self.take(key)?;
        let grow = rewinds && self.claim_worker(policy);
        Some(Plan::Use(Box::new(template), grow))
    }

    /// The idle worker that ran last of those that were asked on processor `here`, else of all: what a run touches is in
    /// that processor's caches, and the kernel wakes the next stage of a pipeline where the last one ran, so that tests
    /// that run at a time do not queue for one processor while another is idle.
    fn nearest_worker(&self, key: &[u8], here: usize) -> Option<usize> {
        let fitting = || self.workers.iter().enumerate().rev().filter(|(_, worker)| worker.origin.key == key);
        let found = fitting().find(|(_, worker)| worker.asked_on == here).or_else(|| fitting().next());
        found.map(|(at, _)| at)
    }

    /// How many there may be of what there are `each` for a key: tests start one tool with several kinds of standard error.
    fn room(&self, each: usize) -> usize {
        each * if self.asked.has_streams() { STREAM_KINDS } else { 1 }
    }

    /// Claims a place for a worker, if need be that of an idle one of another key.
    fn claim_worker(&mut self, policy: &Policy) -> bool {
        if self.live_workers >= self.room(policy.workers_per_tool) && self.take_oldest_worker().is_none() {
            return false;
        }
        self.live_workers += 1;
        true
    }

    fn take_oldest_worker(&mut self) -> Option<Worker> {
        let at = self.workers.iter().enumerate().min_by_key(|(_, w)| w.last_use)?.0;
        self.live_workers -= 1;
        Some(self.workers.swap_remove(at))
    }

    /// Keeps it cold; no template or worker of it is of use any more.
    fn give_up(&mut self, reason: Reason) {
        self.unfit = Some(reason);
        self.drop_all_idle();
    }

    fn drop_all_idle(&mut self) {
        self.live -= self.idle.len();
        self.idle.clear();
        self.live_workers -= self.workers.len();
        self.workers.clear();
    }

    fn take(&mut self, key: &[u8]) -> Option<Template> {
        let at = self.idle.iter().rposition(|t| t.key == key)?;
        Some(self.idle.swap_remove(at))
    }

    /// Whether there were enough starts under this key; counts this one.
    fn pays(&mut self, key: &[u8], policy: &Policy) -> bool {
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
        *starts > policy.cold_starts() || (is_first && policy.choice == Choice::Eager)
    }

    fn take_oldest(&mut self) -> Option<Template> {
        let at = self.idle.iter().enumerate().min_by_key(|(_, t)| t.last_use)?.0;
        self.live -= 1;
        let template = self.idle.swap_remove(at);
        // Where there is not room for all, each has to pay anew.
        self.seen.remove(&template.key);
        Some(template)
    }

    /// Makes room by dropping a template of another key.
    fn drop_idle(&mut self) -> bool {
        self.take_oldest().is_some()
    }
}

/// Whether a program can be stopped by the runtime on this system at all.
pub(crate) fn probe(image: &OwnedFd, slots: &Slots) -> bool {
    let path = Path::new("/bin/sh");
    let Ok(traits) = eligible::examine(path) else { return false };
    let null = std::fs::File::options().read(true).write(true).open("/dev/null");
    let Ok(null) = null else { return false };
    let env = EnvBlock::new(&hotstart_model::Environment::new());
    let spec = Spec::plain(path, "sh".into(), env, &null);
    let means = Means { runtime: image, slots, allocator: None, kept: None, is_over: None };
    let started = Template::start(&spec, &traits, means, None);
    !matches!(started, Err(Reason::NotStopped | Reason::System))
}
