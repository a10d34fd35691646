//! A campaign: jobs that draw, run and compare sequences until the time is over.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::calibrate::calibrate;
use super::{Difference, Statistics, Verdict, check, compare, reproduce, shrink};
use crate::generate::{Catalogue, Draw, Known, Random, Sequence};
use crate::options::Options;
use crate::run::{Mode, Place, Program, Session, Tally, Workshop, sources};

/// Sequences with one program before another is compiled.
const SEQUENCES_PER_PROGRAM: u64 = 16;
/// One in so many programs does something before `main`.
const BEFORE_ONE_IN: u64 = 3;
/// Sequences tried to make a failing one small.
const SHRINKING: usize = 400;
/// The same where each attempt may take a run's whole limit.
const SHRINKING_HANGS: usize = 20;

/// What all jobs share.
struct Campaign<'o> {
    options: &'o Options,
    catalogue: Catalogue,
    begun: Instant,
    deadline: Instant,
    next: AtomicU64,
    /// Findings that are written, and those of them that count.
    written: AtomicUsize,
    findings: AtomicUsize,
    known: Mutex<Known>,
    /// Sequences to be looked into first.
    suspects: Mutex<Vec<Sequence>>,
}

/// One job: its own programs, place and figures.
struct Job<'c> {
    campaign: &'c Campaign<'c>,
    workshop: Workshop,
    session: Session,
    universal: Program,
    /// The program that does something before `main`, if the last sequence had one.
    special: Program,
    statistics: Statistics,
}

/// Runs a campaign and prints what it finds; the figures, and how many findings there are.
pub fn run(options: &Options) -> Result<(Statistics, usize), String> {
    let scratch = tempfile::tempdir().map_err(|e| format!("no scratch directory: {e}"))?;
    let root = scratch.path().canonicalize().map_err(|e| format!("{}: {e}", scratch.path().display()))?;
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs_f64(options.minutes * 60.0);
    let (catalogue, suspects, mut sum) = prepare(options, &root.join("calibration"), begun)?;
    let campaign = Campaign {
        options,
        catalogue,
        begun,
        deadline,
        next: AtomicU64::new(options.first),
        written: AtomicUsize::new(0),
        findings: AtomicUsize::new(0),
        known: Mutex::default(),
        suspects: Mutex::new(suspects),
    };
    let campaign = &campaign;
    let jobs = std::thread::scope(|scope| {
        let start = |number: usize| {
            let root = root.join(format!("job-{number}"));
            scope.spawn(move || Job::open(campaign, &root)?.work())
        };
        let jobs: Vec<_> = (0..options.jobs).map(start).collect();
        jobs.into_iter().map(|job| job.join().expect("a job does not panic")).collect::<Result<Vec<_>, _>>()
    });
    jobs?.iter().for_each(|statistics| sum.merge(statistics));
    sum.acts = campaign.catalogue.acts.len() + sources::before_names().len();
    Ok((sum, campaign.findings.load(Ordering::Relaxed)))
}

fn open(root: &Path) -> Result<(Workshop, Session), String> {
    let dir = root.join("programs");
    std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok((Workshop::open(&dir)?, Session::new(Place::new(root))))
}

/// Lists the acts and tries each by itself, for a third of the time at most.
fn prepare(
    options: &Options,
    root: &Path,
    begun: Instant,
) -> Result<(Catalogue, Vec<Sequence>, Statistics), String> {
    let (mut workshop, session) = open(root)?;
    let program = workshop.program(&[])?;
    let mut catalogue = std::mem::take(&mut workshop.catalogue);
    let is_known = |name: &str| catalogue.find(name).is_some() || sources::before_names().contains(&name);
    let mut named = options.act.iter().chain(&options.skip);
    if let Some(name) = named.find(|name| !is_known(name)) {
        return Err(format!("there is no act '{name}'; --list prints all"));
    }
    catalogue.acts.retain(|act| !options.skip.contains(&act.name));
    let mut statistics = Statistics { programs: 1, ..Statistics::default() };
    let mut random = Random::new(options.seed, u64::MAX);
    let deadline = begun + Duration::from_secs_f64(options.minutes * 20.0);
    let suspects = calibrate(&session, &program, (&mut catalogue, &mut random), (&mut statistics, deadline));
    Ok((catalogue, suspects.map_err(|e| format!("cannot run an act: {e}"))?, statistics))
}

impl Campaign<'_> {
    fn has_enough(&self) -> bool {
        self.findings.load(Ordering::Relaxed) >= self.options.findings
    }

    /// Whether a finding is one of this runtime only, if there is another to ask.
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

    /// A sequence that was seen to differ and is not looked into yet.
    fn suspect(&self) -> Option<Sequence> {
        if self.has_enough() { None } else { self.suspects.lock().expect("no panic while locked").pop() }
    }
}

impl<'c> Job<'c> {
    fn open(campaign: &'c Campaign<'c>, root: &Path) -> Result<Self, String> {
        let (mut workshop, session) = open(root)?;
        let universal = workshop.program(&[])?;
        let special = universal.clone();
        let statistics = Statistics { programs: 1, ..Statistics::default() };
        Ok(Job { campaign, workshop, session, universal, special, statistics })
    }

    fn work(mut self) -> Result<Statistics, String> {
        while let Some(sequence) = self.campaign.suspect() {
            let known = self.campaign.known.lock().expect("no panic while locked").clone();
            if !known.iter().any(|acts| acts.iter().all(|act| sequence.has(act))) {
                self.look_at(&sequence, 0)?;
            }
        }
        let campaign = self.campaign;
        while Instant::now() < campaign.deadline && !campaign.has_enough() {
            let number = campaign.next.fetch_add(1, Ordering::Relaxed);
            let mut random = Random::new(campaign.options.seed, number);
            let before = self.before(number);
            let main = campaign.options.act.as_deref().filter(|name| campaign.catalogue.find(name).is_some());
            let draw = Draw { catalogue: &campaign.catalogue, always: main };
            let known = campaign.known.lock().expect("no panic while locked").clone();
            let sequence = draw.sequence(&mut random, &before, &known);
            self.look_at(&sequence, number)?;
        }
        Ok(self.statistics)
    }

    /// What the program of sequence `number` does before `main`.
    fn before(&self, number: u64) -> Vec<String> {
        let mut random = Random::new(!self.campaign.options.seed, number / SEQUENCES_PER_PROGRAM);
        let names = sources::before_names();
        let always = self.campaign.options.act.as_deref().filter(|name| names.contains(name));
        if always.is_none() && !(number / SEQUENCES_PER_PROGRAM + 1).is_multiple_of(BEFORE_ONE_IN) {
            return Vec::new();
        }
        let count = if random.one_in(2) { 1 } else { 1 + random.below(6) };
        let mut before: Vec<_> =
            (0..count).filter_map(|_| random.pick(&names)).copied().chain(always).collect();
        before.sort_unstable();
        before.dedup();
        let before: Vec<String> = before.into_iter().map(str::to_owned).collect();
        let known = self.campaign.known.lock().expect("no panic while locked");
        // What is known to differ by itself is left out.
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
        let verdict = check(&self.session, (sequence, &program), modes, &mut self.statistics.tally);
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
        let again = check(&self.session, (&small, &program), &[mode], &mut Tally::default());
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
        let dir = reproduce::write(&self.campaign.options.out, &name, (&small, &difference), &heading)
            .map_err(|e| format!("cannot write below {}: {e}", self.campaign.options.out.display()))?;
        let counts = self.campaign.counts(&dir)?;
        let remark = if counts { "" } else { "  found with the other runtime as well\n" };
        println!("{heading}{difference}{remark}  again: warm-fuzz --replay {}\n", dir.display());
        self.campaign.findings.fetch_add(usize::from(counts), Ordering::Relaxed);
        self.campaign.known.lock().expect("no panic while locked").insert(names(&small));
        Ok(())
    }

    /// Whether a sequence differs in `mode`, seen once, and is deterministic cold, seen twice.
    fn fails(&mut self, sequence: &Sequence, mode: Mode) -> bool {
        let Ok(program) = self.program(&sequence.before) else { return false };
        let run = |mode| self.session.run(sequence, &program, mode);
        let (Ok(cold), Ok(warm)) = (run(Mode::Cold), run(mode)) else { return false };
        compare(&cold, &warm, mode).is_some()
            && run(Mode::Cold).is_ok_and(|again| again.observed == cold.observed)
    }
}

/// The acts of a sequence, each once.
fn names(sequence: &Sequence) -> Vec<String> {
    let main = sequence.requests.iter().flat_map(|request| &request.acts);
    let mut names: Vec<_> = sequence.before.iter().chain(main).cloned().collect();
    names.sort_unstable();
    names.dedup();
    names
}
