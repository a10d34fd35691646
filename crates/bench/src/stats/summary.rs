//! Describes a list of values by a few figures.

use serde::Serialize;

/// The figures that reports print of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Number of values.
    pub count: usize,
    /// The smallest value.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The largest value.
    pub max: f64,
    /// Median distance from the median, scaled so that it is the standard deviation of a normal distribution.
    pub spread: f64,
}

impl Summary {
    /// Describes the values. All figures are 0 for an empty list.
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

/// Returns the values in rising order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns the arithmetic mean; 0 for no values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Returns the value below which `share` of the sorted values lie, interpolated (R's type 7); 0 for no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * part
}

/// Returns the median of one figure of all items.
pub fn median_of<T>(all: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    median(&all.iter().map(figure).collect::<Vec<_>>())
}

/// Returns the median of unsorted values.
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// Returns the scaled median absolute deviation.
pub fn deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    1.4826 * median(&distances)
}

/// Returns the indices of the values that lie further from the median than 3.5 scaled deviations (Iglewicz and Hoaglin).
///
/// If more than half of the values are equal, the deviation is 0 and useless. Then a value is an outlier if it differs from
/// the median by a tenth. Fewer than eight values have no outliers.
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
