//! Golden files of each format, and failures to write one.

use super::*;
use crate::SuiteName;
use hotstart_model::Outcome;
use std::fs;
use std::time::SystemTime;

fn outcome(verdict: Verdict, output: &str) -> Outcome {
    let mut outcome = Outcome::decided(verdict, output);
    outcome.started = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1000));
    outcome.elapsed = Some(Duration::from_millis(1500));
    outcome
}

fn record<'a>(path: &'a [String], outcome: &'a Outcome) -> TestRecord<'a> {
    let full_name = format!("s.x :: {}", path.join("/"));
    TestRecord {
        full_name,
        summary_name: None,
        suite: SuiteName { index: 0, name: "s.x" },
        path,
        previous: 0.0,
        outcome,
    }
}

fn written(name: &str, records: Vec<TestRecord<'_>>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report");
    let mut requested = Requested::default();
    match name {
        "json" => requested.json = Some(path.clone()),
        "xunit" => requested.xunit = Some(path.clone()),
        _ => requested.time_trace = Some(path.clone()),
    }
    let table = VerdictTable::default();
    let elapsed = Duration::from_millis(2250);
    let (end, skip_reasons) = (RunEnd::Completed, false);
    let run = Run {
        elapsed,
        lit_version: (23, 1, 5),
        dialect: Dialect::V23,
        table: &table,
        end,
        skip_reasons,
        line_times: false,
    };
    assert!(write(&requested, records, &run).is_empty());
    fs::read_to_string(path).unwrap()
}

fn path(text: &str) -> Vec<String> {
    text.split('/').map(str::to_owned).collect()
}

#[test]
fn json_leaves_out_what_did_not_run() {
    let (ran, skipped) = (outcome(Verdict::FAIL, "é\n"), Outcome::decided(Verdict::SKIPPED, ""));
    let (a, b) = (path("d/a"), path("b"));
    assert_eq!(
        written("json", vec![record(&a, &ran), record(&b, &skipped)]),
        "{\n  \"__version__\": [\n    23,\n    1,\n    5\n  ],\n  \"elapsed\": 2.25,\n  \"tests\": [\n    {\n\
         \u{20}     \"code\": \"FAIL\",\n      \"elapsed\": 1.5,\n      \"name\": \"s.x :: d/a\",\n\
         \u{20}     \"output\": \"\\u00e9\\n\"\n    }\n  ]\n}\n"
    );
}

#[test]
fn xunit_gives_reasons_of_skips() {
    let (passed, mut unsupported) = (outcome(Verdict::PASS, ""), outcome(Verdict::UNSUPPORTED, ""));
    unsupported.missing_features = vec!["x".into(), "y && z".into()];
    let excluded = Outcome::decided(Verdict::EXCLUDED, "");
    let (a, b, c) = (path("d.1/e/a"), path("b"), path("c"));
    assert_eq!(
        written("xunit", vec![record(&a, &passed), record(&b, &unsupported), record(&c, &excluded)]),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites time=\"2.25\">\n\
         <testsuite name=\"s-x\" tests=\"3\" failures=\"0\" skipped=\"2\" time=\"3.00\">\n\
         <testcase classname=\"s-x.s-x\" name=\"b\" time=\"1.50\">\n\
         \u{20} <skipped message=\"Missing required feature(s): x, y &amp;&amp; z\"/>\n</testcase>\n\
         <testcase classname=\"s-x.s-x\" name=\"c\" time=\"0.00\">\n\
         \u{20} <skipped message=\"Test not selected (--filter, --max-tests)\"/>\n</testcase>\n\
         <testcase classname=\"s-x.d_1/e\" name=\"a\" time=\"1.50\"/>\n</testsuite>\n</testsuites>\n"
    );
}

#[test]
fn a_time_trace_bears_tests_without_a_start() {
    let (ran, decided) = (outcome(Verdict::PASS, ""), Outcome::decided(Verdict::UNRESOLVED, ""));
    let (a, b) = (path("a"), path("b"));
    let text = written("time_trace", vec![record(&a, &ran), record(&b, &decided)]);
    assert!(text.starts_with("{\n  \"traceEvents\": [\n    {\n      \"dur\": 1500000,\n"), "{text}");
    assert_eq!(text.matches("\"ts\": 0").count(), 2);
}

#[test]
fn an_unwritable_path_is_named_and_spares_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let requested = Requested {
        json: Some(dir.path().join("missing/report.json")),
        xunit: Some(dir.path().join("report.xml")),
        ..Requested::default()
    };
    let table = VerdictTable::default();
    let (end, skip_reasons) = (RunEnd::Completed, false);
    let run = Run {
        elapsed: Duration::ZERO,
        lit_version: (19, 1, 7),
        dialect: Dialect::V19,
        table: &table,
        end,
        skip_reasons,
        line_times: false,
    };
    let errors = write(&requested, Vec::new(), &run);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().contains("missing/report.json"), "{}", errors[0]);
    assert!(dir.path().join("report.xml").exists());
}

#[test]
fn unique_names_spare_existing_files() {
    let dir = tempfile::tempdir().unwrap();
    let requested =
        Requested { json: Some(dir.path().join("r.json")), unique_names: true, ..Requested::default() };
    let table = VerdictTable::default();
    let (end, skip_reasons) = (RunEnd::Completed, false);
    let run = Run {
        elapsed: Duration::ZERO,
        lit_version: (23, 1, 5),
        dialect: Dialect::V23,
        table: &table,
        end,
        skip_reasons,
        line_times: false,
    };
    for _ in 0..2 {
        assert!(write(&requested, Vec::new(), &run).is_empty());
    }
    let names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 2);
    assert!(
        names.iter().all(|n| n.starts_with("r.") && n.ends_with(".json") && n.len() == "r.json".len() + 9)
    );
}
