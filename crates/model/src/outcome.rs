//! Verdicts, and the result of a test.

use std::time::{Duration, SystemTime};

/// A result code, as an index into a [`VerdictTable`]: lit lets test formats define codes of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Verdict(pub u16);

impl Verdict {
    /// Not selected by a filter.
    pub const EXCLUDED: Verdict = Verdict(0);
    /// Selected, but not run because the run ended early.
    pub const SKIPPED: Verdict = Verdict(1);
    /// Requirements not met.
    pub const UNSUPPORTED: Verdict = Verdict(2);
    /// Passed.
    pub const PASS: Verdict = Verdict(3);
    /// Passed after a retry.
    pub const FLAKYPASS: Verdict = Verdict(4);
    /// Passed after a test updater changed the test (lit 23).
    pub const FIXED: Verdict = Verdict(5);
    /// Failed as expected.
    pub const XFAIL: Verdict = Verdict(6);
    /// Could not be run to a result.
    pub const UNRESOLVED: Verdict = Verdict(7);
    /// Ran out of time.
    pub const TIMEOUT: Verdict = Verdict(8);
    /// Failed.
    pub const FAIL: Verdict = Verdict(9);
    /// Passed though failure was expected.
    pub const XPASS: Verdict = Verdict(10);
}

/// Name, label and meaning of one result code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictKind {
    /// The name on result lines and in reports: `XPASS`.
    pub name: String,
    /// The label in the summary: `Unexpectedly Passed`.
    pub label: String,
    /// Whether a test with this code makes the run fail.
    pub is_failure: bool,
}

/// All result codes in the order in which lit lists them: the built-in ones, then those that configs defined.
#[derive(Clone, Debug)]
pub struct VerdictTable(Vec<VerdictKind>);

impl Default for VerdictTable {
    fn default() -> Self {
        let built_in = [
            ("EXCLUDED", "Excluded", false),
            ("SKIPPED", "Skipped", false),
            ("UNSUPPORTED", "Unsupported", false),
            ("PASS", "Passed", false),
            ("FLAKYPASS", "Passed With Retry", false),
            ("FIXED", "Passed After Update", false),
            ("XFAIL", "Expectedly Failed", false),
            ("UNRESOLVED", "Unresolved", true),
            ("TIMEOUT", "Timed Out", true),
            ("FAIL", "Failed", true),
            ("XPASS", "Unexpectedly Passed", true),
        ];
        let kind = |(name, label, is_failure): (&str, &str, bool)| VerdictKind {
            name: name.to_owned(),
            label: label.to_owned(),
            is_failure,
        };
        VerdictTable(built_in.into_iter().map(kind).collect())
    }
}

impl VerdictTable {
    /// Adds a code, or returns the existing one of this name.
    pub fn intern(&mut self, kind: VerdictKind) -> Verdict {
        let found = self.0.iter().position(|known| known.name == kind.name);
        let index = found.unwrap_or_else(|| {
            self.0.push(kind);
            self.0.len() - 1
        });
        Verdict(u16::try_from(index).expect("fewer than 65536 result codes"))
    }

    /// Returns the code's name, label and meaning.
    pub fn kind(&self, verdict: Verdict) -> &VerdictKind {
        &self.0[usize::from(verdict.0)]
    }

    /// Iterates over all codes in order.
    pub fn iter(&self) -> impl Iterator<Item = (Verdict, &VerdictKind)> {
        self.0.iter().enumerate().map(|(i, kind)| (Verdict(i as u16), kind))
    }
}

/// A metric reported by a custom test format.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue {
    /// An integer.
    Int(i64),
    /// A real number.
    Real(f64),
    /// Any other JSON value, as its text.
    Json(String),
}

/// The time of a RUN line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineTime {
    /// The place, in lit's words: `RUN: at line 3`.
    pub label: String,
    /// From the start of its first pipeline to the end of its last one, without the time between pipelines.
    pub wall: Duration,
    /// CPU time of its processes.
    pub cpu: Duration,
}

/// The result of a test that has ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result code, with expectations (XFAIL) applied.
    pub verdict: Verdict,
    /// The text that lit would show with -v. Empty if nobody will read it.
    pub output: String,
    /// When its first attempt began; `None` if it never ran.
    pub started: Option<SystemTime>,
    /// Wall time of all attempts; `None` if it never ran.
    pub elapsed: Option<Duration>,
    /// The number of attempts made, and of those allowed.
    pub attempts: (u32, u32),
    /// The output of test updaters (`--update-tests`), by attempt. Empty if they wrote nothing or did not run.
    pub updates: Vec<String>,
    /// The index of the worker that ran it.
    pub worker: usize,
    /// Named metrics, in order.
    pub metrics: Vec<(String, MetricValue)>,
    /// Results that count as tests of their own in reports: name and outcome.
    pub micro_results: Vec<(String, Outcome)>,
    /// Unmet requirements, for reports that give the reason of a skip.
    pub missing_features: Vec<String>,
    /// Lines that say which command failed and how to run it again. Empty unless requested.
    pub diagnosis: String,
    /// One line beside the output that says which command failed and how. Empty unless requested.
    pub blame: String,
    /// The time of each RUN line of the last attempt, in order. Empty unless requested.
    pub lines: Vec<LineTime>,
    /// Whether it was not run, because it passed before with the same inputs.
    pub is_cached: bool,
}

impl Outcome {
    /// Returns an outcome that took no attempt.
    pub fn decided(verdict: Verdict, output: impl Into<String>) -> Self {
        Outcome {
            verdict,
            output: output.into(),
            started: None,
            elapsed: None,
            attempts: (1, 1),
            updates: Vec::new(),
            worker: 0,
            metrics: Vec::new(),
            micro_results: Vec::new(),
            missing_features: Vec::new(),
            diagnosis: String::new(),
            blame: String::new(),
            lines: Vec::new(),
            is_cached: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_constants() {
        let table = VerdictTable::default();
        assert_eq!(table.kind(Verdict::EXCLUDED).name, "EXCLUDED");
        assert_eq!(table.kind(Verdict::XPASS).label, "Unexpectedly Passed");
        let failing: Vec<_> = table.iter().filter(|(_, k)| k.is_failure).map(|(v, _)| v).collect();
        assert_eq!(failing, [Verdict::UNRESOLVED, Verdict::TIMEOUT, Verdict::FAIL, Verdict::XPASS]);
    }

    #[test]
    fn a_code_is_added_once() {
        let mut table = VerdictTable::default();
        let kind = VerdictKind { name: "SLOW".into(), label: "Slow".into(), is_failure: true };
        assert_eq!(table.intern(kind.clone()), table.intern(kind));
    }
}
