//! How much is shown, in the terms of lit 23; the older lit's switches are a special case of them.

use hotstart_model::{Dialect, Outcome, Severity, VerdictTable};

/// Of which tests something is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// Of none.
    #[default]
    Off,
    /// Of failed ones.
    Failed,
    /// Of failed ones and of those that took more than one attempt.
    FailedOrFlaky,
    /// Of all.
    All,
}

impl Shown {
    /// Whether it is shown for a test with this outcome.
    pub(crate) fn includes(self, outcome: &Outcome, table: &VerdictTable) -> bool {
        match self {
            Shown::Off => false,
            Shown::All => true,
            Shown::Failed => table.kind(outcome.verdict).is_failure,
            Shown::FailedOrFlaky => table.kind(outcome.verdict).is_failure || outcome.attempts.0 > 1,
        }
    }
}

/// The least serious diagnostics that are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnosticLevel {
    /// Errors only.
    Error,
    /// Warnings too.
    Warning,
    /// Notes too.
    #[default]
    Note,
}

impl DiagnosticLevel {
    /// Whether a diagnostic of this severity is shown; debug messages are asked for apart.
    pub(crate) fn shows(self, severity: Severity) -> bool {
        let least = match self {
            DiagnosticLevel::Error => Severity::Error,
            DiagnosticLevel::Warning => Severity::Warning,
            DiagnosticLevel::Note => Severity::Note,
        };
        severity >= least
    }
}

/// How much of a run is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// Which rules hold where the two lits differ.
    pub dialect: Dialect,
    /// Tests with a result line.
    pub results: Shown,
    /// Tests whose output follows the result line.
    pub output: Shown,
    /// Whether there is a progress bar.
    pub progress_bar: bool,
    /// Least seconds between two updates of a bar on a terminal; zero is no limit.
    pub min_output_interval: f64,
    /// Whether the summary leaves out times and what did not fail.
    pub terse_summary: bool,
    /// Which diagnostics are shown.
    pub diagnostics: DiagnosticLevel,
    /// Whether debug messages are shown.
    pub debug: bool,
    /// Whether what runs now is shown, in the place of a progress bar.
    pub live: bool,
    /// Whether there may be colours.
    pub colors: bool,
}

impl Levels {
    /// Whether nothing at all is shown while tests run, not even the header.
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
