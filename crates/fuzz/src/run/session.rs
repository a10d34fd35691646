//! Runs a whole sequence in one mode: one run after another, with one launcher, in one place.
//!
//! The modes differ in nothing but the policy, so a difference between their observations is one that the way of starting makes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::iter::repeat_n;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use hotstart_launch::{
    Child, Choice, Clones, EnvBlock, Exit, Group, Launcher, Limit, OnDoubt, Policy, ProcessGroup, Resource,
    Spec, Stopped, Via,
};
use hotstart_model::Environment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::place::Streams;
use super::{Observed, Place, Program};
use crate::generate::{Limited, Request, Sequence};

/// The time limit of a run, in seconds: a hundred times that of the slowest act on an idle machine.
const LIMIT_SECONDS: i64 = 30;

/// The way in which the runs of a sequence start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Each run by exec.
    Cold,
    /// Each run as a fork of a zygote.
    Fork,
    /// In persistent processes, of which only the first runs are audited.
    Reset,
    /// In persistent processes, with an audit after each run.
    Audited,
    /// Each two runs in a new clone of the persistent process that ran last.
    Cloned,
}

/// How a run is repeated of which the first result proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// As `hotstart` does.
    WarmThenCold,
    /// Without a warm run, which would not end.
    Cold,
}

impl Mode {
    /// Returns its name, as in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Cold => "cold",
            Mode::Fork => "fork",
            Mode::Reset => "reset",
            Mode::Audited => "audited",
            Mode::Cloned => "cloned",
        }
    }

    fn launcher(self, program: &Program) -> Launcher {
        let name = program.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let choice = Choice::Only(vec![name]);
        let warm = |resets, audit_one_in, clones| {
            Launcher::new().with_policy(Policy {
                choice: choice.clone(),
                resets,
                clones,
                audit_one_in,
                learn_at_once: true,
                on_doubt: OnDoubt::Bear,
                ..Policy::default()
            })
        };
        match self {
            Mode::Cold => Launcher::new(),
            Mode::Fork => warm(false, 0, Clones::None),
            Mode::Reset => warm(true, 0, Clones::None),
            Mode::Audited => warm(true, 1, Clones::None),
            // Its first runs are audited, every other one also where it begins at `main`.
            Mode::Cloned => warm(true, 3, Clones::Each),
        }
    }
}

/// The results of a sequence in one mode.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The observations of each run.
    pub observed: Vec<Observed>,
    /// The kind of start of each run.
    pub via: Vec<Via>,
    /// The difference that an audit found.
    pub audit: Option<String>,
    /// The number of runs after which a persistent process was retired.
    pub retired: u64,
    /// The number of clones.
    pub clones: u64,
    /// The number of runs that began at a deferred snapshot.
    pub deferred: u64,
    /// Runs that were lost with a killed persistent process, and repeated cold.
    pub lost: usize,
    /// The numbers of doubtful runs: `hotstart` repeats them cold before it believes them.
    pub doubtful: BTreeSet<usize>,
}

/// Starts by mode, for the statistics at the end.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Runs by mode: cold, forked, reset.
    pub runs: BTreeMap<Mode, [u64; 3]>,
    /// The reasons why runs that should have been warm were cold.
    pub reasons: BTreeMap<String, u64>,
    /// Runs that began at a deferred snapshot.
    pub deferred: u64,
    /// Runs after which a persistent process was retired.
    pub retired: u64,
    /// Runs that were lost and repeated.
    pub lost: u64,
}

impl Tally {
    /// Adds the results of a sequence.
    pub fn add(&mut self, mode: Mode, outcome: &Outcome) {
        let runs = self.runs.entry(mode).or_default();
        for via in &outcome.via {
            match via {
                Via::Cold(reason) => {
                    runs[0] += 1;
                    if mode != Mode::Cold {
                        *self.reasons.entry(reason.to_string()).or_default() += 1;
                    }
                }
                Via::Fork => runs[1] += 1,
                Via::Reset => runs[2] += 1,
            }
        }
        self.deferred += outcome.deferred;
        self.retired += outcome.retired;
        self.lost += outcome.lost as u64;
    }

    /// Returns the number of warm runs.
    pub fn warm(&self) -> u64 {
        self.runs.values().map(|[_, forked, reset]| forked + reset).sum()
    }

    /// Adds another job's tally.
    pub fn merge(&mut self, other: &Tally) {
        for (mode, runs) in &other.runs {
            let own = self.runs.entry(*mode).or_default();
            own.iter_mut().zip(runs).for_each(|(own, more)| *own += more);
        }
        for (reason, count) in &other.reasons {
            *self.reasons.entry(reason.clone()).or_default() += count;
        }
        self.deferred += other.deferred;
        self.retired += other.retired;
        self.lost += other.lost;
    }
}

/// The place and the cold launcher of a job.
#[derive(Debug)]
pub struct Session {
    place: Place,
    cold: Launcher,
}

impl Session {
    /// Runs sequences in `place`, which no other job uses.
    pub fn new(place: Place) -> Self {
        // A launcher with a policy does not pass on descriptors that this process inherited, or those of concurrent
        // starts.
        let cold = Launcher::new().with_policy(Policy::cold());
        Session { place, cold }
    }

    /// Runs `sequence` with `program` in `mode`. An error is one of the harness, not of the program.
    pub fn run(&self, sequence: &Sequence, program: &Program, mode: Mode) -> io::Result<Outcome> {
        self.run_with_repeats(sequence, program, mode, &BTreeMap::new())
    }

    /// Does the same, but repeats the runs with these numbers, as `hotstart` repeats a test with a doubtful start: what they
    /// leave in their process stays, and what they leave in files does not.
    pub fn run_with_repeats(
        &self,
        sequence: &Sequence,
        program: &Program,
        mode: Mode,
        again: &BTreeMap<usize, Again>,
    ) -> io::Result<Outcome> {
        self.place.begin_sequence()?;
        let launcher = mode.launcher(program);
        let mut outcome = Outcome::default();
        for (number, request) in sequence.requests.iter().enumerate() {
            let mut launcher = &launcher;
            if let Some(how) = again.get(&number) {
                if *how == Again::WarmThenCold {
                    self.place.set_aside()?;
                    let group = Group::new();
                    // Only a test's runs are repeated.
                    let request = Request { leads: false, ..request.clone() };
                    self.one(launcher, &group, program, &request, sequence.arguments)?;
                    group.await_left();
                    await_orphans(program);
                    self.place.restore()?;
                }
                launcher = &self.cold;
            }
            let one = |launcher| self.one(launcher, &Group::new(), program, request, sequence.arguments);
            let (mut observed, exit) = one(launcher)?;
            if exit.lost {
                outcome.lost += 1;
                observed = one(&self.cold)?.0;
            } else if exit.doubtful {
                outcome.doubtful.insert(number);
            }
            outcome.observed.push(observed);
            outcome.via.push(exit.via);
        }
        for tool in launcher.statistics().tools {
            outcome.clones += tool.clones;
            outcome.deferred += tool.at_point;
            outcome.retired += tool.retired.values().sum::<u64>();
            if let Some(Stopped::Differs(what)) = tool.only_forked {
                outcome.audit = Some(what);
            }
        }
        Ok(outcome)
    }

    fn one(
        &self,
        launcher: &Launcher,
        group: &Group,
        program: &Program,
        request: &Request,
        arguments: usize,
    ) -> io::Result<(Observed, Exit)> {
        let mut streams = self.place.begin_run(request)?;
        let process_group = if request.leads { ProcessGroup::New } else { group.process_group()? };
        let spec = Spec { process_group, ..self.spec(program, request, arguments, &streams) };
        let child = launcher.start(&spec, group).map_err(io::Error::other)?;
        drop(spec);
        let (exit, timed_out) = await_end(child, group)?;
        let observed = Observed::take(&mut streams, &self.place.visible(), exit.status, timed_out)?;
        Ok((observed, exit))
    }

    fn spec<'s>(
        &self,
        program: &Program,
        request: &Request,
        arguments: usize,
        streams: &'s Streams,
    ) -> Spec<'s> {
        let common = [("PATH", "/usr/bin:/bin"), ("LANG", "C")];
        let common = common.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env: Environment = common.into_iter().chain(request.env.iter().cloned()).collect();
        let extra = streams.extra.iter();
        Spec {
            program: program.path.clone(),
            argv: ["acts"]
                .into_iter()
                .chain(request.acts.iter().map(String::as_str))
                .chain(repeat_n("-", arguments.saturating_sub(request.acts.len())))
                .map(Into::into)
                .collect(),
            env: EnvBlock::new(&env),
            cwd: self.place.cwd(request).into(),
            stdio: [streams.input.as_fd(), streams.output.as_fd(), streams.error.as_fd()],
            extra_fds: extra
                .flat_map(|[third, seventh]| [(3, third.as_fd()), (7, seventh.as_fd())])
                .collect(),
            umask: request.umask,
            limits: request.limits.iter().copied().map(limit).collect(),
            ignored: None,
            keep_cold: false,
            process_group: ProcessGroup::New,
        }
    }
}

fn limit(limited: Limited) -> Limit {
    let (resource, value) = match limited {
        Limited::Files(value) => (Resource::OpenFiles, value),
        Limited::FileSize(value) => (Resource::FileSize, value),
    };
    Limit { resource, soft: Some(value), hard: Some(value) }
}

/// Waits for the process to end, and kills it after the time limit. Returns whether that was necessary.
fn await_end(mut child: Child<'_>, group: &Group) -> io::Result<(hotstart_launch::Exit, bool)> {
    let mut timed_out = false;
    let mut end = Some(child.end_fd()?);
    while let Some(fd) = end.take() {
        if !readable(&fd)? {
            timed_out = true;
            group.kill();
        }
        end = if timed_out { None } else { child.process_fd() };
    }
    Ok((child.wait(), timed_out))
}

fn readable(fd: &impl AsFd) -> io::Result<bool> {
    let limit = Timespec { tv_sec: LIMIT_SECONDS, tv_nsec: 0 };
    loop {
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&limit)) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Outcome {
    /// Returns the number of its warm runs.
    pub fn warm(&self) -> usize {
        self.via.iter().filter(|via| via.is_warm()).count()
    }
}

/// The longest that an act's orphan lives, and as long again.
const ORPHANED_FOR: Duration = Duration::from_millis(500);

/// Waits for processes of the program that a run has left outside its group. A repeated run would find them: a known escape
/// (docs/design/verification.md), and no difference of the start.
fn await_orphans(program: &Program) {
    let own = std::process::id().to_string();
    let is_orphan = |process: std::fs::DirEntry| {
        let is_of_program =
            std::fs::read_link(process.path().join("exe")).is_ok_and(|exe| exe == program.path);
        // Warm processes are children of this one.
        let parent = |stat: String| stat.rsplit(')').next()?.split_whitespace().nth(1).map(str::to_owned);
        is_of_program
            && std::fs::read_to_string(process.path().join("stat"))
                .is_ok_and(|stat| parent(stat).is_some_and(|parent| parent != own))
    };
    let until = Instant::now() + ORPHANED_FOR;
    while Instant::now() < until && std::fs::read_dir("/proc").is_ok_and(|all| all.flatten().any(is_orphan)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}
