//! Writes the report as Markdown tables, for documents and pull requests.

use crate::compare::{Comparison, Described, Report};
use crate::measure::Metric;
use crate::render::{change, overhead, percent, ratio_cells, seconds, value};

/// Returns the verdicts, one table for all candidates, one for each comparison, and the warnings.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    if let Some(failure) = &report.failure {
        text += &format!("**Incomplete: {failure}**\n\n");
    }
    report.remarks.iter().for_each(|remark| text += &format!("- {}\n", remark.replace('\n', "\n  ")));
    for comparison in &report.comparisons {
        text += &format!("- {}\n", comparison.verdict);
        if let Some(overhead) = overhead(comparison, report.confidence) {
            text += &format!("- {overhead}\n");
        }
    }
    text += "\n| | command | runs | wall min | mean | median | max | user | system | memory |\n";
    text += "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    for candidate in &report.candidates {
        let wall = candidate.summary(Metric::Wall);
        let median = |metric| value(metric, candidate.summary(metric).median);
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            candidate.letter,
            code(&candidate.name),
            wall.count,
            seconds(wall.min),
            seconds(wall.mean),
            seconds(wall.median),
            seconds(wall.max),
            median(Metric::User),
            median(Metric::System),
            median(Metric::Memory),
        );
    }
    report.candidates.iter().for_each(|candidate| text += &metrics(candidate));
    report.comparisons.iter().for_each(|c| text += &contrasts(report, c));
    if !report.warnings.is_empty() {
        text += "\nTo beware of:\n\n";
        report.warnings.iter().for_each(|warning| text += &format!("- {warning}\n"));
    }
    text + &format!("\n{}\n", report.machine.line())
}

fn metrics(candidate: &Described) -> String {
    let mut text =
        format!("\n{}:\n\n| | min | mean | median | max |\n|---|---:|---:|---:|---:|\n", candidate.letter);
    for (metric, s) in &candidate.metrics {
        let cells = [s.min, s.mean, s.median, s.max].map(|v| value(*metric, v));
        text += &format!("| {} | {} |\n", metric.label(), cells.join(" | "));
    }
    text
}

fn contrasts(report: &Report, comparison: &Comparison) -> String {
    let (a, b) =
        (&report.candidates[comparison.reference].letter, &report.candidates[comparison.other].letter);
    let mut text = format!(
        "\n{b} − {a}, round by round:\n\n| | min | mean | median | max | {b} ÷ {a} | {} % interval |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
        percent(report.confidence_each)
    );
    for contrast in &comparison.contrasts {
        let d = contrast.difference;
        let mut cells = [d.min, d.mean, d.median, d.max].map(|v| change(contrast.metric, v)).to_vec();
        cells.extend(ratio_cells(contrast));
        text += &format!("| {} | {} |\n", contrast.metric.label(), cells.join(" | "));
    }
    text
}

/// Formats a command for a cell: neither backticks nor bars may end it early.
fn code(text: &str) -> String {
    let text = text.replace('|', "\\|").replace('\n', " ");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}
