//! lit's own format (`-o`).

use std::borrow::Cow;
use std::io::{self, Write};

use hotstart_model::{LineTime, MetricValue, Outcome};

use super::{Run, was_executed};
use crate::TestRecord;
use hotstart_python::json::{Json, write_document};

pub(super) fn write(to: &mut dyn Write, records: &[TestRecord<'_>], run: &Run<'_>) -> io::Result<()> {
    let tests = records.iter().filter(|record| was_executed(record)).flat_map(|record| entries(record, run));
    write_document(to, &header(run), "tests", tests)?;
    writeln!(to)
}

/// Returns the members of the top object that precede the tests.
pub(super) fn header(run: &Run<'_>) -> [(&'static str, Json<'static>); 2] {
    let (major, minor, patch) = run.lit_version;
    let version = [major, minor, patch].map(|part| Json::Int(part.into()));
    [("__version__", Json::List(version.to_vec())), ("elapsed", Json::Float(run.elapsed.as_secs_f64()))]
}

/// Returns the entries of a test. Micro-tests precede the test that they belong to.
fn entries<'a>(record: &'a TestRecord<'a>, run: &'a Run<'_>) -> impl Iterator<Item = Json<'a>> + 'a {
    let micro_tests = record
        .outcome
        .micro_results
        .iter()
        .map(|(name, outcome)| entry(format!("{}:{name}", record.full_name).into(), outcome, run));
    micro_tests.chain(std::iter::once_with(|| entry(record.full_name.as_str().into(), record.outcome, run)))
}

fn entry<'a>(name: Cow<'a, str>, outcome: &'a Outcome, run: &'a Run<'_>) -> Json<'a> {
    let elapsed = outcome.elapsed.map_or(Json::Null, |elapsed| Json::Float(elapsed.as_secs_f64()));
    let mut members = vec![
        ("name".into(), Json::Text(name)),
        ("code".into(), Json::text(&run.table.kind(outcome.verdict).name)),
        ("output".into(), Json::text(&outcome.output)),
        ("elapsed".into(), elapsed),
    ];
    if outcome.is_cached {
        members.push(("cached".into(), Json::Bool(true)));
    }
    if !outcome.metrics.is_empty() {
        let metrics = outcome.metrics.iter().map(|(name, value)| (name, metric(value)));
        members.push(("metrics".into(), Json::object(metrics)));
    }
    if run.line_times && !outcome.lines.is_empty() {
        members.push(("run_lines".into(), Json::List(outcome.lines.iter().map(line).collect())));
    }
    Json::Object(members)
}

fn line(time: &LineTime) -> Json<'_> {
    Json::object([
        ("line", Json::text(&time.label)),
        ("elapsed", Json::Float(time.wall.as_secs_f64())),
        ("cpu", Json::Float(time.cpu.as_secs_f64())),
    ])
}

fn metric(value: &MetricValue) -> Json<'_> {
    match value {
        MetricValue::Int(value) => Json::Int((*value).into()),
        MetricValue::Real(value) => Json::Float(*value),
        MetricValue::Json(text) => Json::from_text(text),
    }
}
