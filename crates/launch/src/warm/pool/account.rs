//! CPU time of a tool's starts: decides whether warm starts of it pay, and how many starts must pay for a zygote.
//!
//! The two ways are compared by chance: now and then a start that could be warm is cold. Commands differ by orders of
//! magnitude, so logarithms are compared, by Welch's test. A tool whose warm starts certainly take more is cold from then on.
//! A tool that starts others is judged by these, since a cold driver would have its stages cold, too.

use std::time::Duration;

/// Warm starts before the first comparison. A build that starts a tool less often saves or loses little.
const FIRST: u64 = 8;
/// Cold starts without which nothing is decided.
const COLD_MIN: u64 = 3;
/// Warm starts between two comparisons while nothing is certain: at least so many, or this part of all.
const APART: u64 = 4;
const PART: u64 = 4;
/// Where warm starts take at most this part, the next comparison is due after so many times as many starts; after twice as many if
/// they are known to gain.
const CLEAR: f64 = 2.0 / 3.0;
const AFTER_CLEAR: u64 = 4;
/// Standard errors by which the means must differ.
const CERTAIN: f64 = 3.0;
/// Least relative spread of CPU times, since a few may be equal by chance.
const SPREAD: f64 = 0.02;
/// Largest factor on the cold starts before a zygote.
const PRICE_MOST: u32 = 64;
/// Longest time for which a tool rests, in starts, after one of its zygotes has failed.
const REST_MOST: u32 = 128;

/// CPU times of one kind of start.
#[derive(Clone, Debug, Default)]
struct Sample {
    runs: u64,
    /// Mean of the logarithms, and the sum of squared differences from it.
    mean: f64,
    squares: f64,
}

impl Sample {
    fn add(&mut self, spent: Duration) {
        let log = spent.max(Duration::from_micros(1)).as_secs_f64().ln();
        self.runs += 1;
        let from = log - self.mean;
        self.mean += from / self.runs as f64;
        self.squares += from * (log - self.mean);
    }

    fn variance(&self) -> f64 {
        let others = self.runs.saturating_sub(1).max(1) as f64;
        (self.squares / others).max(SPREAD * SPREAD)
    }

    fn typical(&self) -> Duration {
        if self.runs == 0 { Duration::ZERO } else { Duration::from_secs_f64(self.mean.exp()) }
    }
}

/// The result of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Unknown,
    Pays,
    /// Warm starts take more CPU time than cold ones.
    Loses,
}

/// CPU times of one tool, for reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Cold starts that were measured, and the geometric mean of their CPU times.
    pub cold: (u64, Duration),
    /// The same for warm starts.
    pub warm: (u64, Duration),
    /// Time that only warm starts take: of zygotes, observations and resets.
    pub overhead: Duration,
    /// The starts before `main` that forks and persistent processes did not make.
    pub spared: Duration,
}

impl CpuTime {
    /// Returns the seconds that warm starts have saved. Negative if they have not yet paid for their zygotes.
    pub fn saved(&self) -> f64 {
        self.spared.as_secs_f64() - self.overhead.as_secs_f64()
    }
}

/// The account of one tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    cold: Sample,
    warm: Sample,
    /// Number of warm starts, measured or not.
    starts: u32,
    /// Sum of the zygotes' own starts, up to `main`, and their number.
    zygotes: (Duration, u32),
    overhead: Duration,
    /// Number of warm starts at which the next comparison is due, if there was one.
    next: Option<u64>,
    starts_others: bool,
    /// Number of zygotes and observations in a row that began before the earlier ones were paid for.
    unpaid: u32,
}

impl Account {
    /// Records a zygote that has stopped before `main` after this time.
    pub(crate) fn made(&mut self, spent: Duration) {
        self.zygotes.0 += spent;
        self.zygotes.1 += 1;
        self.learned(spent);
    }

    /// Records an observation, or another attempt that must be paid for.
    pub(crate) fn learned(&mut self, spent: Duration) {
        self.overhead += spent;
        let in_debt = self.times().saved() < 0.0;
        self.unpaid = if in_debt { self.unpaid + 1 } else { 0 };
    }

    /// Records time that a cold start would not have taken.
    pub(crate) fn extra(&mut self, spent: Duration) {
        self.overhead += spent;
    }

    /// Records a warm start. `spent` is the time of a typical run.
    pub(crate) fn ran_warm(&mut self, spent: Option<Duration>) {
        self.starts += 1;
        spent.into_iter().for_each(|spent| self.warm.add(spent));
    }

    /// Records a start that was cold for the comparison.
    pub(crate) fn ran_cold(&mut self, spent: Duration) {
        self.cold.add(spent);
        let runs = self.warm.runs;
        if self.warm.mean - self.cold.mean < CLEAR.ln() {
            self.next = Some(AFTER_CLEAR * runs);
        } else if self.verdict() == Verdict::Pays {
            self.next = Some(2 * runs);
        }
    }

    /// Records that runs of the tool start other programs.
    pub(crate) fn starts_others(&mut self) {
        self.starts_others = true;
    }

    /// Returns whether a start is cold now, for the comparison.
    pub(crate) fn compares_next(&mut self) -> bool {
        let runs = self.warm.runs;
        let is_due = !self.starts_others && runs >= self.next.unwrap_or(FIRST);
        if is_due {
            self.next = Some(runs + (runs / PART).max(APART));
        }
        is_due
    }

    /// Compares the two kinds of start.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.starts_others || self.cold.runs < COLD_MIN || self.warm.runs < FIRST {
            return Verdict::Unknown;
        }
        // The spread of a few runs may be small by chance.
        let variance = self.cold.variance().max(self.warm.variance());
        let error = (variance / self.cold.runs as f64 + variance / self.warm.runs as f64).sqrt();
        match (self.warm.mean - self.cold.mean) / error {
            more if more > CERTAIN => Verdict::Loses,
            more if more < -CERTAIN => Verdict::Pays,
            _ => Verdict::Unknown,
        }
    }

    /// Returns the factor on the cold starts before the next zygote or observation. It doubles with each that begins before the
    /// earlier ones were paid for.
    pub(crate) fn price(&self) -> u32 {
        1_u32.checked_shl(self.unpaid.saturating_sub(1)).unwrap_or(PRICE_MOST).min(PRICE_MOST)
    }

    pub(crate) fn times(&self) -> CpuTime {
        let each = self.zygotes.0.checked_div(self.zygotes.1).unwrap_or_default();
        CpuTime {
            cold: (self.cold.runs, self.cold.typical()),
            warm: (self.warm.runs, self.warm.typical()),
            overhead: self.overhead,
            spared: each * self.starts,
        }
    }
}

/// Lets a tool rest after one of its zygotes has failed, for longer each time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rest {
    in_row: u32,
    left: u32,
}

impl Rest {
    /// Records a failure. Returns the number of failures in a row. After the first one, the next start tries again.
    pub(crate) fn failed(&mut self) -> u32 {
        self.left = 1_u32.checked_shl(self.in_row).map_or(REST_MOST, |starts| starts / 2).min(REST_MOST);
        self.in_row += 1;
        self.in_row
    }

    pub(crate) fn succeeded(&mut self) {
        *self = Rest::default();
    }

    /// Counts a start that needs a new zygote. Returns whether it may make one.
    pub(crate) fn is_over(&mut self) -> bool {
        let is_over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Runs 200 starts of `each` command in turn, with this factor and this much more on warm starts. Returns the verdict, and
    /// the numbers of warm and cold starts.
    fn compare(each: &[u32], factor: f64, more: Duration) -> (Verdict, u64, u64) {
        let mut account = Account::default();
        for number in 0..200 {
            let cold = MS * each[number % each.len()];
            if account.verdict() == Verdict::Loses {
                break;
            } else if account.compares_next() {
                account.ran_cold(cold);
            } else {
                account.ran_warm(Some(cold.mul_f64(factor) + more));
            }
        }
        (account.verdict(), account.warm.runs, account.cold.runs)
    }

    #[test]
    fn a_tool_that_loses_is_left_cold_soon() {
        let (verdict, warm, cold) = compare(&[10, 11, 12], 1.3, Duration::ZERO);
        assert_eq!((verdict, cold), (Verdict::Loses, 3));
        assert!(warm < 20, "{warm}");
        assert_eq!(compare(&[2], 1.0, MS).0, Verdict::Loses);
    }

    #[test]
    fn a_tool_that_gains_is_compared_ever_less_often() {
        let (verdict, warm, cold) = compare(&[10, 11, 12], 0.5, Duration::ZERO);
        assert_eq!(verdict, Verdict::Pays);
        assert!(warm > 190 && cold == 3, "{warm} {cold}");
        let (verdict, warm, cold) = compare(&[10, 11, 12], 0.8, Duration::ZERO);
        assert_eq!(verdict, Verdict::Pays);
        assert!(warm > 185 && (4..=12).contains(&cold), "{warm} {cold}");
    }

    #[test]
    fn commands_that_differ_widely_prove_nothing() {
        let (verdict, ..) = compare(&[5, 900, 40, 3000, 12, 7, 150], 1.02, Duration::ZERO);
        assert_eq!(verdict, Verdict::Unknown);
    }

    #[test]
    fn a_tool_that_starts_others_is_not_judged() {
        let mut account = Account::default();
        (0..100).for_each(|_| account.ran_warm(Some(9 * MS)));
        (0..9).for_each(|_| account.ran_cold(MS));
        assert_eq!(account.verdict(), Verdict::Loses);
        account.starts_others();
        assert!(account.verdict() == Verdict::Unknown && !account.compares_next());
    }

    #[test]
    fn zygotes_that_are_not_paid_for_raise_the_price() {
        let mut account = Account::default();
        let mut prices = Vec::new();
        for _ in 0..9 {
            account.made(10 * MS);
            prices.push(account.price());
        }
        assert_eq!(prices, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        // One more observation, as dear as fifty starts, is paid for by as many.
        account.learned(500 * MS);
        (0..70).for_each(|_| account.ran_warm(None));
        assert!(account.times().saved() > 0.0, "{:?}", account.times());
        account.made(10 * MS);
        assert_eq!(account.price(), 1);
    }

    #[test]
    fn time_saved_is_that_of_starts_without_the_overhead() {
        let mut account = Account::default();
        account.made(10 * MS);
        assert_eq!(account.times().saved(), -0.01);
        (0..3).for_each(|_| account.ran_warm(None));
        account.extra(5 * MS);
        assert_eq!(account.times().saved(), 0.015);
    }

    #[test]
    fn a_tool_rests_for_longer_after_each_failure() {
        let mut rest = Rest::default();
        let mut pause = || {
            rest.failed();
            std::iter::repeat_with(|| rest.is_over()).take_while(|is_over| !is_over).count()
        };
        let pauses: Vec<usize> = (0..10).map(|_| pause()).collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 64, 128, 128]);
        rest.succeeded();
        assert!(rest.failed() == 1 && rest.is_over());
    }
}
