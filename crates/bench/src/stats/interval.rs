//! The confidence interval of a difference between paired values.
//!
//! What is estimated is the 20 % trimmed mean of the pairs' differences (of logarithms, where a ratio is wanted):
//! nearly as sharp as the mean on well-behaved noise, and unmoved by the few runs that an interrupt made slow. Its
//! interval is a symmetric studentized bootstrap (Tukey and McLaughlin's error by Winsorized variance; Wilcox,
//! *Introduction to Robust Estimation*, 4.4.3), which keeps its promise from about ten pairs on, where plain
//! percentiles of a median are too narrow. bench/ab-calibration counts how often it is kept.

use serde::Serialize;

use super::random::Random;
use super::summary::{mean, quantile, sorted};

/// Pairs below which no interval is given.
pub const PAIRS_MIN: usize = 6;
/// Share of the pairs left out at either end.
const TRIM: f64 = 0.2;

/// An estimate and where the truth lies with the confidence asked for.
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
    /// Whether `value` lies within.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Applies a rising function to all three.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Interval {
        Interval { estimate: f(self.estimate), low: f(self.low), high: f(self.high) }
    }
}

/// Trimmed mean of the differences with its interval; `None` below [`PAIRS_MIN`] pairs.
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
        // A resample without any spread says that the true one may be far off: it counts as infinitely far.
        distances.push(if its_error > 0.0 { (middle - estimate).abs() / its_error } else { f64::MAX });
    }
    distances.sort_unstable_by(f64::total_cmp);
    let reach = error * quantile(&distances, confidence).min(1e6);
    Some(Interval { estimate, low: estimate - reach, high: estimate + reach })
}

/// Fewer for many pairs: the time is bounded, and with so many pairs the quantile is steady anyway.
fn resamples(count: usize) -> usize {
    (4_000_000 / count).clamp(2000, 10_000)
}

/// Where the middle of the values has no spread at all (counts, mostly), the interval is as wide as the values.
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

/// Trimmed mean of sorted values and its standard error.
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

    /// Share of trials whose interval holds the truth, with this noise.
    fn coverage(pairs: usize, trials: u64, noise: impl Fn(&mut Random) -> f64) -> f64 {
        let mut random = Random::new(11);
        let hits = (0..trials).filter(|trial| {
            let differences: Vec<f64> = (0..pairs).map(|_| 0.02 + noise(&mut random)).collect();
            interval(&differences, 0.95, *trial).unwrap().contains(0.02)
        });
        hits.count() as f64 / trials as f64
    }

    #[test]
    fn holds_the_truth_as_often_as_promised() {
        for pairs in [10, 30] {
            let normal = coverage(pairs, 200, |r| 0.01 * r.normal());
            assert!(normal > 0.92, "{pairs} pairs with normal noise: {normal}");
            let spikes = |r: &mut Random| 0.01 * r.normal() * if r.below(10) == 0 { 20.0 } else { 1.0 };
            let heavy = coverage(pairs, 200, spikes);
            assert!(heavy > 0.92, "{pairs} pairs with spikes: {heavy}");
        }
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
