//! Test results in the format of LUCI's ResultDB.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use hotstart_model::{Outcome, Verdict};

use super::json::header;
use super::{Run, was_executed};
use crate::TestRecord;
use hotstart_python::json::{Json, write_document};

pub(super) fn write(to: &mut dyn Write, records: &[TestRecord<'_>], run: &Run<'_>) -> io::Result<()> {
    let tests = records.iter().filter(|record| was_executed(record)).flat_map(|record| entries(record, run));
    write_document(to, &header(run), "tests", tests)?;
    writeln!(to)
}

/// Returns the entry of a test, then those of its micro-tests, which have its times if they have none.
fn entries<'a>(record: &'a TestRecord<'a>, run: &'a Run<'_>) -> impl Iterator<Item = Json<'a>> + 'a {
    let whole = record.outcome;
    let micro_tests = whole.micro_results.iter().map(move |(name, micro)| {
        let started = micro.started.or(whole.started);
        let elapsed = micro.elapsed.or(whole.elapsed);
        entry(format!("{}:{name}microres", record.full_name), micro, started, elapsed, run)
    });
    let own = move || entry(record.full_name.clone(), whole, whole.started, whole.elapsed, run);
    std::iter::once_with(own).chain(micro_tests)
}

fn entry(
    name: String,
    outcome: &Outcome,
    started: Option<SystemTime>,
    elapsed: Option<Duration>,
    run: &Run<'_>,
) -> Json<'static> {
    let elapsed = elapsed.unwrap_or_default().as_secs_f64();
    let contents = Json::object([("contents", Json::text(base64(outcome.output.as_bytes())))]);
    let artifacts = Json::object([("artifact-content-in-request", contents)]);
    let summary = r#"<p><text-artifact artifact-id="artifact-content-in-request"></p>"#;
    let is_expected = !run.table.kind(outcome.verdict).is_failure;
    let members = [
        ("testId", Json::text(name)),
        ("start_time", Json::text(local_time(started.unwrap_or(SystemTime::UNIX_EPOCH)))),
        ("duration", Json::text(format!("{elapsed:.9}s"))),
        ("summary_html", Json::text(summary)),
        ("artifacts", artifacts),
        ("expected", Json::Bool(is_expected)),
    ];
    let status = status(outcome.verdict).map(|text| ("status", Json::text(text)));
    Json::object(members.into_iter().chain(status))
}

/// Returns the status of a result code; `None` for codes that a config defined.
fn status(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::PASS | Verdict::XPASS | Verdict::FLAKYPASS | Verdict::FIXED => Some("PASS"),
        Verdict::FAIL | Verdict::XFAIL => Some("FAIL"),
        Verdict::UNSUPPORTED | Verdict::SKIPPED | Verdict::EXCLUDED => Some("SKIP"),
        Verdict::UNRESOLVED | Verdict::TIMEOUT => Some("ABORT"),
        _ => None,
    }
}

/// Formats local time, marked as UTC like lit's.
fn local_time(time: SystemTime) -> String {
    let Ok(timestamp) = jiff::Timestamp::try_from(time) else { return String::new() };
    let local = timestamp.to_zoned(jiff::tz::TimeZone::system()).datetime();
    let micros = local.subsec_nanosecond() / 1000;
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    format!("{}{fraction}Z", local.strftime("%Y-%m-%dT%H:%M:%S"))
}

fn base64(data: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(data.len().div_ceil(3) * 4);
    for chunk in data.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit <= chunk.len() {
                text.push(char::from(ALPHABET[(bits >> (18 - 6 * digit) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_with_padding() {
        for (plain, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(plain.as_bytes()), text);
        }
    }

    #[test]
    fn whole_seconds_have_no_fraction() {
        let text = local_time(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
        assert_eq!(text.len(), "2023-11-14T22:13:20Z".len(), "{text}");
        let text = local_time(SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_250));
        assert!(text.ends_with(".000250Z"), "{text}");
    }
}
