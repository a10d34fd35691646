//! The confidence interval of a difference between paired values.
//!
//! The estimate is the 20 % trimmed mean of the pairs' differences (of logarithms, if a ratio is wanted). It is nearly as
//! sharp as the mean on well-behaved noise, and the few runs that an interrupt made slow do not move it. The interval is a
//! symmetric studentized bootstrap (Tukey and McLaughlin's error by Winsorized variance; Wilcox, *Introduction to Robust
//! Estimation*, 4.4.3). Its coverage is right from about ten pairs on, where plain percentiles of a median are too narrow.
//!
//! Resampling assumes independent pairs. If slow pairs follow slow pairs, the interval would be too narrow. So it is widened
//! by the correlation of neighbours, as that of a first-order autoregression. By chance this also widens some intervals of
//! independent pairs, a few percent of their width on average; that error is on the safe side. bench/ab-calibration counts
//! how often intervals contain the truth, on real processes.

use serde::Serialize;

use super::random::Random;
use super::summary::{mean, quantile, sorted};

/// Fewest pairs for an interval.
pub const PAIRS_MIN: usize = 6;
/// Share of the pairs left out at each end.
const TRIM: f64 = 0.2;
/// Fewest pairs for which the correlation of neighbours can be told from chance.
const NEIGHBOURS_MIN: f64 = 12.0;

/// An estimate, and the range that contains the truth with the requested confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Returns whether the interval contains `value`.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Applies a rising function to all three values.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Interval {
        Interval { estimate: f(self.estimate), low: f(self.low), high: f(self.high) }
    }
}

/// Returns the trimmed mean of the differences with its interval; `None` below [`PAIRS_MIN`] pairs.
pub fn interval(differences: &[f64], confidence: f64, seed: u64) -> Option<Interval> {
    let count = differences.len();
    if count < PAIRS_MIN {
        return None;
    }
    let (estimate, error) = trimmed(&sorted(differences));
    if error == 0.0 {
        return Some(flat(differences, estimate));
    }
    let mut random = Random::new(seed ^ count as u64);
    let mut resample = vec![0.0; count];
    let mut distances = Vec::with_capacity(resamples(count));
    for _ in 0..resamples(count) {
        resample.fill_with(|| differences[random.below(count)]);
        resample.sort_unstable_by(f64::total_cmp);
        let (middle, its_error) = trimmed(&resample);
        // A resample without any spread says that the true value may be far off: its distance counts as infinite.
        distances.push(if its_error > 0.0 { (middle - estimate).abs() / its_error } else { f64::MAX });
    }
    distances.sort_unstable_by(f64::total_cmp);
    let reach = error * quantile(&distances, confidence).min(1e6) * widening(differences);
    Some(Interval { estimate, low: estimate - reach, high: estimate + reach })
}

/// Returns the factor by which correlation of neighbours widens the interval; 1 without correlation.
fn widening(differences: &[f64]) -> f64 {
    let count = differences.len() as f64;
    let sorted = sorted(differences);
    // A single far value would hide the correlation of the others.
    let (low, high) = (quantile(&sorted, TRIM / 2.0), quantile(&sorted, 1.0 - TRIM / 2.0));
    let values: Vec<f64> = differences.iter().map(|d| d.clamp(low, high)).collect();
    let middle = mean(&values);
    let squares: f64 = values.iter().map(|v| (v - middle).powi(2)).sum();
    let neighbours: f64 = values.windows(2).map(|pair| (pair[0] - middle) * (pair[1] - middle)).sum();
    if squares == 0.0 || count < NEIGHBOURS_MIN {
        return 1.0;
    }
    // The estimate is too low by (1 + 4 r) / n (Kendall).
    let correlation = ((neighbours / squares + 1.0 / count) / (1.0 - 4.0 / count)).clamp(0.0, 0.9);
    ((1.0 + correlation) / (1.0 - correlation)).sqrt()
}

/// Returns fewer resamples for many pairs, to bound the time. With many pairs the quantile is steady anyway.
fn resamples(count: usize) -> usize {
    (4_000_000 / count).clamp(2000, 10_000)
}

/// Returns the interval for values whose middle has no spread at all (mostly counts): it is as wide as the values.
fn flat(differences: &[f64], estimate: f64) -> Interval {
    let all_equal = differences.iter().all(|d| *d == differences[0]);
    if all_equal {
        return Interval { estimate, low: estimate, high: estimate };
    }
    let sorted = sorted(differences);
    Interval {
        estimate,
        low: quantile(&sorted, 0.05).min(estimate),
        high: quantile(&sorted, 0.95).max(estimate),
    }
}

/// Returns the trimmed mean of sorted values and its standard error.
fn trimmed(sorted: &[f64]) -> (f64, f64) {
    let count = sorted.len();
    let cut = (count as f64 * TRIM) as usize;
    let kept = &sorted[cut..count - cut];
    let (low, high) = (kept[0], kept[kept.len() - 1]);
    let winsorized_mean = (kept.iter().sum::<f64>() + cut as f64 * (low + high)) / count as f64;
    let square = |v: f64| (v - winsorized_mean).powi(2);
    let squares: f64 =
        kept.iter().map(|v| square(*v)).sum::<f64>() + cut as f64 * (square(low) + square(high));
    let deviation = (squares / (count - 1) as f64).sqrt();
    let share = kept.len() as f64 / count as f64;
    (mean(kept), deviation / (share * (count as f64).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the noise of the n-th run, as a share. Its state is kept from run to run.
    type Noise = fn(&mut Random, usize, &mut f64) -> f64;

    /// Makes 100 comparisons of 100 with 102 ms, interleaved. Returns how many intervals contain the truth, and how many
    /// exclude equality. The first is also how often equal commands are found equal: intervals move with the values.
    fn hundred(pairs: usize, noise: Noise) -> (usize, usize) {
        let mut random = Random::new(11);
        let (mut holds, mut clear) = (0, 0);
        for trial in 0..100 {
            let (mut state, mut place) = (0.0, 0);
            let logarithms: Vec<f64> = (0..pairs)
                .map(|round| {
                    let mut times = [0.100, 0.102];
                    for who in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                        times[who] *= 1.0 + noise(&mut random, place, &mut state);
                        place += 1;
                    }
                    (times[1] / times[0]).ln()
                })
                .collect();
            let found = interval(&logarithms, 0.95, trial).unwrap();
            holds += usize::from(found.contains(1.02f64.ln()));
            clear += usize::from(found.low > 0.0);
        }
        (holds, clear)
    }

    #[test]
    fn finds_two_percent_and_holds_the_truth_as_often_as_promised() {
        let models: [(&str, Noise); 6] = [
            ("normal", |r, _, _| 0.01 * r.normal()),
            ("spikes", |r, _, _| 0.01 * r.normal() * if r.below(10) == 0 { 10.0 } else { 1.0 }),
            ("skewed", |r, _, _| 0.01 * (0.8 * r.normal()).exp()),
            ("two levels", |r, _, _| 0.005 * r.normal() + if r.below(4) == 0 { 0.02 } else { 0.0 }),
            ("slowly slower", |r, place, _| 0.01 * r.normal() + 0.003 * place as f64),
            ("waves over several runs", |r, _, state| {
                *state = 0.8 * *state + 0.006 * r.normal();
                *state
            }),
        ];
        for (name, noise) in models {
            let (holds, clear) = hundred(30, noise);
            assert!(
                holds >= 93 && clear >= 93,
                "{name}: {holds} hold the truth, {clear} find the difference"
            );
        }
    }

    #[test]
    fn ten_pairs_hold_the_truth_too() {
        let (holds, _) = hundred(10, |r, _, _| 0.01 * r.normal());
        assert!(holds >= 93, "{holds}");
    }

    #[test]
    fn alike_neighbours_widen_and_independent_ones_hardly() {
        let mut random = Random::new(3);
        let independent: Vec<f64> = (0..200).map(|_| random.normal()).collect();
        assert!(widening(&independent) < 1.2, "{}", widening(&independent));
        let mut state = 0.0;
        let waves: Vec<f64> = (0..200)
            .map(|_| {
                state = 0.6 * state + random.normal();
                state
            })
            .collect();
        // The root of (1 + 0.6) / (1 - 0.6).
        assert!((1.6..2.6).contains(&widening(&waves)), "{}", widening(&waves));
        assert_eq!((widening(&waves[..11]), widening(&[1.0; 20])), (1.0, 1.0));
    }

    #[test]
    fn is_narrow_enough_to_find_two_percent() {
        let mut random = Random::new(5);
        let differences: Vec<f64> = (0..30).map(|_| 0.02 + 0.01 * random.normal()).collect();
        let found = interval(&differences, 0.95, 1).unwrap();
        assert!(found.low > 0.0 && found.high < 0.04, "{found:?}");
    }

    #[test]
    fn equal_seeds_give_equal_intervals_and_few_pairs_none() {
        let values = [0.1, 0.2, 0.15, 0.12, 0.3, 0.22, 0.18];
        assert_eq!(interval(&values, 0.95, 1), interval(&values, 0.95, 1));
        assert_eq!(interval(&values[..5], 0.95, 1), None);
    }

    #[test]
    fn equal_values_have_an_interval_of_no_width() {
        let found = interval(&[0.5; 12], 0.95, 1).unwrap();
        assert_eq!((found.low, found.estimate, found.high), (0.5, 0.5, 0.5));
        let mut mostly = [0.0; 20];
        mostly[19] = 3.0;
        assert!(interval(&mostly, 0.95, 1).unwrap().contains(0.0));
    }
}
