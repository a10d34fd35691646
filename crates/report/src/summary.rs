//! Writes the summary below the last result: lists of tests by result code, time, and counts.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use hotstart_model::{Verdict, VerdictTable};

use crate::{Sink, TestRecord};

/// The contents of a summary.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// Codes whose tests are listed although they are not failures (`--show-xfail`).
    pub shown_codes: &'a [Verdict],
    /// Whether to omit the time and the counts of codes that are not failures.
    pub terse: bool,
    /// Wall time of the run.
    pub elapsed: Duration,
}

/// The label of tests that were not run, because they passed before with the same inputs. No other result is remembered.
const CACHED: &str = "Passed (cached)";

/// Writes lists and summary of all discovered tests.
pub fn write(to: &mut Sink, records: &[TestRecord<'_>], contents: &Contents<'_>, table: &VerdictTable) {
    for (code, kind) in table.iter() {
        if kind.is_failure || contents.shown_codes.contains(&code) {
            write_group(to, records, code, &kind.label);
        }
    }
    write_counts(to, records, contents, table);
    to.flush();
}

fn write_group(to: &mut Sink, records: &[TestRecord<'_>], code: Verdict, label: &str) {
    let mut group: Vec<_> = records.iter().filter(|record| record.outcome.verdict == code).collect();
    if group.is_empty() {
        return;
    }
    group.sort_by(|a, b| a.full_name.cmp(&b.full_name));
    to.line("********************");
    to.line(&format!("{label} Tests ({}):", group.len()));
    for record in group {
        to.line(&format!("  {}", record.summary_name.as_ref().unwrap_or(&record.full_name)));
    }
    to.put("\n");
}

fn write_counts(to: &mut Sink, records: &[TestRecord<'_>], contents: &Contents<'_>, table: &VerdictTable) {
    if !contents.terse {
        to.line(&format!("\nTesting Time: {:.2}s", contents.elapsed.as_secs_f64()));
    }
    to.line(&format!("\nTotal Discovered Tests: {}", records.len()));
    let count = |code, is_cached| {
        let is_counted = |record: &&TestRecord<'_>| {
            record.outcome.verdict == code && record.outcome.is_cached == is_cached
        };
        records.iter().filter(is_counted).count()
    };
    let groups: Vec<(&str, usize)> = table
        .iter()
        .filter(|(_, kind)| kind.is_failure || !contents.terse)
        .flat_map(|(code, kind)| [(kind.label.as_str(), count(code, false)), (CACHED, count(code, true))])
        .filter(|(_, count)| *count > 0)
        .collect();
    let label_width = groups.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let count_width = groups.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or(0);
    for (label, count) in groups {
        let percent = count as f64 / records.len() as f64 * 100.0;
        to.line(&format!("  {label:<label_width$}: {count:>count_width$} ({percent:.2}%)"));
    }
}

/// Returns `path` relative to `from`, both absolute and normal, for `--relative-paths`.
pub fn relative_path(path: &Path, from: &Path) -> PathBuf {
    let path: Vec<Component<'_>> = path.components().collect();
    let from: Vec<Component<'_>> = from.components().collect();
    let common = path.iter().zip(&from).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n(Component::ParentDir, from.len() - common);
    let relative: PathBuf = up.chain(path[common..].iter().copied()).collect();
    if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SuiteName;
    use crate::sink::tests::Captured;
    use hotstart_model::Outcome;

    fn written(codes: &[(&str, Verdict)], shown_codes: &[Verdict], terse: bool) -> String {
        let outcomes: Vec<_> =
            codes.iter().map(|(name, code)| (*name, Outcome::decided(*code, ""))).collect();
        let path = ["x".to_owned()];
        let records: Vec<_> = outcomes
            .iter()
            .map(|(name, outcome)| TestRecord {
                full_name: format!("s :: {name}"),
                summary_name: None,
                suite: SuiteName { index: 0, name: "s" },
                path: &path,
                previous: 0.0,
                outcome,
            })
            .collect();
        let captured = Captured::default();
        let contents = Contents { shown_codes, terse, elapsed: Duration::from_millis(1236) };
        write(&mut captured.sink(), &records, &contents, &VerdictTable::default());
        captured.text()
    }

    #[test]
    fn failures_are_listed_by_name() {
        let tests = [("b", Verdict::FAIL), ("a", Verdict::FAIL), ("c", Verdict::PASS), ("d", Verdict::XPASS)];
        assert_eq!(
            written(&tests, &[], false),
            "********************\nFailed Tests (2):\n  s :: a\n  s :: b\n\n\
             ********************\nUnexpectedly Passed Tests (1):\n  s :: d\n\n\
             \nTesting Time: 1.24s\n\nTotal Discovered Tests: 4\n\
             \u{20} Passed             : 1 (25.00%)\n\
             \u{20} Failed             : 2 (50.00%)\n\
             \u{20} Unexpectedly Passed: 1 (25.00%)\n"
        );
    }

    #[test]
    fn codes_are_shown_on_request_in_the_tables_order() {
        let tests = [("x", Verdict::XFAIL), ("u", Verdict::UNSUPPORTED)];
        let text = written(&tests, &[Verdict::XFAIL, Verdict::UNSUPPORTED], false);
        assert!(text.starts_with(
            "********************\nUnsupported Tests (1):\n  s :: u\n\n\
             ********************\nExpectedly Failed Tests (1):\n  s :: x\n\n"
        ));
    }

    #[test]
    fn terse_is_failures_only() {
        let passing = [("a", Verdict::PASS)];
        assert_eq!(written(&passing, &[], true), "\nTotal Discovered Tests: 1\n");
        let failing = [("a", Verdict::PASS), ("b", Verdict::FAIL)];
        assert!(
            written(&failing, &[], true).ends_with("\nTotal Discovered Tests: 2\n  Failed: 1 (50.00%)\n")
        );
    }

    #[test]
    fn relative_paths() {
        let relative = |path: &str, from: &str| relative_path(Path::new(path), Path::new(from));
        assert_eq!(relative("/a/b/c", "/a/d"), Path::new("../b/c"));
        assert_eq!(relative("/a/b", "/a"), Path::new("b"));
        assert_eq!(relative("/a", "/a"), Path::new("."));
    }
}
