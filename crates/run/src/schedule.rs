//! One run: workers take jobs in order until none is left or something ends the run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use hotstart_launch::{Group, Launcher};
use hotstart_model::{
    Diagnostic, Event, Events, Fault, JobId, JobSource, Outcome, RunEnd, Script, Severity, Transcript,
    VerdictTable,
};

use hotstart_shell::FileChecks;

use crate::execute::{Execute, Processes, Ran, Way};
use crate::foresight::Foresight;
use crate::gate::Gate;
use crate::kept::Kept;
use crate::outputs::{self, Directories};
use crate::remote::{Farm, Remote};
use crate::room::Room;
use crate::serial::{PutOff, Serially};
use crate::turns::{Order, Turns};
use crate::watch::Watch;
use crate::{Checks, Interrupt, Memory, Shells, ToolTimes, crew};

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Jobs at once; at least 1.
    pub workers: usize,
    /// Ends the run after this number of failures (`--max-failures`).
    pub max_failures: Option<u32>,
    /// Ends the run at this time (`--max-time`).
    pub deadline: Option<Instant>,
    /// Processes that serve the whole run, and are killed when it is cut short.
    pub companions: Option<Arc<Group>>,
    /// Adds up the time of tools, if requested.
    pub tool_times: Option<Arc<ToolTimes>>,
    /// Counts scripts for an external shell by the shell that ran them, if the shell is a choice.
    pub shells: Option<Arc<Shells>>,
    /// Decides passes of FileCheck in warm runs, if set.
    pub filechecks: Option<Arc<FileChecks>>,
    /// Remembers which tests passed with which inputs (`--cache`), if set.
    pub memory: Option<Arc<Memory>>,
    /// Other machines that run jobs, if there are any.
    pub farm: Option<Arc<dyn Farm>>,
    /// Whether a test fails that failed when started warm and passed cold (`--fail-flaky`).
    pub fail_flaky: bool,
    /// Whether this run repeats an earlier one (`--replay`).
    pub is_replayed: bool,
    /// The command that runs tests again in a given order; `None` if there is none.
    pub replay: Option<Replay>,
    /// The fixed part of the order of jobs.
    pub order: Order,
    /// The failures that run once more after all others, one by one.
    pub serially: Option<Serially>,
}

/// The command line around `--replay=TEST` for each test.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// The program and its command.
    pub before: String,
    /// Options and paths.
    pub after: String,
}

/// The state that the workers of one run share.
pub(crate) struct Run<'a> {
    pub source: &'a dyn JobSource,
    pub executor: &'a dyn Execute,
    pub checks: &'a Checks,
    pub events: &'a dyn Events,
    pub watch: Arc<Watch>,
    pub gate: Gate,
    room: Room,
    pub settings: &'a RunSettings,
    pub verdicts: &'a VerdictTable,
    turns: Turns,
    pub foresight: Foresight,
    pub put_off: PutOff,
    /// The jobs that run elsewhere.
    pub remote: Option<Remote>,
    outputs: Directories,
    /// What the scripts of running jobs have found of their own files.
    found: Mutex<HashMap<JobId, Found>>,
    progress: Mutex<Progress>,
}

/// The state of a job's own files.
#[derive(Default)]
struct Found {
    /// Before its first attempt, by the place of the files; `None` if that state could not be restored. A format may have several places.
    first: Vec<(PathBuf, Option<Arc<Kept>>)>,
    /// Before the attempt that goes on.
    last: Option<Arc<Kept>>,
    /// The processes of the last run.
    group: Option<Arc<Group>>,
}

#[derive(Default)]
struct Progress {
    completed: u32,
    failures: u32,
    end: Option<RunEnd>,
}

/// Runs every job of `source`, announces each on `events`, and returns the reason for which the run ended.
///
/// Outcomes reach the caller through [`Event::Finished`] only. A job that was running when the run was cut short
/// has no outcome.
pub fn run(
    source: &dyn JobSource,
    launcher: &Launcher,
    settings: &RunSettings,
    checks: &Checks,
    verdicts: &VerdictTable,
    interrupt: &Interrupt,
    events: &dyn Events,
) -> RunEnd {
    let workers = settings.workers.clamp(1, source.count().max(1) as usize);
    let watch = Arc::new(Watch::default());
    let (cold, tracers) = (launcher.cold(), Group::new());
    let filechecks = settings.filechecks.clone();
    let executor =
        Processes::new(launcher, &cold, &tracers, filechecks, Arc::clone(&watch), settings.deadline);
    let run = Run::new(source, &executor, settings, checks, verdicts, events, watch);
    interrupt.reaches(&run.watch);
    let _companions = settings.companions.as_ref().map(|group| run.watch.over(group, settings.deadline));
    let elsewhere = settings.farm.as_ref().map_or(0, |farm| farm.slots());
    events.send(Event::RunStarted { jobs: source.count(), workers: workers + elsewhere });
    crew::work(&run, workers, |run| run.run_put_off());
    if let Some(remote) = &run.remote {
        remote.ended();
    }
    let end = run.end(interrupt);
    events.send(Event::RunFinished { end });
    end
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        source: &'a dyn JobSource,
        executor: &'a dyn Execute,
        settings: &'a RunSettings,
        checks: &'a Checks,
        verdicts: &'a VerdictTable,
        events: &'a dyn Events,
        watch: Arc<Watch>,
    ) -> Self {
        Run {
            source,
            executor,
            checks,
            events,
            watch,
            gate: Gate::default(),
            room: Room::default(),
            settings,
            verdicts,
            turns: Turns::new(source.count(), settings.order.clone()),
            foresight: Foresight::default(),
            put_off: PutOff::default(),
            remote: settings.farm.clone().map(|farm| Remote::new(farm, settings.workers)),
            outputs: Directories::default(),
            found: Mutex::default(),
            progress: Mutex::default(),
        }
    }

    /// Reports a message that belongs to no test.
    pub(crate) fn tell(&self, severity: Severity, message: String) {
        self.events.send(Event::Diagnostic(Diagnostic { severity, place: None, message }));
    }

    /// Takes note of the files that a job's attempt finds, whose names begin with `base`, for runs that repeat it. Returns whether these
    /// could be restored, and all that the job found before. `is_listed` if nothing of the job has run yet, so that a list of its
    /// directory may be older.
    pub(crate) fn keep_files(&self, job: JobId, base: &Path, is_listed: bool) -> bool {
        let paths = if is_listed { self.outputs.own(base) } else { outputs::own(base) };
        let now = paths.ok().and_then(Kept::read).map(Arc::new);
        let mut all = self.found.lock().expect("no panic while locked");
        let found = all.entry(job).or_default();
        if !found.first.iter().any(|(place, _)| place == base) {
            found.first.push((base.to_owned(), now.clone()));
        }
        found.last = now;
        found.last.is_some() && found.first.iter().all(|(_, kept)| kept.is_some())
    }

    /// Forgets the files of a job that has ended.
    pub(crate) fn forget_files(&self, job: JobId) {
        self.found.lock().expect("no panic while locked").remove(&job);
    }

    /// Makes a job's own files what its attempt has found.
    pub(crate) fn restore_files(&self, job: JobId, base: &Path) -> Result<(), String> {
        let last =
            self.found.lock().expect("no panic while locked").get(&job).and_then(|found| found.last.clone());
        let last = last.ok_or("the files that it has found cannot be restored")?;
        self.make_files(job, base, &last)
    }

    /// Makes a job's own files what its first attempt has found.
    pub(crate) fn restore_first_files(&self, job: JobId) -> Result<(), String> {
        let first =
            self.found.lock().expect("no panic while locked").get(&job).map(|found| found.first.clone());
        for (base, kept) in first.unwrap_or_default() {
            self.make_files(job, &base, &*kept.ok_or("the files that it has found cannot be restored")?)?;
        }
        Ok(())
    }

    /// Returns a job's own files as they are now, if they could be restored.
    pub(crate) fn files_now(&self, job: JobId, base: &Path) -> Option<Kept> {
        self.await_left(job);
        Kept::of(base)
    }

    /// Makes a job's own files these.
    pub(crate) fn make_files(&self, job: JobId, base: &Path, kept: &Kept) -> Result<(), String> {
        self.await_left(job);
        kept.restore(base).map_err(|error| format!("the files that it has found cannot be restored: {error}"))
    }

    /// Makes a job's own files these, those of the run that counts. Says so if that is not possible.
    pub(crate) fn leave_files(&self, job: JobId, base: &Path, kept: &Kept) {
        if let Err(error) = self.make_files(job, base, kept) {
            self.tell(
                Severity::Doubt,
                format!("{}: its last run left other files: {error}", self.source.label(job)),
            );
        }
    }

    /// Gives what of the job's last run still runs a moment to end.
    fn await_left(&self, job: JobId) {
        let group =
            self.found.lock().expect("no panic while locked").get(&job).and_then(|found| found.group.clone());
        if let Some(group) = group {
            group.await_left();
        }
    }

    /// Runs a script once more, on the files that the attempt has found. If these cannot be restored, the run is a fault of hotstart.
    pub(crate) fn again(&self, job: JobId, script: &Script, way: Way) -> Ran {
        match self.restore_files(job, &script.tmp_base) {
            Ok(()) => self.once(job, script, way),
            Err(why) => {
                let fault = Some(Fault::Internal(format!("the test has to run again, but {why}")));
                Ran { transcript: Transcript { fault, ..Transcript::default() }, ..Ran::default() }
            }
        }
    }

    /// Runs a script once, and repeats it if the system had no room for it.
    pub(crate) fn once(&self, job: JobId, script: &Script, way: Way) -> Ran {
        let make = || {
            let _inside = self.room.enter();
            let ran = self.executor.run(job, script, way);
            let group = Some(Arc::clone(&ran.group));
            self.found.lock().expect("no panic while locked").entry(job).or_default().group = group;
            ran
        };
        let mut ran = make();
        if ran.had_no_room() {
            ran.group.await_left();
            ran.group.give_up_process_group();
            let _again = self.room.again();
            while ran.had_no_room() && !self.watch.is_killed() {
                let others = self.room.await_end(|| self.watch.is_killed());
                if self.restore_files(job, &script.tmp_base).is_err() {
                    break;
                }
                ran = make();
                if !others {
                    break;
                }
            }
        }
        if ran.is_cut_short {
            self.cut_short(RunEnd::MaxTime);
        }
        ran
    }

    /// Returns the next job of this worker, unless the run is over.
    pub(crate) fn take(&self, worker: usize) -> Option<JobId> {
        self.turns.take(worker, || self.is_over()).map(JobId)
    }

    /// Returns whether no more jobs may start.
    pub(crate) fn is_over(&self) -> bool {
        if self.settings.deadline.is_some_and(|at| at <= Instant::now()) {
            self.cut_short(RunEnd::MaxTime);
        }
        self.watch.is_killed()
    }

    /// Records that a worker has left a job, with or without an outcome.
    pub(crate) fn left(&self) {
        self.turns.ended();
    }

    /// Records an outcome and announces it, in one order for all workers.
    pub(crate) fn finished(&self, job: JobId, outcome: Outcome) {
        self.announce(job, outcome, false);
    }

    /// Records and announces an outcome; `late` if the job had ended before the run did.
    pub(crate) fn announce(&self, job: JobId, outcome: Outcome, late: bool) {
        let mut progress = self.progress.lock().expect("no panic while locked");
        if progress.end.is_some() && !late {
            return;
        }
        progress.completed += 1;
        if self.verdicts.kind(outcome.verdict).is_failure {
            progress.failures += 1;
        }
        let completed = progress.completed;
        self.events.send(Event::Finished { job, completed, outcome: Arc::new(outcome) });
        if self.settings.max_failures.is_some_and(|most| progress.failures >= most) {
            progress.end.get_or_insert(RunEnd::MaxFailures);
            self.watch.kill_all();
        }
    }

    /// Records the time of an attempt's tools.
    pub(crate) fn took(&self, script: &Script, transcript: &Transcript, begun: Instant) {
        if let Some(times) = &self.settings.tool_times {
            times.add(script, transcript, begun.elapsed());
        }
    }

    /// Returns the counts of scripts by shell.
    pub(crate) fn shells(&self) -> Option<&Shells> {
        self.settings.shells.as_deref()
    }

    /// Ends the run early.
    pub(crate) fn cut_short(&self, end: RunEnd) {
        self.progress.lock().expect("no panic while locked").end.get_or_insert(end);
        self.watch.kill_all();
    }

    fn end(&self, interrupt: &Interrupt) -> RunEnd {
        let progress = self.progress.lock().expect("no panic while locked");
        match progress.end {
            Some(end) => end,
            None if interrupt.is_triggered() && progress.completed < self.source.count() => {
                RunEnd::Interrupted
            }
            None => RunEnd::Completed,
        }
    }
}
