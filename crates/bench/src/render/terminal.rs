//! Writes the report for a terminal, and the one line that shows progress.
//!
//! Verdicts come last, where the user looks when a command ends.

use crate::compare::{Comparison, Described, Report};
use crate::measure::Progress;
use crate::render::{change, overhead, percent, ratio_cells, seconds, value};
use crate::stats::summary::median;

/// Columns of a histogram's longest bar.
const BAR: usize = 40;
/// Rows of a histogram.
const ROWS: usize = 10;

/// Returns the whole report.
pub fn render(report: &Report) -> String {
    let mut text = format!("{}\n", report.machine.line());
    report.candidates.iter().for_each(|candidate| text += &described(candidate));
    text += &histograms(report);
    report.comparisons.iter().for_each(|comparison| text += &contrasts(report, comparison));
    if !report.warnings.is_empty() {
        text += "\nto beware of:\n";
        report.warnings.iter().for_each(|warning| text += &format!("  - {warning}\n"));
    }
    if !report.comparisons.is_empty() {
        text += "\n";
    }
    report.remarks.iter().for_each(|remark| text += &format!("{remark}\n"));
    for comparison in &report.comparisons {
        text += &format!("{}\n", comparison.verdict);
        if let Some(overhead) = overhead(comparison, report.confidence) {
            text += &format!("{overhead}\n");
        }
    }
    text
}

fn described(candidate: &Described) -> String {
    let count = candidate.runs.len();
    let mut text = format!("\n{}: {}   ({count} runs)\n", candidate.letter, candidate.name);
    if count == 0 {
        return text;
    }
    text += &row("", &["min", "mean", "median", "max"]);
    for (metric, s) in &candidate.metrics {
        let cells = [s.min, s.mean, s.median, s.max].map(|v| value(*metric, v));
        text += &row(metric.label(), &cells.each_ref().map(String::as_str));
    }
    text
}

fn contrasts(report: &Report, comparison: &Comparison) -> String {
    let (a, b) =
        (&report.candidates[comparison.reference].letter, &report.candidates[comparison.other].letter);
    let mut text = format!("\n{b} − {a}, round by round\n");
    let interval = format!("{} % interval", percent(report.confidence_each));
    let ratio = format!("{b} ÷ {a}");
    text += &row("", &["min", "mean", "median", "max", &ratio, &interval]);
    for contrast in &comparison.contrasts {
        let d = contrast.difference;
        let mut cells = [d.min, d.mean, d.median, d.max].map(|v| change(contrast.metric, v)).to_vec();
        cells.extend(ratio_cells(contrast));
        text += &row(contrast.metric.label(), &cells.iter().map(String::as_str).collect::<Vec<_>>());
    }
    text
}

fn row(label: &str, cells: &[&str]) -> String {
    let mut text = format!("  {label:<21}");
    for (index, cell) in cells.iter().enumerate() {
        let width = if index == 5 { 26 } else { 13 };
        text += &format!("{cell:>width$}");
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// Draws one histogram of the wall times for each candidate, all to the same scale.
fn histograms(report: &Report) -> String {
    let all: Vec<f64> = report.candidates.iter().flat_map(Described::walls).collect();
    let sorted = crate::stats::summary::sorted(&all);
    let [low, .., high] = sorted[..] else { return String::new() };
    if high <= low {
        return String::new();
    }
    // A far outlier would squeeze all other runs into one bar, so the last bar includes it.
    let high = high.min(crate::stats::summary::quantile(&sorted, 0.95) * 1.3);
    let mut text = String::new();
    for candidate in &report.candidates {
        let counts = bins(&candidate.walls(), low, high);
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        text += &format!("\n{} wall time\n", candidate.letter);
        for (row, count) in counts.iter().enumerate() {
            let from = low + (high - low) * row as f64 / ROWS as f64;
            let more = if row + 1 == ROWS { "+" } else { " " };
            let line = format!("  {:>10}{more} {:<BAR$} {count}", seconds(from), bar(*count, most));
            text += &format!("{}\n", line.trim_end());
        }
    }
    text
}

fn bins(values: &[f64], low: f64, high: f64) -> [usize; ROWS] {
    let mut counts = [0; ROWS];
    for value in values {
        let row = ((value - low) / (high - low) * ROWS as f64) as usize;
        counts[row.min(ROWS - 1)] += 1;
    }
    counts
}

/// Draws a bar in eighths of a column.
fn bar(count: usize, most: usize) -> String {
    let eighths = (count * BAR * 8).div_ceil(most.max(1));
    let part = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8];
    let mut bar = "█".repeat(eighths / 8);
    if part != ' ' {
        bar.push(part);
    }
    bar
}

/// Describes the progress of a measurement in one line, without a newline.
pub fn progress(progress: &Progress<'_>) -> String {
    let (done, all) = (progress.rounds, progress.expected_rounds.max(1));
    let each = progress.elapsed.as_secs_f64() / done.max(1) as f64;
    let left = each * all.saturating_sub(done) as f64;
    let walls = |index: usize| -> Vec<f64> {
        progress
            .runs
            .get(index)
            .map_or(Vec::new(), |runs| runs.samples.iter().rev().take(1001).map(|s| s.wall).collect())
    };
    let first = median(&walls(0));
    let mut text = format!("round {done} of {all}, {} left", clock(left));
    for (index, runs) in progress.runs.iter().take(4).enumerate() {
        let middle = median(&walls(index));
        text += &format!("   {} {}", (b'A' + index as u8) as char, seconds(middle));
        if index > 0 && first > 0.0 && !runs.samples.is_empty() {
            text += &format!(" ({:+.1} %)", (middle / first - 1.0) * 100.0);
        }
    }
    text
}

fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_bins() {
        assert_eq!(bar(1, 1), "█".repeat(BAR));
        assert_eq!(bar(0, 7), "");
        assert_eq!(bar(1, 80), "▌");
        let counts = bins(&[0.0, 0.05, 0.95, 5.0], 0.0, 1.0);
        assert_eq!((counts[0], counts[9]), (2, 2));
    }

    #[test]
    fn time_left_is_read_easily() {
        assert_eq!([clock(5.0), clock(65.0), clock(7500.0)], ["5 s", "1:05 min", "2:05 h"]);
    }
}
