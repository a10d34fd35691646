//! Writes the report as one JSON object: everything that the other forms show, and every run.

use serde_json::{Map, Value, json};

use crate::compare::{Comparison, Described, Report};
use crate::measure::Metric;
use crate::stats::{Interval, Summary};

/// Version of the object's form. Raise it when a member changes its meaning.
const VERSION: u32 = 1;

/// Returns the report as indented JSON.
pub fn render(report: &Report) -> String {
    let value = json!({
        "version": VERSION,
        "complete": report.complete,
        "failure": report.failure,
        "machine": report.machine,
        "quiet": report.quiet,
        "confidence": report.confidence,
        "confidence_each": report.confidence_each,
        "seed": report.seed,
        "elapsed_s": report.elapsed_s,
        "own_cost_us": report.own_cost_us,
        "same_output": report.same_output,
        "commands": report.candidates.iter().map(command).collect::<Vec<_>>(),
        "comparisons": report.comparisons.iter().map(|c| comparison(report, c)).collect::<Vec<_>>(),
        "remarks": report.remarks,
        "warnings": report.warnings,
    });
    format!("{value:#}\n")
}

fn command(candidate: &Described) -> Value {
    let mut metrics = Map::new();
    for (metric, summary) in &candidate.metrics {
        metrics.insert(metric.key().to_owned(), figures(summary));
    }
    let runs = candidate.runs.iter().zip(&candidate.places).enumerate().map(|(round, (run, place))| {
        let mut object = Map::new();
        object.insert("round".to_owned(), json!(round + 1));
        object.insert("place".to_owned(), json!(place + 1));
        for metric in Metric::ALL {
            object.insert(metric.key().to_owned(), json!(metric.of(run)));
        }
        Value::Object(object)
    });
    json!({
        "letter": candidate.letter,
        "name": candidate.name,
        "metrics": metrics,
        "outliers": candidate.outliers,
        "drift": candidate.drift,
        "runs": runs.collect::<Vec<_>>(),
    })
}

fn comparison(report: &Report, comparison: &Comparison) -> Value {
    let mut metrics = Map::new();
    for contrast in &comparison.contrasts {
        let member = json!({
            "difference": figures(&contrast.difference),
            "difference_interval": interval(contrast.difference_interval),
            "ratio": interval(contrast.ratio),
            "clear": contrast.is_clear(),
        });
        metrics.insert(contrast.metric.key().to_owned(), member);
    }
    json!({
        "reference": report.candidates[comparison.reference].letter,
        "other": report.candidates[comparison.other].letter,
        "verdict": comparison.verdict,
        "metrics": metrics,
        "overhead_per_process_s": interval(comparison.overhead_per_process),
    })
}

fn figures(summary: &Summary) -> Value {
    json!({
        "count": summary.count, "min": summary.min, "mean": summary.mean, "median": summary.median,
        "max": summary.max, "spread": summary.spread,
    })
}

fn interval(interval: Option<Interval>) -> Value {
    interval.map_or(Value::Null, |i| json!({ "estimate": i.estimate, "low": i.low, "high": i.high }))
}
