//! The record of a run (`--record`): time and worker of each test, so that the run can be repeated in the same way.

use std::io::{self, Write};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Run;
use crate::TestRecord;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format.
    pub version: u32,
    /// Wall time in seconds.
    pub elapsed: f64,
    /// Tests in the order in which they began.
    pub tests: Vec<Ran>,
}

/// A test that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// `SUITE :: DIR/FILE`.
    pub name: String,
    /// Number of its worker, from 0.
    pub worker: usize,
    /// Start, in nanoseconds since the first test began.
    pub at: u64,
    /// Duration in nanoseconds.
    pub took: u64,
    /// Its result code.
    pub code: String,
}

/// Version of the format that is written.
pub const VERSION: u32 = 1;

pub(super) fn write(to: &mut dyn Write, records: &[TestRecord<'_>], run: &Run<'_>) -> io::Result<()> {
    let mut ran: Vec<(SystemTime, &TestRecord<'_>)> =
        records.iter().filter_map(|record| Some((record.outcome.started?, record))).collect();
    ran.sort_by_key(|(started, _)| *started);
    let first = ran.first().map(|(started, _)| *started);
    let nanos = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let test = |(started, record): (SystemTime, &TestRecord<'_>)| Ran {
        name: record.full_name.clone(),
        worker: record.outcome.worker,
        at: first.and_then(|first| started.duration_since(first).ok()).map_or(0, nanos),
        took: record.outcome.elapsed.map_or(0, nanos),
        code: run.table.kind(record.outcome.verdict).name.clone(),
    };
    let tests = ran.into_iter().map(test).collect();
    let record = Record { version: VERSION, elapsed: run.elapsed.as_secs_f64(), tests };
    serde_json::to_writer_pretty(&mut *to, &record)?;
    writeln!(to)
}
