//! Replaces shards, after the run, by the tests that their executables reported.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotstart_model::{Dialect, Outcome, Verdict};
use serde_json::Value;

use super::{failures, header, list, read_results, text};
use crate::exception::Exception;
use crate::suite::{Detail, Test};

/// All tests of a run with their outcomes, in lit's order: those of other formats, then googletest's.
#[derive(Debug)]
pub struct Final {
    /// The tests.
    pub tests: Vec<Test>,
    /// Their outcomes.
    pub outcomes: Vec<Arc<Outcome>>,
}

/// Replaces shards; `None` if there are none. Removes the results files.
pub fn replace_shards(
    tests: &[Test],
    selected: &[u32],
    outcomes: &[Arc<Outcome>],
    is_failure: impl Fn(Verdict) -> bool,
    dialect: Dialect,
) -> Option<Final> {
    let results = |test: &Test| test.detail().and_then(|detail| detail.results.clone());
    if !tests.iter().any(|test| results(test).is_some()) {
        return None;
    }
    let mut all = Final { tests: Vec::new(), outcomes: Vec::new() };
    for (test, outcome) in tests.iter().zip(outcomes).filter(|(test, _)| results(test).is_none()) {
        all.push(test.clone(), outcome.clone());
    }
    for &place in selected {
        let (test, outcome) = (&tests[place as usize], &outcomes[place as usize]);
        let Some(path) = results(test) else { continue };
        // The shard did not run, or its executable died before it wrote its results.
        if !path.exists() {
            all.push(test.clone(), outcome.clone());
            continue;
        }
        match individual(test, outcome, &path, dialect) {
            Ok((individual, failed)) => {
                individual.into_iter().for_each(|(test, outcome)| all.push(test, Arc::new(outcome)));
                if !failed && is_failure(outcome.verdict) {
                    all.push(test.clone(), outcome.clone());
                }
            }
            Err(error) if is_failure(outcome.verdict) => {
                let output = format!("{}\n{}", outcome.output, unreadable(&path, &error));
                all.push(test.clone(), Arc::new(Outcome { output, ..Outcome::clone(outcome) }));
            }
            Err(error) => {
                let output = unreadable(&path, &error);
                all.push(test.clone(), Arc::new(Outcome { output, ..unresolved(outcome) }));
            }
        }
        // Best effort: the next run cannot mistake a leftover for its own, as the name contains the process.
        let _ = fs::remove_file(&path);
    }
    Some(all)
}

impl Final {
    fn push(&mut self, test: Test, outcome: Arc<Outcome>) {
        self.tests.push(test);
        self.outcomes.push(outcome);
    }
}

fn unresolved(outcome: &Outcome) -> Outcome {
    Outcome { verdict: Verdict::UNRESOLVED, ..outcome.clone() }
}

fn unreadable(path: &Path, error: &Exception) -> String {
    format!("Failed to parse json file: {}\n{error}\n", path.display())
}

/// Returns the tests of a shard, and whether one of them failed.
fn individual(
    shard: &Test,
    outcome: &Outcome,
    path: &Path,
    dialect: Dialect,
) -> Result<(Vec<(Test, Outcome)>, bool), Exception> {
    let results = read_results(path)?;
    let detail = shard.detail().cloned().unwrap_or_default();
    let above = &detail.components[..detail.components.len().saturating_sub(2)];
    let (mut found, mut failed) = (Vec::new(), false);
    let mut started = outcome.started;
    for group in list(&results, "testsuites")? {
        for test in list(group, "testsuite")? {
            let names = [text(group, "name")?, text(test, "name")?];
            let Some((verdict, output)) = judge(shard, test, &names, dialect)? else { continue };
            failed |= failures(test)?.is_some() && text(test, "result")? != "SKIPPED";
            let elapsed = seconds(text(test, "time")?)?;
            let components = above.iter().cloned().chain(names.map(str::to_owned)).collect();
            let detail = Detail { components, file: detail.file.clone(), ..Detail::default() };
            let outcome = Outcome {
                started,
                elapsed: Some(elapsed),
                worker: outcome.worker,
                ..Outcome::decided(verdict, output)
            };
            started = started.map(|at| at + elapsed);
            found.push((Test::with_detail(shard.directory().clone(), Arc::new(detail)), outcome));
        }
    }
    Ok((found, failed))
}

/// Returns verdict and output of one test; `None` if it does not count.
fn judge(
    shard: &Test,
    test: &Value,
    names: &[&str; 2],
    dialect: Dialect,
) -> Result<Option<(Verdict, String)>, Exception> {
    let header = || header(&shard.file_path().to_string_lossy(), &names.join("."));
    let decided = match (text(test, "result")?, failures(test)?) {
        ("SUPPRESSED", _) => return Ok(None),
        ("SKIPPED", _) => (Verdict::SKIPPED, String::new()),
        (_, Some(messages)) => {
            let expected = dialect == Dialect::V23 && shard.marks.xfail && !shard.marks.xfail_not;
            let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
            (if expected { Verdict::XFAIL } else { Verdict::FAIL }, header() + &lines)
        }
        ("COMPLETED", None) => (Verdict::PASS, String::new()),
        _ => (Verdict::UNRESOLVED, header() + "unresolved test result\n"),
    };
    Ok(Some(decided))
}

/// Parses a duration such as `0.25s`.
fn seconds(text: &str) -> Result<Duration, Exception> {
    let digits = text.char_indices().next_back().map_or("", |(last, _)| &text[..last]);
    let seconds = digits.trim().parse::<f64>().ok().and_then(|value| Duration::try_from_secs_f64(value).ok());
    seconds.ok_or_else(|| Exception::value(format!("could not convert string to float: '{digits}'")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tests::test_at;

    fn shard(results: &Path) -> Test {
        let components = ["d", ".", "T", "0", "2"].map(str::to_owned).into();
        let detail = Detail {
            components,
            file: Some("/src/d/./T".into()),
            results: Some(results.into()),
            carried: None,
        };
        Test::with_detail(test_at("S", "d", "x").directory().clone(), Arc::new(detail))
    }

    #[test]
    fn a_shard_gives_way_to_its_tests() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        let text = r#"{"testsuites": [{"name": "P/A", "testsuite": [
            {"name": "ok/0", "result": "COMPLETED", "time": "0.5s"},
            {"name": "off", "result": "SUPPRESSED", "time": "0s"},
            {"name": "bad", "result": "COMPLETED", "time": "0s", "failures": [{"failure": "no"}]}]}]}"#;
        fs::write(&path, text).unwrap();
        let tests = [shard(&path), test_at("S", "", "other")];
        let outcomes = [Verdict::FAIL, Verdict::PASS].map(|verdict| Arc::new(Outcome::decided(verdict, "")));
        let all = replace_shards(&tests, &[0, 1], &outcomes, |_| true, Dialect::V19).unwrap();
        let got: Vec<_> =
            all.tests.iter().zip(&all.outcomes).map(|(t, o)| (t.full_name(), o.verdict)).collect();
        let named = |name: &str, verdict| (format!("S :: {name}"), verdict);
        let expected = [
            named("other", Verdict::PASS),
            named("d/./T/P/A/ok/0", Verdict::PASS),
            named("d/./T/P/A/bad", Verdict::FAIL),
        ];
        assert_eq!(got, expected);
        assert_eq!(all.tests[1].path_in_suite(), ["d", ".", "T", "P/A", "ok/0"]);
        assert_eq!(all.outcomes[1].elapsed, Some(Duration::from_millis(500)));
        assert_eq!(all.outcomes[2].output, "Script:\n--\n/src/d/./T --gtest_filter=P/A.bad\n--\nno\n");
        assert!(!path.exists());
    }

    #[test]
    fn results_that_cannot_be_read_leave_the_shard() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        fs::write(&path, "{").unwrap();
        let outcomes = [Arc::new(Outcome::decided(Verdict::PASS, ""))];
        let all =
            replace_shards(&[shard(&path)], &[0], &outcomes, |v| v != Verdict::PASS, Dialect::V23).unwrap();
        assert_eq!(all.outcomes[0].verdict, Verdict::UNRESOLVED);
        assert!(all.outcomes[0].output.starts_with("Failed to parse json file: "));
    }
}
