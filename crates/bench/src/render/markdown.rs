//! The report as Markdown tables, for documents and pull requests.

use crate::compare::{Comparison, Report};
use crate::measure::Metric;
use crate::render::{change, seconds, value};

/// Verdicts, one table for all candidates, one for each comparison, warnings.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    if let Some(failure) = &report.failure {
        text += &format!("**Incomplete: {failure}**\n\n");
    }
    for comparison in &report.comparisons {
        text += &format!("- {}\n", comparison.verdict);
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
    report.comparisons.iter().for_each(|c| text += &contrasts(report, c));
    if !report.warnings.is_empty() {
        text += "\nTo beware of:\n\n";
        report.warnings.iter().for_each(|warning| text += &format!("- {warning}\n"));
    }
    text + &format!("\n{}\n", report.machine.line())
}

fn contrasts(report: &Report, comparison: &Comparison) -> String {
    let (a, b) =
        (&report.candidates[comparison.reference].letter, &report.candidates[comparison.other].letter);
    let percent = report.confidence * 100.0;
    let mut text =
        format!("\n| | median of {b} − {a} | {b} ÷ {a} | {percent} % interval |\n|---|---:|---:|---:|\n");
    for contrast in &comparison.contrasts {
        let (ratio, interval) = contrast.ratio.map_or((String::new(), String::new()), |r| {
            (format!("{:.4}", r.estimate), format!("{:.4} – {:.4}", r.low, r.high))
        });
        let difference = change(contrast.metric, contrast.difference.median);
        text += &format!("| {} | {difference} | {ratio} | {interval} |\n", contrast.metric.label());
    }
    text
}

/// A command in a cell: neither backticks nor bars may end it early.
fn code(text: &str) -> String {
    let text = text.replace('|', "\\|").replace('\n', " ");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}
