//! The time span of each test, for Chrome's and Perfetto's trace viewers.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use super::is_skip;
use crate::TestRecord;
use hotstart_python::json::{Json, write_document};

pub(super) fn write(to: &mut dyn Write, records: &[TestRecord<'_>]) -> io::Result<()> {
    // lit fails here if a test has no start. Here such a test does not count, and its event is at zero.
    let first = records.iter().filter_map(|record| record.outcome.started).min();
    let events =
        records.iter().filter(|record| !is_skip(record.outcome.verdict)).map(|record| event(record, first));
    write_document(to, &[], "traceEvents", events)
}

fn event<'a>(record: &'a TestRecord<'_>, first: Option<SystemTime>) -> Json<'a> {
    let outcome = record.outcome;
    let since_first = match (outcome.started, first) {
        (Some(started), Some(first)) => started.duration_since(first).unwrap_or_default(),
        _ => Duration::ZERO,
    };
    let micros = |duration: Duration| Json::Int(duration.as_micros() as i128);
    Json::object([
        ("pid", Json::Int(outcome.worker as i128)),
        ("tid", Json::Int(1)),
        ("ph", Json::text("X")),
        ("ts", micros(since_first)),
        ("dur", micros(outcome.elapsed.unwrap_or_default())),
        ("name", Json::text(&record.full_name)),
    ])
}
