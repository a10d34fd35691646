//! Messages that belong to no test: written to standard error, and counted.
//!
//! Messages that are not shown count too, as in lit: a run that hides its errors has the same exit code.

use hotstart_model::{Diagnostic, Dialect, Severity};

use crate::{Levels, Sink};

/// Numbers of diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiagnosticCounts {
    /// Errors, fatal ones included.
    pub errors: u32,
    /// Warnings.
    pub warnings: u32,
}

/// Writes and counts diagnostics.
pub struct Diagnostics {
    program: String,
    to: Sink,
    counts: DiagnosticCounts,
}

impl Diagnostics {
    /// Creates the diagnostics of the program that was invoked by this name.
    pub fn new(program: impl Into<String>, to: Sink) -> Self {
        Diagnostics { program: program.into(), to, counts: DiagnosticCounts::default() }
    }

    /// Counts a diagnostic, and writes it if its level is shown.
    pub fn take(&mut self, diagnostic: &Diagnostic, levels: &Levels) {
        match diagnostic.severity {
            Severity::Debug | Severity::Note => {}
            Severity::Warning | Severity::Doubt => self.counts.warnings += 1,
            Severity::Error | Severity::Fatal => self.counts.errors += 1,
        }
        let shown = match diagnostic.severity {
            Severity::Debug => levels.debug,
            other => levels.diagnostics.shows(other),
        };
        if shown {
            let line = self.render(diagnostic, levels.dialect);
            self.to.line(&line);
            self.to.flush();
        }
    }

    /// Writes text unchanged.
    pub fn put(&mut self, text: &str) {
        self.to.put(text);
        self.to.flush();
    }

    /// Returns the numbers so far.
    pub fn counts(&self) -> DiagnosticCounts {
        self.counts
    }

    fn render(&self, diagnostic: &Diagnostic, dialect: Dialect) -> String {
        let kind = match (diagnostic.severity, dialect) {
            (Severity::Debug, Dialect::V23) => "debug",
            (Severity::Debug, Dialect::V19) | (Severity::Note, _) => "note",
            (Severity::Warning | Severity::Doubt, _) => "warning",
            (Severity::Error, _) => "error",
            (Severity::Fatal, _) => "fatal",
        };
        let Diagnostic { place, message, .. } = diagnostic;
        match place {
            Some(place) => format!("{}: {place}: {kind}: {message}", self.program),
            None => format!("{}: {kind}: {message}", self.program),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiagnosticLevel;
    use crate::sink::tests::Captured;

    fn diagnostic(severity: Severity, place: Option<&str>) -> Diagnostic {
        Diagnostic { severity, place: place.map(str::to_owned), message: "what".into() }
    }

    #[test]
    fn place_and_kind_are_lits() {
        let captured = Captured::default();
        let mut diagnostics = Diagnostics::new("lit", captured.sink());
        let levels = Levels { debug: true, ..Levels::default() };
        diagnostics.take(&diagnostic(Severity::Note, Some("/s/lit.cfg:3")), &levels);
        diagnostics.take(&diagnostic(Severity::Debug, None), &levels);
        diagnostics.take(&diagnostic(Severity::Debug, None), &Levels { dialect: Dialect::V19, ..levels });
        assert_eq!(captured.text(), "lit: /s/lit.cfg:3: note: what\nlit: debug: what\nlit: note: what\n");
    }

    #[test]
    fn a_quiet_run_still_counts() {
        let captured = Captured::default();
        let mut diagnostics = Diagnostics::new("lit", captured.sink());
        let levels = Levels { diagnostics: DiagnosticLevel::Error, ..Levels::default() };
        use Severity::{Debug, Doubt, Error, Fatal, Note, Warning};
        for severity in [Debug, Note, Warning, Doubt, Error, Fatal] {
            diagnostics.take(&diagnostic(severity, None), &levels);
        }
        assert_eq!(captured.text(), "lit: warning: what\nlit: error: what\nlit: fatal: what\n");
        assert_eq!(diagnostics.counts(), DiagnosticCounts { errors: 2, warnings: 2 });
    }
}
