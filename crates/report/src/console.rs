//! Levels of console output, in the terms of lit 23; the older lit's switches are a special case of them.

use hotstart_model::{Dialect, Outcome, Severity, VerdictTable};

/// The tests for which something is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// None.
    #[default]
    Off,
    /// Failed tests.
    Failed,
    /// Failed tests, and those that took more than one attempt.
    FailedOrFlaky,
    /// All tests.
    All,
}

impl Shown {
    /// Returns whether a test with this outcome is included.
    pub(crate) fn includes(self, outcome: &Outcome, table: &VerdictTable) -> bool {
        match self {
            Shown::Off => false,
            Shown::All => true,
            Shown::Failed => table.kind(outcome.verdict).is_failure,
            Shown::FailedOrFlaky => table.kind(outcome.verdict).is_failure || outcome.attempts.0 > 1,
        }
    }
}

/// The least serious diagnostics to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnosticLevel {
    /// Errors, and doubts about a verdict.
    Error,
    /// Warnings too.
    Warning,
    /// Notes too.
    #[default]
    Note,
}

impl DiagnosticLevel {
    /// Returns whether a diagnostic of this severity is shown. Debug messages have a switch of their own.
    pub fn shows(self, severity: Severity) -> bool {
        let least = match self {
            DiagnosticLevel::Error => Severity::Doubt,
            DiagnosticLevel::Warning => Severity::Warning,
            DiagnosticLevel::Note => Severity::Note,
        };
        severity >= least
    }
}

/// Levels of a run's console output.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// The rules, where the two lits differ.
    pub dialect: Dialect,
    /// Tests with a result line.
    pub results: Shown,
    /// Tests whose output follows the result line.
    pub output: Shown,
    /// Whether there is a progress bar.
    pub progress_bar: bool,
    /// Least seconds between two updates of a bar on a terminal; zero is no limit.
    pub min_output_interval: f64,
    /// Whether the summary omits times and everything that did not fail.
    pub terse_summary: bool,
    /// The diagnostics that are shown.
    pub diagnostics: DiagnosticLevel,
    /// Whether debug messages are shown.
    pub debug: bool,
    /// Whether the live display of running tests replaces the progress bar.
    pub live: bool,
    /// Whether colours are allowed.
    pub colors: bool,
}

impl Levels {
    /// Returns whether nothing is shown while tests run, not even the header.
    pub(crate) fn is_silent(&self) -> bool {
        self.results == Shown::Off && !self.progress_bar && !self.live
    }
}

impl Default for Levels {
    fn default() -> Self {
        Levels {
            dialect: Dialect::V23,
            results: Shown::All,
            output: Shown::Off,
            progress_bar: false,
            min_output_interval: 0.0,
            terse_summary: false,
            diagnostics: DiagnosticLevel::Note,
            debug: false,
            live: false,
            colors: false,
        }
    }
}
