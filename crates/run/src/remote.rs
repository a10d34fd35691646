//! Jobs that run on other machines: which ones, in which batches, and what becomes of each answer.
//!
//! Workers sort jobs first. Those that can run elsewhere are handed out in batches by a thread of its own; the workers run the others, and
//! whatever comes back without a pass. Only a pass is believed of another machine, since a failure there may be due to that machine. So a
//! job has its outcome from one place only: from the answer that passed, or from a run here.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime};

use hotstart_model::{Elsewhere, Event, JobId, Outcome, Script, Severity, Transcript, Verdict, Work};

use crate::batches::batches;
use crate::schedule::Run;
use crate::worker;

/// Interval at which a waiter checks whether the run is over.
const LOOK: Duration = Duration::from_millis(50);
/// Most jobs of a run that are repeated elsewhere one by one. If more fail, the rest runs here at once.
const SINGLES: usize = 32;
/// One in this many passes of other machines runs here as well; of remembered ones, which were passes before, the second number.
const SAMPLE: [u64; 2] = [200, 2000];

/// A job on its way to another machine.
#[derive(Debug)]
pub struct Sent {
    /// The job.
    pub job: JobId,
    /// Its script.
    pub script: Box<Script>,
    /// What else is needed.
    pub place: Elsewhere,
}

/// A job's run on another machine.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its record.
    pub transcript: Transcript,
    /// Its wall time.
    pub elapsed: Duration,
}

/// The end of a batch.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It ran: a run for each job, in the order of the batch. `None` if that job has no result that can be believed.
    Ran {
        /// The runs.
        runs: Vec<Option<Ran>>,
        /// Whether these are the results of an earlier run with the same inputs.
        is_cached: bool,
    },
    /// It did not run to its end. Another attempt may.
    Failed(String),
    /// There are no other machines any more.
    Gone(String),
}

/// Other machines.
pub trait Farm: Send + Sync + fmt::Debug {
    /// Returns how many batches may be on their way at a time.
    fn slots(&self) -> usize;

    /// Returns how many jobs a batch should have at most.
    fn batch(&self) -> usize;

    /// Returns why this job has to run here; `None` if it can run elsewhere. Many threads call it.
    fn refuses(&self, script: &Script, place: &Elsewhere) -> Option<String>;

    /// Hands over a batch. A batch that `is_again` must not be answered from memory.
    fn submit(&self, number: u64, batch: &[Sent], is_again: bool);

    /// Waits for an answer. `None` if none came within this time.
    fn next(&self, within: Duration) -> Option<(u64, Answer)>;

    /// Whether jobs may run here that did not pass elsewhere. Otherwise the answer counts.
    fn falls_back(&self) -> bool;

    /// Takes the counts of a run that has ended.
    fn ended(&self, counts: RemoteCounts);
}

/// What became of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteCounts {
    /// Jobs that passed elsewhere.
    pub passed: u64,
    /// Of these, jobs whose pass was remembered there.
    pub cached: u64,
    /// Batches handed out.
    pub batches: u64,
    /// Batches that did not run to their end.
    pub failed: u64,
    /// Jobs that ran here, by reason.
    pub here: BTreeMap<String, u64>,
}

/// The state of the jobs that run elsewhere.
#[derive(Debug)]
pub(crate) struct Remote {
    farm: Arc<dyn Farm>,
    workers: usize,
    chance: RandomState,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Workers that have not sorted all jobs yet.
    sorting: usize,
    /// Jobs that wait to be sent.
    pool: Vec<Sent>,
    /// Jobs that run here.
    local: VecDeque<(JobId, Option<Box<Script>>)>,
    /// Whether no more jobs will come back.
    is_closed: bool,
    counts: RemoteCounts,
}

/// A batch, and what is known of it.
#[derive(Debug)]
struct Batch {
    sent: Vec<Sent>,
    /// Whether it is a repetition.
    is_again: bool,
    slot: usize,
}

/// What the dispatching thread knows.
#[derive(Debug, Default)]
struct Dispatch {
    waiting: VecDeque<Batch>,
    out: HashMap<u64, Batch>,
    next: u64,
    singles: usize,
    gone: Option<String>,
}

impl Remote {
    pub(crate) fn new(farm: Arc<dyn Farm>, workers: usize) -> Remote {
        Remote { farm, workers, chance: RandomState::new(), state: Mutex::default(), changed: Condvar::new() }
    }

    fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.state.lock().expect("no panic while locked"));
        self.changed.notify_all();
        result
    }

    /// Hands over the counts.
    pub(crate) fn ended(&self) {
        self.farm.ended(self.with(|state| state.counts.clone()));
    }

    /// Announces how many workers will sort jobs.
    pub(crate) fn begin(&self, workers: usize) {
        self.with(|state| state.sorting = workers);
    }

    /// Records that a worker found no more jobs to sort.
    pub(crate) fn all_taken(&self) {
        self.with(|state| state.sorting -= 1);
    }

    /// Has all jobs run here.
    pub(crate) fn give_up(&self, why: &str) {
        self.with(|state| {
            let pool = std::mem::take(&mut state.pool);
            pool.into_iter().for_each(|sent| state.run_here(sent, why));
            state.is_closed = true;
        });
    }

    /// Decides where a job runs. One that needs no run at all ends at once.
    pub(crate) fn sort(&self, run: &Run<'_>, job: JobId, worker: usize) {
        let place = match run.source.elsewhere(job) {
            Some(place) if run.source.parallelism_group(job).is_none() => place,
            _ => return self.keep(job, None, "it has no RUN lines, or is in a parallelism group"),
        };
        match run.source.prepare(job) {
            Work::Decided(outcome) => {
                run.events.send(Event::Started { job, worker });
                let outcome = Outcome {
                    started: Some(SystemTime::now()),
                    elapsed: Some(Duration::ZERO),
                    worker,
                    ..*outcome
                };
                worker::end(run, job, Some(outcome));
            }
            Work::Delegated => self.keep(job, None, "Python runs it"),
            Work::Script(script) => {
                let passed = Transcript { exit_code: Some(0), ..Transcript::default() };
                let why = match run.source.would_fail(job, 1, &passed) {
                    true => Some("it is expected to fail".to_owned()),
                    false => self.farm.refuses(&script, &place),
                };
                match why {
                    Some(why) => self.keep(job, Some(script), &why),
                    None => self.with(|state| state.pool.push(Sent { job, script, place })),
                }
            }
        }
    }

    fn keep(&self, job: JobId, script: Option<Box<Script>>, why: &str) {
        self.with(|state| state.keep(job, script, why));
    }

    /// Returns a job that runs here. `None` if there is none any more.
    pub(crate) fn take_local(&self, run: &Run<'_>) -> Option<(JobId, Option<Box<Script>>)> {
        let mut state = self.state.lock().expect("no panic while locked");
        loop {
            // A job that waits for others in its group would hold up the batches of this thread.
            if run.is_over() {
                return None;
            }
            if let Some(job) = state.local.pop_front() {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait_timeout(state, LOOK).expect("no panic while locked").0;
        }
    }

    /// Hands out batches until each job has its outcome or runs here. The body of the dispatching thread.
    pub(crate) fn dispatch(&self, run: &Run<'_>) {
        let pool = self.sorted(run);
        let mut dispatch = Dispatch::default();
        for sent in batches(pool, self.farm.batch()) {
            dispatch.waiting.push_back(Batch { sent, is_again: false, slot: 0 });
        }
        while !run.is_over() && dispatch.gone.is_none() {
            self.fill(&mut dispatch);
            if dispatch.out.is_empty() {
                break;
            }
            if let Some((number, answer)) = self.farm.next(LOOK) {
                // An answer that comes twice, or to nothing, has no batch any more.
                if let Some(batch) = dispatch.out.remove(&number) {
                    self.settle(run, &mut dispatch, batch, answer);
                }
            }
        }
        if let Some(why) = dispatch.gone.take() {
            let batches = dispatch.waiting.drain(..).chain(dispatch.out.drain().map(|(_, batch)| batch));
            for sent in batches.flat_map(|batch| batch.sent) {
                self.not_run(run, sent, &why);
            }
            run.tell(Severity::Warning, format!("--remote: {why}; the tests that are left run here"));
        }
        self.with(|state| state.is_closed = true);
    }

    /// Waits until all jobs are sorted. Returns those to be sent.
    fn sorted(&self, run: &Run<'_>) -> Vec<Sent> {
        let mut state = self.state.lock().expect("no panic while locked");
        while state.sorting > 0 && !run.is_over() {
            state = self.changed.wait_timeout(state, LOOK).expect("no panic while locked").0;
        }
        std::mem::take(&mut state.pool)
    }

    /// Hands out batches as long as there are slots.
    fn fill(&self, dispatch: &mut Dispatch) {
        while dispatch.out.len() < self.farm.slots().max(1) {
            let Some(mut batch) = dispatch.waiting.pop_front() else { return };
            let is_used = |slot: &usize| dispatch.out.values().any(|batch| batch.slot == *slot);
            batch.slot = (0..).find(|slot| !is_used(slot)).unwrap_or_default();
            self.farm.submit(dispatch.next, &batch.sent, batch.is_again);
            dispatch.out.insert(dispatch.next, batch);
            dispatch.next += 1;
            self.with(|state| state.counts.batches += 1);
        }
    }

    fn settle(&self, run: &Run<'_>, dispatch: &mut Dispatch, batch: Batch, answer: Answer) {
        match answer {
            Answer::Ran { runs, is_cached } if runs.len() == batch.sent.len() => {
                let (is_alone, slot) = (batch.sent.len() == 1, batch.slot);
                for (sent, ran) in batch.sent.into_iter().zip(runs) {
                    match ran {
                        Some(ran) if passed(&ran) => self.passed(run, sent, ran, is_cached, slot),
                        ran if is_alone => self.failed(run, sent, ran, slot),
                        _ => self.repeat_alone(dispatch, sent),
                    }
                }
            }
            Answer::Ran { .. } => self.split(run, dispatch, batch, "an answer has too few results"),
            Answer::Failed(why) => self.split(run, dispatch, batch, &why),
            Answer::Gone(why) => {
                batch.sent.into_iter().for_each(|sent| self.not_run(run, sent, &why));
                dispatch.gone = Some(why);
            }
        }
    }

    fn passed(&self, run: &Run<'_>, sent: Sent, ran: Ran, is_cached: bool, slot: usize) {
        if self.farm.falls_back() && self.chance.hash_one(sent.job) % SAMPLE[usize::from(is_cached)] == 0 {
            self.with(|state| state.run_here(sent, "a sample of those that passed elsewhere"));
            return;
        }
        let Sent { job, script, .. } = sent;
        let outcome = run.source.conclude(job, 1, ran.transcript);
        match outcome {
            Some(outcome) => {
                self.with(|state| {
                    state.counts.passed += 1;
                    state.counts.cached += u64::from(is_cached);
                });
                self.announce(run, job, Outcome { is_cached, ..outcome }, ran.elapsed, slot);
            }
            None => self.keep(job, Some(script), "its attempt did not count"),
        }
    }

    fn announce(&self, run: &Run<'_>, job: JobId, mut outcome: Outcome, elapsed: Duration, slot: usize) {
        let worker = self.workers + slot;
        run.events.send(Event::Started { job, worker });
        outcome.started = Some(SystemTime::now() - elapsed);
        outcome.elapsed = Some(elapsed);
        outcome.worker = worker;
        worker::end(run, job, Some(outcome));
    }

    /// A job that ran alone elsewhere and did not pass.
    fn failed(&self, run: &Run<'_>, sent: Sent, ran: Option<Ran>, slot: usize) {
        match ran {
            Some(ran) if !self.farm.falls_back() => {
                let Sent { job, script, .. } = sent;
                match run.source.conclude(job, 1, ran.transcript) {
                    Some(outcome) => self.announce(run, job, outcome, ran.elapsed, slot),
                    // lit would repeat it.
                    None => self.keep(job, Some(script), "it is repeated"),
                }
            }
            _ => self.not_run(run, sent, "it did not pass elsewhere"),
        }
    }

    fn repeat_alone(&self, dispatch: &mut Dispatch, sent: Sent) {
        dispatch.singles += 1;
        if dispatch.singles > SINGLES && self.farm.falls_back() {
            self.with(|state| state.run_here(sent, "too many did not pass elsewhere"));
        } else {
            dispatch.waiting.push_front(Batch { sent: vec![sent], is_again: true, slot: 0 });
        }
    }

    /// A batch that did not run to its end: one of its jobs may be the cause.
    fn split(&self, run: &Run<'_>, dispatch: &mut Dispatch, batch: Batch, why: &str) {
        self.with(|state| state.counts.failed += 1);
        let mut first = batch.sent;
        if first.len() == 1 {
            first.into_iter().for_each(|sent| self.not_run(run, sent, why));
            return;
        }
        let second = first.split_off(first.len() / 2);
        for sent in [second, first] {
            dispatch.waiting.push_front(Batch { sent, is_again: true, slot: 0 });
        }
    }

    /// Runs a job here, if that is allowed. The fault is never the job's.
    fn not_run(&self, run: &Run<'_>, sent: Sent, why: &str) {
        if self.farm.falls_back() {
            self.with(|state| state.run_here(sent, why));
            return;
        }
        let text = format!("hotstart could not run this test elsewhere, which may well be in order: {why}\n");
        self.announce(run, sent.job, Outcome::decided(Verdict::UNRESOLVED, text), Duration::ZERO, 0);
    }
}

impl State {
    fn keep(&mut self, job: JobId, script: Option<Box<Script>>, why: &str) {
        *self.counts.here.entry(why.to_owned()).or_default() += 1;
        self.local.push_back((job, script));
    }

    fn run_here(&mut self, sent: Sent, why: &str) {
        self.keep(sent.job, Some(sent.script), why);
    }
}

/// Whether a run is a pass that can be believed.
fn passed(ran: &Ran) -> bool {
    let Transcript { exit_code, timed_out, fault, .. } = &ran.transcript;
    *exit_code == Some(0) && !timed_out && fault.is_none()
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
