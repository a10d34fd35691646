//! Formats values in the unit that is easiest to read.

use crate::compare::{Comparison, Contrast};
use crate::measure::Metric;

/// Formats a time in seconds with three or four digits.
pub fn seconds(seconds: f64) -> String {
    let size = seconds.abs();
    let (scale, unit) = match size {
        _ if size >= 1.0 || size == 0.0 => (1.0, "s"),
        _ if size >= 1e-3 => (1e3, "ms"),
        _ if size >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", digits(seconds * scale))
}

/// Formats an amount of memory in KiB.
pub fn bytes_from_kib(kib: f64) -> String {
    let size = kib.abs();
    match size {
        _ if size >= 1048576.0 => format!("{} GiB", digits(kib / 1048576.0)),
        _ if size >= 1024.0 => format!("{} MiB", digits(kib / 1024.0)),
        _ => format!("{} KiB", digits(kib)),
    }
}

fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}

/// Formats a value of this metric.
pub fn value(metric: Metric, value: f64) -> String {
    match metric {
        _ if metric.is_time() => seconds(value),
        Metric::Memory => bytes_from_kib(value),
        _ if value.fract() == 0.0 => format!("{value}"),
        _ => format!("{value:.1}"),
    }
}

/// Formats a difference of two values of this metric, with its sign.
pub fn change(metric: Metric, difference: f64) -> String {
    let sign = if difference > 0.0 { "+" } else { "" };
    format!("{sign}{}", value(metric, difference))
}

/// Formats a share as a percentage with no more decimals than it needs.
pub fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Describes the overhead of a process in words, if it could be estimated.
pub fn overhead(comparison: &Comparison, confidence: f64) -> Option<String> {
    let overhead = comparison.overhead_per_process?;
    Some(format!(
        "time saved × parallel jobs ÷ processes: {} for each process, {} % sure between {} and {}",
        seconds(overhead.estimate),
        percent(confidence),
        seconds(overhead.low),
        seconds(overhead.high)
    ))
}

/// Returns cells for the ratio and its interval. If some values are 0 and give no ratio, the second cell is the difference's interval.
pub fn ratio_cells(contrast: &Contrast) -> [String; 2] {
    if let Some(ratio) = contrast.ratio.filter(|ratio| ratio.high < 1e4 && ratio.low > 1e-4) {
        return [format!("{:.4}", ratio.estimate), format!("{:.4} – {:.4}", ratio.low, ratio.high)];
    }
    let interval = contrast
        .difference_interval
        .map(|d| format!("{} – {}", change(contrast.metric, d.low), change(contrast.metric, d.high)));
    [String::new(), interval.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit_the_size() {
        assert_eq!(seconds(0.0123), "12.30 ms");
        assert_eq!(seconds(1.5), "1.500 s");
        assert_eq!(seconds(2.5e-5), "25.00 µs");
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(bytes_from_kib(2048.0), "2.000 MiB");
        assert_eq!(value(Metric::MinorFaults, 12.0), "12");
        assert_eq!(change(Metric::Wall, 0.002), "+2.000 ms");
        assert_eq!(change(Metric::Wall, -0.002), "-2.000 ms");
        assert_eq!([percent(0.95), percent(0.9875), percent(0.99)], ["95", "98.75", "99"]);
    }
}
