//! Runs a measurement: check, warm-ups, then rounds in which each candidate runs once.

use std::time::{Duration, Instant};

use super::{Candidate, Failure, Halt, Phase, Sample, order};

/// The length of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A number of rounds.
    Rounds(usize),
    /// As many rounds as fit into this time.
    Time(Duration),
}

/// Least rounds and time if no amount is given.
const ROUNDS_MIN: usize = 10;
const TIME_MIN: Duration = Duration::from_secs(5);

/// The plan of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Plan {
    /// The amount; without it, at least ten rounds and five seconds.
    pub amount: Option<Amount>,
    /// Untimed runs of each candidate after the check.
    pub warmups: usize,
}

/// The progress of a measurement, passed to the observer after each run.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Time since the first timed run began.
    pub elapsed: Duration,
    /// Complete rounds.
    pub rounds: usize,
    /// Estimated number of all rounds.
    pub expected_rounds: usize,
    /// The runs so far, by candidate.
    pub runs: &'a [Runs],
}

/// Watches a measurement. It is called between runs; its time counts as hotstart's own cost.
pub trait Observer {
    /// Called before an untimed step.
    fn preparing(&mut self, _name: &str, _phase: Phase) {}
    /// Called after a timed run.
    fn ran(&mut self, _progress: &Progress<'_>) {}
}

/// An observer that does nothing.
pub struct Silent;

impl Observer for Silent {}

/// All timed runs of one candidate, in order; the one at index `n` belongs to round `n`.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The candidate's name.
    pub name: String,
    /// The costs of its runs.
    pub samples: Vec<Sample>,
    /// Position of each run among all timed runs of the session.
    pub places: Vec<usize>,
}

/// The measured runs, complete or not.
#[derive(Debug)]
pub struct Series {
    /// The runs of each candidate.
    pub runs: Vec<Runs>,
    /// The cost of each run beyond the command itself and its hooks, in seconds.
    pub own_cost: Vec<f64>,
    /// The reason why it stopped early.
    pub failure: Option<Failure>,
    /// Time from the first timed run to the last.
    pub elapsed: Duration,
    /// Whether the outputs were compared and found equal.
    pub same_output: bool,
}

/// Measures the candidates interleaved. A failure ends the measurement; the series contains it, and all runs before it.
pub fn measure(
    candidates: &mut [Box<dyn Candidate + '_>],
    plan: Plan,
    halt: &Halt,
    observer: &mut dyn Observer,
) -> Series {
    let runs = candidates.iter().map(|c| Runs { name: c.name().to_owned(), ..Runs::default() }).collect();
    let mut series =
        Series { runs, own_cost: Vec::new(), failure: None, elapsed: Duration::ZERO, same_output: false };
    let mut session = Session { candidates, plan, halt, observer };
    let begun = session.prepare(&mut series).map(|()| Instant::now());
    let result = begun.and_then(|begun| session.rounds(begun, &mut series));
    series.failure = result.err();
    series
}

struct Session<'a, 'c> {
    candidates: &'a mut [Box<dyn Candidate + 'c>],
    plan: Plan,
    halt: &'a Halt,
    observer: &'a mut dyn Observer,
}

impl Session<'_, '_> {
    /// Runs the check and the warm-ups.
    fn prepare(&mut self, series: &mut Series) -> Result<(), Failure> {
        let mut reference = None;
        for candidate in self.candidates.iter_mut() {
            self.observer.preparing(candidate.name(), Phase::Check);
            candidate.prepare()?;
            let digest = candidate.check()?;
            candidate.conclude()?;
            let Some(digest) = digest else { continue };
            let (first, first_name) =
                reference.get_or_insert_with(|| (digest.clone(), candidate.name().to_owned()));
            if let Some(difference) = first.difference(&digest) {
                let (reference, other) = (first_name.clone(), candidate.name().to_owned());
                return Err(Failure::Differ { reference, other, difference });
            }
        }
        series.same_output = reference.is_some();
        for number in 0..self.plan.warmups {
            for index in order::order(number, self.candidates.len()) {
                let phase = Phase::Warmup(number + 1);
                self.observer.preparing(self.candidates[index].name(), phase);
                self.run(index, phase)?;
            }
        }
        Ok(())
    }

    fn rounds(&mut self, begun: Instant, series: &mut Series) -> Result<(), Failure> {
        let mut round = 0;
        while round < self.expected(round, begun.elapsed()) {
            for index in order::order(round, self.candidates.len()) {
                let before = Instant::now();
                let (sample, hooks) = self.run(index, Phase::Run(round + 1))?;
                let runs = &mut series.runs[index];
                runs.samples.push(sample);
                runs.places.push(series.own_cost.len());
                series.elapsed = begun.elapsed();
                let (elapsed, expected_rounds) =
                    (series.elapsed, self.expected(round.max(1), series.elapsed));
                self.observer.ran(&Progress { elapsed, rounds: round, expected_rounds, runs: &series.runs });
                let other = sample.wall + hooks.as_secs_f64();
                series.own_cost.push((before.elapsed().as_secs_f64() - other).max(0.0));
            }
            round += 1;
        }
        Ok(())
    }

    /// Runs one candidate. Returns its sample and the time that its hooks took.
    fn run(&mut self, index: usize, phase: Phase) -> Result<(Sample, Duration), Failure> {
        if self.halt.is_interrupted() {
            return Err(Failure::Interrupted);
        }
        let candidate = &mut self.candidates[index];
        let begun = Instant::now();
        candidate.prepare()?;
        let prepared = begun.elapsed();
        let sample = candidate.run(phase)?;
        let ended = Instant::now();
        candidate.conclude()?;
        Ok((sample, prepared + ended.elapsed()))
    }

    /// Estimates the number of all rounds from the time of those so far.
    fn expected(&self, rounds: usize, elapsed: Duration) -> usize {
        let fitting = |time: Duration| {
            let each = elapsed.as_secs_f64() / rounds.max(1) as f64;
            if rounds == 0 { 1 } else { (time.as_secs_f64() / each.max(1e-9)).round().max(1.0) as usize }
        };
        match self.plan.amount {
            Some(Amount::Rounds(rounds)) => rounds,
            Some(Amount::Time(time)) if elapsed < time => fitting(time).max(1),
            Some(Amount::Time(_)) => rounds.max(1),
            None => fitting(TIME_MIN).max(ROUNDS_MIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::FromFn;
    use std::cell::RefCell;

    fn sample(wall: f64) -> Sample {
        Sample { wall, ..Sample::default() }
    }

    #[test]
    fn runs_by_turns_and_keeps_what_was_measured_before_a_failure() {
        let log = RefCell::new(String::new());
        let one = |name: &'static str, fails_at: usize| {
            let log = &log;
            Box::new(FromFn::new(name, move |phase| {
                log.borrow_mut().push_str(name);
                match phase {
                    Phase::Run(round) if round == fails_at => Err(Failure::Other("broken".into())),
                    _ => Ok(sample(1.0)),
                }
            })) as Box<dyn Candidate>
        };
        let plan = Plan { amount: Some(Amount::Rounds(9)), warmups: 1 };
        let series = measure(&mut [one("a", 99), one("b", 3)], plan, &Halt::new(), &mut Silent);
        assert_eq!(log.into_inner(), "ababab".to_owned() + "baab");
        assert_eq!(series.failure.unwrap().to_string(), "broken");
        assert_eq!([series.runs[0].samples.len(), series.runs[1].samples.len()], [3, 2]);
        assert_eq!(series.runs[1].places, [1, 2]);
    }

    #[test]
    fn an_interrupt_ends_it_before_the_next_run() {
        let halt = Halt::new();
        let mut rounds = 0;
        let run = |phase| {
            if phase == Phase::Run(2) {
                halt.interrupt();
            }
            rounds += 1;
            Ok(sample(0.1))
        };
        let plan = Plan { amount: Some(Amount::Rounds(9)), warmups: 0 };
        let series = measure(&mut [Box::new(FromFn::new("a", run))], plan, &halt, &mut Silent);
        assert!(matches!(series.failure, Some(Failure::Interrupted)));
        assert_eq!((series.runs[0].samples.len(), rounds), (2, 3));
    }

    #[test]
    fn time_left_decides_how_many_rounds() {
        let plan = Plan { amount: Some(Amount::Time(Duration::from_secs(10))), warmups: 0 };
        let session = Session { candidates: &mut [], plan, halt: &Halt::new(), observer: &mut Silent };
        assert_eq!(session.expected(0, Duration::ZERO), 1);
        assert_eq!(session.expected(2, Duration::from_secs(4)), 5);
        assert_eq!(session.expected(5, Duration::from_secs(11)), 5);
        let session = Session { plan: Plan::default(), ..session };
        assert_eq!(session.expected(3, Duration::from_secs(30)), 10);
    }
}
