//! Writes the report as one HTML page with plots, which can be kept and sent.

use hotstart_page::{Axis, Mark, Plot, Series, escape, page, plot, table};

use crate::compare::{Comparison, Report};
use crate::render::{change, overhead, percent, ratio_cells, value};
use crate::stats::summary::{quantile, sorted};

/// Bars of a distribution plot.
const BINS: usize = 60;

/// Returns the page.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    if let Some(failure) = &report.failure {
        text += &format!("<p class=\"warn\">Incomplete: {}</p>\n", escape(failure));
    }
    for remark in &report.remarks {
        text += &format!("<p class=\"verdict\">{}</p>\n", escape(remark).replace('\n', "<br>"));
    }
    for comparison in &report.comparisons {
        text += &format!("<p class=\"verdict\">{}</p>\n", escape(&comparison.verdict));
        if let Some(overhead) = overhead(comparison, report.confidence) {
            text += &format!("<p>{}</p>\n", escape(&overhead));
        }
    }
    for warning in &report.warnings {
        text += &format!("<p class=\"warn\">{}</p>\n", escape(warning));
    }
    text += "<h2>Wall time of each run</h2>\n";
    text += &plot(&over_time(report));
    text += "<h2>Distribution of the wall times</h2>\n";
    text += &plot(&distribution(report));
    for candidate in &report.candidates {
        text += &format!("<h2>{}: {}</h2>\n", escape(&candidate.letter), escape(&candidate.name));
        let row = |(metric, s): &(crate::measure::Metric, crate::stats::Summary)| {
            let mut row = vec![metric.label().to_owned()];
            row.extend([s.min, s.mean, s.median, s.max].map(|v| value(*metric, v)));
            row
        };
        let rows: Vec<Vec<String>> = candidate.metrics.iter().map(row).collect();
        text += &table(&["", "min", "mean", "median", "max"], &rows);
    }
    report.comparisons.iter().for_each(|comparison| text += &contrasts(report, comparison));
    text += &format!("<p class=\"soft\">{}</p>\n", escape(&report.machine.line()));
    page("hotstart ab", &text)
}

fn over_time(report: &Report) -> Plot<'_> {
    let series = |candidate: &crate::compare::Described| Series {
        name: format!("{} {}", candidate.letter, candidate.name),
        points: candidate.places.iter().zip(candidate.walls()).map(|(p, w)| ((p + 1) as f64, w)).collect(),
        mark: Mark::Dots,
    };
    Plot {
        title: "Wall time of each run",
        x: Axis { label: "run, in the order in which they ran", unit: "", zero: false },
        y: Axis { label: "wall time", unit: "s", zero: false },
        series: report.candidates.iter().map(series).collect(),
    }
}

/// Plots the shares of the runs by time. The last step includes all runs beyond 1.3 times the 95th percentile.
fn distribution(report: &Report) -> Plot<'_> {
    let all = sorted(&report.candidates.iter().flat_map(|c| c.walls()).collect::<Vec<_>>());
    let low = all.first().copied().unwrap_or_default();
    let high = all.last().copied().unwrap_or_default().min(quantile(&all, 0.95) * 1.3).max(low + 1e-9);
    let step = (high - low) / BINS as f64;
    let series = |candidate: &crate::compare::Described| {
        let mut counts = [0.0; BINS + 1];
        let walls = candidate.walls();
        for wall in &walls {
            counts[(((wall - low) / step) as usize).min(BINS - 1)] += 100.0 / walls.len() as f64;
        }
        let point = |(bin, count): (usize, &f64)| (low + step * bin as f64, *count);
        let points =
            if walls.is_empty() { Vec::new() } else { counts.iter().enumerate().map(point).collect() };
        Series { name: format!("{} {}", candidate.letter, candidate.name), points, mark: Mark::Steps }
    };
    let series = report.candidates.iter().map(series).filter(|series| !series.points.is_empty()).collect();
    Plot {
        title: "Distribution of the wall times",
        x: Axis { label: "wall time", unit: "s", zero: false },
        y: Axis { label: "share of the runs", unit: "%", zero: true },
        series,
    }
}

fn contrasts(report: &Report, comparison: &Comparison) -> String {
    let (a, b) =
        (&report.candidates[comparison.reference].letter, &report.candidates[comparison.other].letter);
    let row = |contrast: &crate::compare::Contrast| {
        let d = contrast.difference;
        let mut row = vec![contrast.metric.label().to_owned()];
        row.extend([d.min, d.mean, d.median, d.max].map(|v| change(contrast.metric, v)));
        row.extend(ratio_cells(contrast));
        row
    };
    let rows: Vec<Vec<String>> = comparison.contrasts.iter().map(row).collect();
    let interval = format!("{} % interval", percent(report.confidence_each));
    let ratio = format!("{b} ÷ {a}");
    format!("<h2>{b} − {a}, round by round</h2>\n")
        + &table(&["", "min", "mean", "median", "max", &ratio, &interval], &rows)
}
