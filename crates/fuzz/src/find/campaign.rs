//! A campaign: jobs that draw, run and compare sequences until the time is up.
//!
//! Compiling a program takes longer than many runs, so sequences share one. Each job has programs and directories of its own, so that jobs
//! do not disturb each other.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::calibrate::{calibrate, observed, twice};
use super::{Difference, Statistics, Verdict, check, compare, reproduce, run_against, shrink};
use crate::generate::{Act, Catalogue, Draw, Known, Random, Role, Sequence};
use crate::options::Options;
use crate::run::{Mode, Place, Program, Session, Tally, Workshop, sources};

/// Sequences that share a program before another is compiled.
const SEQUENCES_PER_PROGRAM: u64 = 16;
/// One program in this many does something before `main`.
const BEFORE_ONE_IN: u64 = 3;
/// The limit of sequences tried to shrink a failing one.
const SHRINKING: usize = 400;
/// The same limit for a failure in which each attempt may take a run's whole time limit.
const SHRINKING_HANGS: usize = 20;

/// The state that all jobs share.
struct Campaign<'o> {
    options: &'o Options,
    catalogue: Catalogue,
    begun: Instant,
    deadline: Instant,
    next: AtomicU64,
    /// All findings written, and those of them that count.
    written: AtomicUsize,
    findings: AtomicUsize,
    known: Mutex<Known>,
    /// Acts that calibration has yet to try, and those that retire a persistent process.
    left: Mutex<Vec<Act>>,
    retiring: Mutex<BTreeSet<String>>,
}

/// One job: its own programs, place and statistics.
struct Job<'c> {
    campaign: &'c Campaign<'c>,
    workshop: Workshop,
    session: Session,
    universal: Program,
    /// The program that does something before `main`, if the last sequence had one.
    special: Program,
    statistics: Statistics,
}

/// Runs a campaign and prints its findings. Returns the statistics and the number of findings that count.
pub fn run(options: &Options) -> Result<(Statistics, usize), String> {
    let scratch = tempfile::tempdir().map_err(|e| format!("no scratch directory: {e}"))?;
    let root = scratch.path().canonicalize().map_err(|e| format!("{}: {e}", scratch.path().display()))?;
    let begun = Instant::now();
    let mut rooms = on_threads(0..options.jobs, |number| open(&root.join(format!("job-{number}"))))?;
    let catalogue = std::mem::take(&mut rooms[0].0.catalogue);
    let campaign = Campaign {
        options,
        left: Mutex::new(choose(options, &catalogue)?),
        catalogue,
        begun,
        deadline: begun + Duration::from_secs_f64(options.minutes * 60.0),
        next: AtomicU64::new(options.first),
        written: AtomicUsize::new(0),
        findings: AtomicUsize::new(0),
        known: Mutex::default(),
        retiring: Mutex::default(),
    };
    let jobs = on_threads(rooms, |room| Job::open(&campaign, room)?.calibrate())?;
    let mut sum = Statistics::default();
    on_threads(jobs, Job::work)?.iter().for_each(|statistics| sum.merge(statistics));
    sum.acts = campaign.catalogue.acts.len() + sources::before_names().len();
    Ok((sum, campaign.findings.load(Ordering::Relaxed)))
}

/// Runs `work` for each of `items`, each on its own thread.
fn on_threads<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(move || work(item))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a job does not panic")).collect()
    })
}

fn open(root: &Path) -> Result<(Workshop, Session), String> {
    let dir = root.join("programs");
    std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok((Workshop::open(&dir)?, Session::new(Place::new(root))))
}

/// Returns the acts that calibration tries. An error names an act of an option that does not exist.
fn choose(options: &Options, catalogue: &Catalogue) -> Result<Vec<Act>, String> {
    let is_known = |name: &str| catalogue.find(name).is_some() || sources::before_names().contains(&name);
    let mut named = options.act.iter().chain(&options.skip);
    if let Some(name) = named.find(|name| !is_known(name)) {
        return Err(format!("there is no act '{name}'; --list prints all"));
    }
    let is_chosen =
        |act: &&Act| !matches!(act.role, Role::Before | Role::Rare) && !options.skip.contains(&act.name);
    Ok(catalogue.acts.iter().filter(is_chosen).cloned().collect())
}

impl Campaign<'_> {
    fn has_enough(&self) -> bool {
        self.findings.load(Ordering::Relaxed) >= self.options.findings
    }

    /// Whether a finding counts: always, unless the `against` program reproduces it, too.
    fn counts(&self, finding: &Path) -> Result<bool, String> {
        let Some(other) = &self.options.against else { return Ok(true) };
        let output = Command::new(other).arg("--replay").arg(finding).output();
        let output = output.map_err(|e| format!("cannot run {}: {e}", other.display()))?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(format!("{}: {}", other.display(), String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// Returns a random act that calibration tries next. `None` after a third of the time.
    fn untried(&self) -> Option<Act> {
        let mut left = self.left.lock().expect("no panic while locked");
        if left.is_empty() || self.has_enough() || self.begun.elapsed() * 3 > self.deadline - self.begun {
            return None;
        }
        // Acts that observe come first: they show which of them the other acts can use.
        let observes = |act: &Act| act.role == Role::Observes;
        let first = if left.iter().any(observes) { observes } else { |_: &Act| true };
        let places: Vec<_> = (0..left.len()).filter(|at| first(&left[*at])).collect();
        let mut random = Random::new(self.options.seed, !(left.len() as u64));
        let at = *random.pick(&places)?;
        Some(left.swap_remove(at))
    }

    /// Returns the acts to draw from.
    fn drawn(&self) -> Catalogue {
        let mut catalogue = self.catalogue.clone();
        catalogue.acts.retain(|act| !self.options.skip.contains(&act.name));
        catalogue.retiring = self.retiring.lock().expect("no panic while locked").clone();
        catalogue
    }
}

impl<'c> Job<'c> {
    fn open(
        campaign: &'c Campaign<'c>,
        (mut workshop, session): (Workshop, Session),
    ) -> Result<Self, String> {
        let universal = workshop.program(&[])?;
        let special = universal.clone();
        let statistics = Statistics { programs: 1, ..Statistics::default() };
        Ok(Job { campaign, workshop, session, universal, special, statistics })
    }

    /// Tries single acts, and examines each difference at once.
    fn calibrate(mut self) -> Result<Self, String> {
        while let Some(act) = self.campaign.untried() {
            if self.try_out(&twice(&act.name))? {
                self.campaign.retiring.lock().expect("no panic while locked").insert(act.name);
            } else if let Some(sequence) = observed(&act.name, &self.campaign.drawn()) {
                self.try_out(&sequence)?;
            }
        }
        Ok(self)
    }

    /// Whether `sequence` retires a persistent process. Examines the sequence if it differs.
    fn try_out(&mut self, sequence: &Sequence) -> Result<bool, String> {
        let mode = if self.campaign.options.modes == [Mode::Cloned] { Mode::Cloned } else { Mode::Reset };
        let tried = calibrate(&self.session, sequence, &self.universal, mode, &mut self.statistics);
        let tried = tried.map_err(|e| format!("cannot try {}: {e}", names(sequence).join(", ")))?;
        let is_known = |known: &Known| known.iter().any(|acts| acts.iter().all(|act| sequence.has(act)));
        if tried.differs && !is_known(&self.campaign.known.lock().expect("no panic while locked")) {
            self.look_at(sequence, 0)?;
        }
        Ok(tried.retires)
    }

    fn work(mut self) -> Result<Statistics, String> {
        let campaign = self.campaign;
        let catalogue = campaign.drawn();
        while Instant::now() < campaign.deadline && !campaign.has_enough() {
            let number = campaign.next.fetch_add(1, Ordering::Relaxed);
            let mut random = Random::new(campaign.options.seed, number);
            let before = self.before(number);
            let main = campaign.options.act.as_deref().filter(|name| catalogue.find(name).is_some());
            let draw = Draw { catalogue: &catalogue, always: main };
            let known = campaign.known.lock().expect("no panic while locked").clone();
            let sequence = draw.sequence(&mut random, &before, &known);
            let warm = self.statistics.tally.warm();
            self.look_at(&sequence, number)?;
            // A program that always starts cold shows no more.
            if self.statistics.tally.warm() == warm {
                let following = (number / SEQUENCES_PER_PROGRAM + 1) * SEQUENCES_PER_PROGRAM;
                campaign.next.fetch_max(following, Ordering::Relaxed);
            }
        }
        Ok(self.statistics)
    }

    /// Returns the acts before `main` of the program for sequence `number`.
    fn before(&self, number: u64) -> Vec<String> {
        let mut random = Random::new(!self.campaign.options.seed, number / SEQUENCES_PER_PROGRAM);
        let names = sources::before_names();
        let always = self.campaign.options.act.as_deref().filter(|name| names.contains(name));
        if always.is_none() && (number / SEQUENCES_PER_PROGRAM + 1) % BEFORE_ONE_IN != 0 {
            return Vec::new();
        }
        // Others may make the program cold.
        let least = usize::from(always.is_none());
        let count = if random.one_in(2) { least } else { 1 + random.below(6) };
        let mut before: Vec<_> =
            (0..count).filter_map(|_| random.pick(&names)).copied().chain(always).collect();
        before.sort_unstable();
        before.dedup();
        let before: Vec<String> = before.into_iter().map(str::to_owned).collect();
        let known = self.campaign.known.lock().expect("no panic while locked");
        // Leaves out acts that are known to differ alone.
        let skip = &self.campaign.options.skip;
        let is_wanted = |name: &String| !known.contains(&vec![name.clone()]) && !skip.contains(name);
        before.into_iter().filter(is_wanted).collect()
    }

    fn program(&mut self, before: &[String]) -> Result<Program, String> {
        if before.is_empty() {
            return Ok(self.universal.clone());
        }
        if self.special.before != before {
            self.special = self.workshop.program(before)?;
            self.statistics.programs += 1;
        }
        Ok(self.special.clone())
    }

    fn look_at(&mut self, sequence: &Sequence, number: u64) -> Result<(), String> {
        let program = self.program(&sequence.before)?;
        self.statistics.covers(sequence);
        let modes = &self.campaign.options.modes;
        let verdict = check(&self.session, sequence, &program, modes, &mut self.statistics.tally);
        match verdict.map_err(|e| format!("cannot run sequence {number}: {e}"))? {
            Verdict::Same => Ok(()),
            Verdict::Nondeterministic(at) => {
                self.statistics.nondeterministic(sequence, at);
                Ok(())
            }
            Verdict::Differs(difference) => self.found(sequence, *difference, number),
        }
    }

    fn found(&mut self, sequence: &Sequence, difference: Difference, number: u64) -> Result<(), String> {
        let mode = difference.mode;
        let attempts = if difference.hangs() { SHRINKING_HANGS } else { SHRINKING };
        let small = shrink(sequence.clone(), attempts, |candidate| self.fails(candidate, mode));
        let program = self.program(&small.before)?;
        let again = check(&self.session, &small, &program, &[mode], &mut Tally::default());
        let (small, difference) = match again {
            Ok(Verdict::Differs(smaller)) => (small, *smaller),
            _ => (sequence.clone(), difference),
        };
        let place = self.campaign.written.fetch_add(1, Ordering::Relaxed) + 1;
        let heading = format!(
            "finding {place}: seed {}, sequence {number}, mode {}, after {} s\n{}",
            self.campaign.options.seed,
            mode.name(),
            self.campaign.begun.elapsed().as_secs(),
            reproduce::describe(&small)
        );
        let name = format!("finding-{place}");
        let dir = reproduce::write(&self.campaign.options.out, &name, &small, &difference, &heading)
            .map_err(|e| format!("cannot write below {}: {e}", self.campaign.options.out.display()))?;
        let counts = self.campaign.counts(&dir)?;
        let remark = if counts { "" } else { "  found with the other runtime as well\n" };
        println!("{heading}{difference}{remark}  again: warm-fuzz --replay {}\n", dir.display());
        self.campaign.findings.fetch_add(usize::from(counts), Ordering::Relaxed);
        self.campaign.known.lock().expect("no panic while locked").insert(names(&small));
        Ok(())
    }

    /// Whether a sequence differs in `mode`, in one run, and is deterministic cold, in two runs.
    fn fails(&mut self, sequence: &Sequence, mode: Mode) -> bool {
        let Ok(program) = self.program(&sequence.before) else { return false };
        let run_cold = || self.session.run(sequence, &program, Mode::Cold);
        let Ok(cold) = run_cold() else { return false };
        let Ok(warm) = run_against(&self.session, sequence, &program, mode, &cold) else { return false };
        compare(&cold, &warm, mode).is_some() && run_cold().is_ok_and(|again| again.observed == cold.observed)
    }
}

/// Returns the acts of a sequence, each once.
fn names(sequence: &Sequence) -> Vec<String> {
    let main = sequence.requests.iter().flat_map(|request| &request.acts);
    let mut names: Vec<_> = sequence.before.iter().chain(main).cloned().collect();
    names.sort_unstable();
    names.dedup();
    names
}
