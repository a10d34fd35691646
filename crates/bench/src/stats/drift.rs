//! Tests whether values rise or fall over a run: rank correlation with their order.
//!
//! Ranks are used so that one slow run is no drift. For the same reason the slope is the median of all slopes between two
//! values (Theil and Sen), thinned for long runs.

use serde::Serialize;

/// A trend over a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// Spearman's rank correlation with the order.
    pub correlation: f64,
    /// Change from the first to the last value by the median slope, as a share of the median.
    pub change: f64,
    /// Whether chance alone would do this less than once in a thousand runs, and the change is over half a percent.
    pub clear: bool,
}

/// Most values for the slope; more are thinned. 300 give 45,000 pairs.
const SLOPE_VALUES: usize = 300;

/// Looks for a trend. Returns `None` for fewer than 8 values, or if all are equal.
pub fn drift(values: &[f64]) -> Option<Drift> {
    let count = values.len();
    if count < 8 {
        return None;
    }
    let order: Vec<f64> = (0..count).map(|n| n as f64).collect();
    let correlation = correlation(&ranks(values), &order)?;
    // For independent values, the correlation times this root is nearly normal; 3.29 is one in a thousand.
    let improbable = correlation.abs() * ((count - 1) as f64).sqrt() > 3.29;
    let middle = super::summary::median(values);
    let change = if middle == 0.0 { 0.0 } else { slope(values) * (count - 1) as f64 / middle };
    Some(Drift { correlation, change, clear: improbable && change.abs() > 0.005 })
}

/// Returns ranks from 0. Equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let equal = order[start..].iter().take_while(|&&i| values[i] == values[order[start]]).count();
        for &index in &order[start..start + equal] {
            ranks[index] = start as f64 + (equal - 1) as f64 / 2.0;
        }
        start += equal;
    }
    ranks
}

fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mean_a, mean_b) = (super::summary::mean(a), super::summary::mean(b));
    let (mut both, mut square_a, mut square_b) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        both += (x - mean_a) * (y - mean_b);
        square_a += (x - mean_a).powi(2);
        square_b += (y - mean_b).powi(2);
    }
    let product = square_a * square_b;
    (product > 0.0).then(|| both / product.sqrt())
}

/// Returns the median change per step.
fn slope(values: &[f64]) -> f64 {
    let step = values.len().div_ceil(SLOPE_VALUES);
    let kept: Vec<(f64, f64)> =
        values.iter().enumerate().step_by(step).map(|(index, v)| (index as f64, *v)).collect();
    let mut slopes = Vec::with_capacity(kept.len() * kept.len() / 2);
    for (index, (x, a)) in kept.iter().enumerate() {
        slopes.extend(kept[index + 1..].iter().map(|(y, b)| (b - a) / (y - x)));
    }
    super::summary::median(&slopes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    #[test]
    fn tells_a_slow_rise_from_noise() {
        let mut random = Random::new(3);
        let noise: Vec<f64> = (0..60).map(|_| 100.0 + random.normal()).collect();
        assert!(!drift(&noise).unwrap().clear);
        let rising: Vec<f64> = noise.iter().enumerate().map(|(n, v)| v + n as f64 * 0.1).collect();
        let found = drift(&rising).unwrap();
        assert!(found.clear && (0.04..0.08).contains(&found.change), "{found:?}");
        let falling: Vec<f64> = rising.into_iter().rev().collect();
        assert!(drift(&falling).unwrap().change < -0.04);
    }

    #[test]
    fn one_slow_run_is_no_drift() {
        let mut values = vec![10.0, 10.1, 9.9, 10.0, 10.2, 9.8, 10.1, 9.9, 10.0, 10.05];
        values.push(30.0);
        assert!(!drift(&values).unwrap().clear);
        assert_eq!(drift(&[1.0; 20]), None);
        assert_eq!(drift(&[1.0, 2.0]), None);
    }

    #[test]
    fn equal_values_share_ranks() {
        assert_eq!(ranks(&[2.0, 1.0, 2.0, 3.0]), [1.5, 0.0, 1.5, 3.0]);
    }
}
