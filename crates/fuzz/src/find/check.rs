//! Decides whether a sequence in a mode differs from its cold runs, and whether the difference means anything.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use crate::generate::Sequence;
use crate::run::{Again, Mode, Observed, Outcome, Program, Session, Sight, TIMED_OUT, Tally};

/// Cold runs that must agree before a difference counts.
const COLD_RUNS: usize = 6;
/// Warm runs that show how often a difference occurs.
const WARM_RUNS: usize = 4;

/// One run that differs.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The mode.
    pub mode: Mode,
    /// The run's index in the sequence. `None` if an audit found the difference.
    pub run: Option<usize>,
    /// The differences.
    pub sights: Vec<Sight>,
    /// The number of warm runs that show it, and the number of warm runs in all.
    pub shown: (usize, usize),
}

/// The result for a sequence.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// No mode differs.
    Same,
    /// Two cold runs differ in this run, so nothing follows.
    Nondeterministic(usize),
    /// A warm run differs from all cold ones.
    Differs(Box<Difference>),
}

/// Returns the first difference between the cold outcome and another one.
pub fn compare(cold: &Outcome, warm: &Outcome, mode: Mode) -> Option<Difference> {
    let shown = (1, 1);
    for (run, (expected, found)) in cold.observed.iter().zip(&warm.observed).enumerate() {
        let sights = expected.differences(found);
        if !sights.is_empty() {
            return Some(Difference { mode, run: Some(run), sights, shown });
        }
    }
    let audit = warm.audit.clone()?;
    let sights = vec![("an audit".to_owned(), "no difference".to_owned(), audit)];
    Some(Difference { mode, run: None, sights, shown })
}

/// Runs `sequence` in a mode, for a comparison with `cold`. If it differs, doubtful runs are repeated cold, as
/// `hotstart` would, until it no longer differs or no run is doubtful.
pub fn run_against(
    session: &Session,
    sequence: &Sequence,
    program: &Program,
    mode: Mode,
    cold: &Outcome,
) -> io::Result<Outcome> {
    let mut repeated = BTreeMap::new();
    loop {
        let outcome = session.run_with_repeats(sequence, program, mode, &repeated)?;
        if outcome.doubtful.is_empty() || compare(cold, &outcome, mode).is_none() {
            return Ok(outcome);
        }
        // One that has hung would do so again.
        let again =
            |&run: &usize| if outcome.observed[run].timed_out { Again::Cold } else { Again::WarmThenCold };
        repeated.extend(outcome.doubtful.iter().map(|run| (*run, again(run))));
    }
}

/// Runs `sequence` cold and in each of `modes`. An error is one of the harness.
pub fn check(
    session: &Session,
    sequence: &Sequence,
    program: &Program,
    modes: &[Mode],
    tally: &mut Tally,
) -> io::Result<Verdict> {
    let mut run = |mode, cold: Option<&Outcome>| {
        let outcome = match cold {
            Some(cold) => run_against(session, sequence, program, mode, cold)?,
            None => session.run(sequence, program, mode)?,
        };
        tally.add(mode, &outcome);
        io::Result::Ok(outcome)
    };
    let cold = run(Mode::Cold, None)?;
    // A cold run beyond the time limit says nothing about warm ones: the machine is busy.
    if let Some(at) = cold.observed.iter().position(|run| run.timed_out) {
        return Ok(Verdict::Nondeterministic(at));
    }
    for mode in modes {
        let warm = run(*mode, Some(&cold))?;
        let Some(mut difference) = compare(&cold, &warm, *mode) else { continue };
        for _ in 1..COLD_RUNS {
            if let Some(at) = first_unequal(&cold.observed, &run(Mode::Cold, None)?.observed) {
                return Ok(Verdict::Nondeterministic(at));
            }
        }
        for _ in 1..WARM_RUNS {
            let again = compare(&cold, &run(*mode, Some(&cold))?, *mode);
            difference.shown.0 += usize::from(again.is_some());
            difference.shown.1 += 1;
            // Another hang would take long and add nothing.
            if difference.hangs() && again.is_some() {
                break;
            }
        }
        // A hang that occurs only once is due to a busy machine.
        if let (true, (1, _), Some(at)) = (difference.hangs(), difference.shown, difference.run) {
            return Ok(Verdict::Nondeterministic(at));
        }
        return Ok(Verdict::Differs(Box::new(difference)));
    }
    Ok(Verdict::Same)
}

impl Difference {
    /// Whether a run exceeded the time limit.
    pub fn hangs(&self) -> bool {
        self.sights.iter().any(|(what, ..)| what == TIMED_OUT)
    }
}

/// Returns the first run in which two cold outcomes differ.
fn first_unequal(first: &[Observed], second: &[Observed]) -> Option<usize> {
    first.iter().zip(second).position(|(a, b)| a != b)
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, of) = self.shown;
        match self.run {
            Some(run) => writeln!(f, "{}: run {run} differs ({shown} of {of} times)", self.mode.name())?,
            None => writeln!(f, "{}: an audit fails ({shown} of {of} times)", self.mode.name())?,
        }
        for (what, cold, warm) in &self.sights {
            let (cold, warm) = only_different(cold, warm);
            writeln!(f, "  {what}\n    cold: {}", cold.join("\n          "))?;
            writeln!(f, "    {}: {}", self.mode.name(), warm.join("\n          "))?;
        }
        Ok(())
    }
}

/// Returns the lines that differ between two texts at the same places, at most six of each.
fn only_different<'t>(cold: &'t str, warm: &'t str) -> (Vec<&'t str>, Vec<&'t str>) {
    let (cold, warm): (Vec<_>, Vec<_>) = (cold.lines().collect(), warm.lines().collect());
    let unequal = |place: &usize| cold.get(*place) != warm.get(*place);
    let places: Vec<_> = (0..cold.len().max(warm.len())).filter(unequal).take(6).collect();
    let of =
        |lines: &[&'t str]| places.iter().map(|place| *lines.get(*place).unwrap_or(&"(no line)")).collect();
    (of(&cold), of(&warm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_differ_are_shown() {
        let (cold, warm) = only_different("a\nb\nc", "a\nx");
        assert_eq!((cold, warm), (vec!["b", "c"], vec!["x", "(no line)"]));
    }
}
