//! lit's own format (`-o`).

use std::io::{self, Write};

use hotstart_model::{MetricValue, Outcome};

use super::{Run, was_executed};
use crate::TestRecord;
use crate::python::{Json, write_document};

pub(super) fn write(to: &mut dyn Write, records: &[TestRecord<'_>], run: &Run<'_>) -> io::Result<()> {
    let tests = records.iter().filter(|record| was_executed(record)).flat_map(|record| entries(record, run));
    write_document(to, &header(run), "tests", tests)?;
    writeln!(to)
}

/// Members of the top object before the tests.
pub(super) fn header(run: &Run<'_>) -> [(&'static str, Json); 2] {
    let (major, minor, patch) = run.lit_version;
    let version = [major, minor, patch].map(|part| Json::Int(part.into()));
    [("__version__", Json::List(version.to_vec())), ("elapsed", Json::Float(run.elapsed.as_secs_f64()))]
}

/// Micro-tests come before the test they belong to.
fn entries<'a>(record: &'a TestRecord<'a>, run: &'a Run<'_>) -> impl Iterator<Item = Json> + 'a {
    let micro_tests = record
        .outcome
        .micro_results
        .iter()
        .map(|(name, outcome)| entry(format!("{}:{name}", record.full_name), outcome, run));
    micro_tests.chain(std::iter::once_with(|| entry(record.full_name.clone(), record.outcome, run)))
}

fn entry(name: String, outcome: &Outcome, run: &Run<'_>) -> Json {
    let elapsed = outcome.elapsed.map_or(Json::Null, |elapsed| Json::Float(elapsed.as_secs_f64()));
    let mut members = vec![
        ("name".to_owned(), Json::Text(name)),
        ("code".to_owned(), Json::Text(run.table.kind(outcome.verdict).name.clone())),
        ("output".to_owned(), Json::Text(outcome.output.clone())),
        ("elapsed".to_owned(), elapsed),
    ];
    if !outcome.metrics.is_empty() {
        let metrics = outcome.metrics.iter().map(|(name, value)| (name.clone(), metric(value))).collect();
        members.push(("metrics".to_owned(), Json::Object(metrics)));
    }
    Json::Object(members)
}

fn metric(value: &MetricValue) -> Json {
    match value {
        MetricValue::Int(value) => Json::Int(*value),
        MetricValue::Real(value) => Json::Float(*value),
        MetricValue::Json(text) => Json::from_text(text),
    }
}
