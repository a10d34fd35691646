//! The decisions about jobs that run elsewhere, with a farm that answers as it is told.

use std::sync::atomic::{AtomicUsize, Ordering};

use hotstart_model::{Events, JobSource, RunScript, VerdictTable};

use super::*;
use crate::execute::Way;
use crate::fake::{self, FakeExecutor};
use crate::watch::Watch;
use crate::{Checks, RunSettings, crew};

/// How a test's script ends elsewhere.
type Behaviour = dyn Fn(&[u32], usize) -> Vec<(u64, Answer)> + Send + Sync;

/// Answers each batch at once, by a function of its jobs and of the number of batches before.
struct FakeFarm {
    behaviour: Box<Behaviour>,
    answers: Mutex<VecDeque<(u64, Answer)>>,
    submitted: AtomicUsize,
    falls_back: bool,
    batch: usize,
    counts: Mutex<RemoteCounts>,
    /// Sizes of the batches, and whether each was a repetition.
    batches: Mutex<Vec<(usize, bool)>>,
}

impl fmt::Debug for FakeFarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeFarm")
    }
}

impl Farm for FakeFarm {
    fn slots(&self) -> usize {
        2
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn refuses(&self, _: &Script, place: &Elsewhere) -> Option<String> {
        place.name.ends_with('7').then(|| "its name ends with 7".to_owned())
    }

    fn submit(&self, number: u64, batch: &[Sent], is_again: bool) {
        let jobs: Vec<u32> = batch.iter().map(|sent| sent.job.0).collect();
        self.batches.lock().unwrap().push((jobs.len(), is_again));
        let before = self.submitted.fetch_add(1, Ordering::Relaxed);
        for (offset, answer) in (self.behaviour)(&jobs, before) {
            self.answers.lock().unwrap().push_back((number + offset, answer));
        }
    }

    fn next(&self, _: Duration) -> Option<(u64, Answer)> {
        self.answers.lock().unwrap().pop_front()
    }

    fn falls_back(&self) -> bool {
        self.falls_back
    }

    fn ended(&self, counts: RemoteCounts) {
        *self.counts.lock().unwrap() = counts;
    }
}

/// Jobs that pass if their script exits with 0.
struct Jobs(u32);

impl JobSource for Jobs {
    fn count(&self) -> u32 {
        self.0
    }

    fn label(&self, job: JobId) -> String {
        format!("t :: {}", job.0)
    }

    fn parallelism_group(&self, _: JobId) -> Option<(String, u32)> {
        None
    }

    fn elsewhere(&self, job: JobId) -> Option<Elsewhere> {
        let name = format!("/t/{:04}", job.0);
        Some(Elsewhere { name, directory: "/t".into(), apart: Arc::default() })
    }

    fn prepare(&self, _: JobId) -> Work {
        Work::Script(Box::new(fake::script()))
    }

    fn conclude(&self, _: JobId, _: u32, transcript: Transcript) -> Option<Outcome> {
        let verdict = if transcript.exit_code == Some(0) { Verdict::PASS } else { Verdict::FAIL };
        Some(Outcome::decided(verdict, ""))
    }

    fn would_fail(&self, _: JobId, _: u32, transcript: &Transcript) -> bool {
        transcript.exit_code != Some(0)
    }

    fn shown(&self, _: JobId, _: &Transcript) -> String {
        String::new()
    }

    fn run_delegated(&self, _: JobId, _: &RunScript<'_>) -> Option<Outcome> {
        None
    }
}

/// Keeps the verdicts of each job.
#[derive(Default)]
struct Kept(Mutex<BTreeMap<u32, Vec<(Verdict, bool)>>>);

impl Events for Kept {
    fn send(&self, event: Event) {
        if let Event::Finished { job, outcome, .. } = event {
            let mut kept = self.0.lock().unwrap();
            kept.entry(job.0).or_default().push((outcome.verdict, outcome.is_cached));
        }
    }
}

fn ran(code: i32) -> Option<Ran> {
    let transcript = Transcript { exit_code: Some(code), ..Transcript::default() };
    Some(Ran { transcript, elapsed: Duration::from_millis(3) })
}

fn all(jobs: &[u32], code: i32) -> Answer {
    Answer::Ran { runs: jobs.iter().map(|_| ran(code)).collect(), is_cached: false }
}

fn farm(behaviour: impl Fn(&[u32], usize) -> Vec<(u64, Answer)> + Send + Sync + 'static) -> FakeFarm {
    FakeFarm {
        behaviour: Box::new(behaviour),
        answers: Mutex::default(),
        submitted: AtomicUsize::new(0),
        falls_back: true,
        batch: 8,
        counts: Mutex::default(),
        batches: Mutex::default(),
    }
}

/// The verdicts, the counts, the number of runs here, and the batches.
struct Ended {
    verdicts: BTreeMap<u32, Vec<(Verdict, bool)>>,
    counts: RemoteCounts,
    here: usize,
    batches: Vec<(usize, bool)>,
}

/// Runs jobs whose scripts exit with this code here.
fn run(farm: FakeFarm, jobs: u32, here: i32, change: impl Fn(&mut RunSettings)) -> Ended {
    let farm = Arc::new(farm);
    let mut settings = RunSettings { farm: Some(farm.clone()), workers: 3, ..fake::settings() };
    change(&mut settings);
    let executor = FakeExecutor::of_cold_tools(vec![fake::code(here)]);
    let (source, verdicts, events, checks) =
        (Jobs(jobs), VerdictTable::default(), Kept::default(), Checks::sampled(0.0));
    let run =
        Run::new(&source, &executor, &settings, &checks, &verdicts, &events, Arc::new(Watch::default()));
    crew::work(&run, 3, |_| {});
    run.remote.as_ref().unwrap().ended();
    let counts = farm.counts.lock().unwrap().clone();
    let batches = farm.batches.lock().unwrap().clone();
    Ended { verdicts: events.0.into_inner().unwrap(), counts, here: executor.runs(Way::Warm), batches }
}

/// Checks that each job has one outcome.
fn once(ended: &Ended, jobs: u32, verdict: Verdict) {
    assert_eq!(ended.verdicts.len(), jobs as usize);
    for (job, outcomes) in &ended.verdicts {
        assert_eq!(outcomes.iter().map(|of| of.0).collect::<Vec<_>>(), [verdict], "job {job}");
    }
}

#[test]
fn what_passes_elsewhere_is_not_run_here() {
    let ended = run(farm(|jobs, _| vec![(0, all(jobs, 0))]), 100, 0, |_| {});
    once(&ended, 100, Verdict::PASS);
    // Those whose name ends with 7 are refused, and a sample may run as well.
    let here: u64 = ended.counts.here.values().sum();
    assert!(here >= 10 && ended.here as u64 == here, "{:?}", ended.counts);
    assert_eq!(ended.counts.passed + here, 100);
    assert!(ended.batches.iter().all(|(size, is_again)| *size <= 8 && !is_again));
}

#[test]
fn a_failure_is_repeated_alone_and_then_runs_here() {
    let behaviour = |jobs: &[u32], _| {
        let runs = jobs.iter().map(|job| if *job == 3 { ran(1) } else { ran(0) }).collect();
        vec![(0, Answer::Ran { runs, is_cached: false })]
    };
    let ended = run(farm(behaviour), 16, 1, |_| {});
    assert_eq!(ended.verdicts[&3], [(Verdict::FAIL, false)]);
    assert!(ended.batches.contains(&(1, true)), "{:?}", ended.batches);
    assert_eq!(ended.counts.here["it did not pass elsewhere"], 1);
}

#[test]
fn a_failure_elsewhere_that_passes_here_is_a_pass() {
    once(&run(farm(|jobs, _| vec![(0, all(jobs, 1))]), 60, 0, |_| {}), 60, Verdict::PASS);
}

#[test]
fn a_result_that_cannot_be_believed_is_none() {
    let behaviour = |jobs: &[u32], _| {
        let mut wrong = ran(0).unwrap();
        wrong.transcript.timed_out = true;
        let runs = jobs.iter().map(|job| if job % 2 == 0 { None } else { Some(wrong.clone()) }).collect();
        vec![(0, Answer::Ran { runs, is_cached: false })]
    };
    let ended = run(farm(behaviour), 6, 0, |_| {});
    once(&ended, 6, Verdict::PASS);
    assert_eq!((ended.counts.passed, ended.here), (0, 6));
}

#[test]
fn a_batch_that_is_lost_is_halved_until_the_cause_is_alone() {
    let behaviour = |jobs: &[u32], _| {
        let answer = if jobs.contains(&5) { Answer::Failed("lost".to_owned()) } else { all(jobs, 0) };
        vec![(0, answer)]
    };
    let ended = run(farm(behaviour), 32, 0, |_| {});
    once(&ended, 32, Verdict::PASS);
    assert_eq!(ended.counts.here["lost"], 1);
    // Of seven or eight jobs, three or four batches hold the bad one.
    assert!((3..=4).contains(&ended.counts.failed), "{:?}", ended.counts);
}

#[test]
fn no_answer_counts_twice() {
    // Each batch is answered twice, and an answer to a batch that does not exist comes first.
    let behaviour =
        |jobs: &[u32], _| vec![(100, all(jobs, 1)), (0, all(jobs, 0)), (0, all(jobs, 1)), (0, all(jobs, 0))];
    once(&run(farm(behaviour), 50, 0, |_| {}), 50, Verdict::PASS);
}

#[test]
fn an_answer_for_other_jobs_is_a_lost_batch() {
    let behaviour = |jobs: &[u32], _| match jobs.len() {
        1 => vec![(0, all(jobs, 0))],
        _ => vec![(0, all(&jobs[1..], 0))],
    };
    let ended = run(farm(behaviour), 20, 0, |_| {});
    once(&ended, 20, Verdict::PASS);
    assert!(ended.counts.failed > 0);
}

#[test]
fn all_runs_here_when_the_service_is_gone() {
    let behaviour = |jobs: &[u32], before| match before {
        0..2 => vec![(0, all(jobs, 0))],
        _ => vec![(0, Answer::Gone("gone".to_owned()))],
    };
    let ended = run(farm(behaviour), 80, 0, |_| {});
    once(&ended, 80, Verdict::PASS);
    assert!(ended.counts.here["gone"] > 40, "{:?}", ended.counts);
}

#[test]
fn without_fallback_the_answer_counts_and_a_fault_is_no_failure() {
    let behaviour = |jobs: &[u32], _| {
        let answer = if jobs.contains(&2) { Answer::Failed("lost".to_owned()) } else { all(jobs, 1) };
        vec![(0, answer)]
    };
    let ended = run(FakeFarm { falls_back: false, ..farm(behaviour) }, 6, 0, |_| {});
    assert_eq!(ended.verdicts[&2], [(Verdict::UNRESOLVED, false)]);
    assert_eq!(ended.verdicts[&1], [(Verdict::FAIL, false)]);
    assert_eq!(ended.here, 0);
}

#[test]
fn no_further_batches_after_max_failures() {
    let farm = FakeFarm { falls_back: false, batch: 1, ..farm(|jobs, _| vec![(0, all(jobs, 1))]) };
    let ended = run(farm, 60, 0, |settings| settings.max_failures = Some(3));
    assert_eq!(ended.verdicts.values().filter(|of| of[0].0 == Verdict::FAIL).count(), 3);
    // Two slots: at most one batch was on its way beside the third failure.
    assert!(ended.counts.batches <= 5, "{:?}", ended.counts);
}

#[test]
fn remembered_passes_are_told_apart() {
    let behaviour = |jobs: &[u32], _| {
        vec![(0, Answer::Ran { runs: jobs.iter().map(|_| ran(0)).collect(), is_cached: true })]
    };
    let ended = run(farm(behaviour), 6, 0, |_| {});
    assert_eq!(ended.counts.cached, ended.counts.passed);
    let cached = ended.verdicts.values().filter(|of| of[0] == (Verdict::PASS, true)).count();
    assert_eq!(cached as u64, ended.counts.cached);
}
