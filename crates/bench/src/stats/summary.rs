//! Describing one list of values.

use serde::Serialize;

/// The figures that are printed of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// The smallest.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The middle.
    pub median: f64,
    /// The largest.
    pub max: f64,
    /// Median distance from the median, scaled so that it is the standard deviation of a normal distribution.
    pub spread: f64,
}

impl Summary {
    /// Describes the values; all zero for none.
    pub fn of(values: &[f64]) -> Summary {
        let sorted = sorted(values);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else { return Summary::default() };
        Summary {
            count: sorted.len(),
            min,
            mean: mean(&sorted),
            median: quantile(&sorted, 0.5),
            max,
            spread: deviation(&sorted),
        }
    }
}

/// The values in rising order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The arithmetic mean; 0 for no values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The value below which `share` of the sorted values lie, interpolated (R's type 7). 0 for no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * part
}

/// Median of unsorted values.
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// Scaled median absolute deviation.
pub fn deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    1.4826 * median(&distances)
}

/// Indices of the values that lie further from the median than 3.5 scaled deviations (Iglewicz and Hoaglin).
///
/// Where more than half of the values are equal the deviation is 0 and tells nothing; then a value counts as far
/// if it is off by a tenth of the median. Below eight values none is said to be far from the others.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < 8 {
        return Vec::new();
    }
    let middle = median(values);
    let deviation = deviation(values);
    let reach = if deviation > 0.0 { 3.5 * deviation } else { middle.abs() * 0.1 };
    let far = |v: &f64| (v - middle).abs() > reach;
    values.iter().enumerate().filter(|(_, v)| far(v)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_a_list() {
        let summary = Summary::of(&[4.0, 1.0, 2.0, 3.0]);
        assert_eq!((summary.min, summary.max, summary.median, summary.mean), (1.0, 4.0, 2.5, 2.5));
        assert_eq!(Summary::of(&[]).count, 0);
        assert_eq!(quantile(&[10.0, 20.0, 30.0], 0.25), 15.0);
    }

    #[test]
    fn names_what_lies_far_off() {
        assert_eq!(outliers(&[10.0, 10.1, 9.9, 10.05, 15.0, 9.95, 10.02, 9.98]), [4]);
        assert_eq!(outliers(&[5.0, 5.0, 5.0, 5.2, 9.0, 5.0, 5.0, 5.0]), [4]);
        assert!(outliers(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).is_empty());
        assert!(outliers(&[1.0, 1.0, 9.0]).is_empty());
    }
}
