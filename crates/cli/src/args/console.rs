//! The options that decide how much is shown, as lit 19 and lit 23 understand them.
//!
//! The command line is parsed before the version of lit is known, and the two read the same words differently: for lit 19
//! `-q` is a switch that turns everything off, for lit 23 a shorthand for several levels. So both readings are kept.

use hotstart_model::Dialect;
use hotstart_report::{DiagnosticLevel, Levels, Shown};

/// Both readings of the options that decide how much is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsoleOptions {
    results: Shown,
    output: Shown,
    diagnostics: DiagnosticLevel,
    terse_summary: bool,
    progress_bar: bool,
    min_output_interval: f64,
    old: OldSwitches,
    /// Whether the command line has an option that lit 19 lacks, so that its reading is meaningless.
    uses_levels: bool,
    debug: bool,
    live: bool,
}

/// lit 19's switches.
#[derive(Clone, Debug, Default, PartialEq)]
struct OldSwitches {
    quiet: bool,
    succinct: bool,
    verbose: bool,
    show_all: bool,
    no_progress_bar: bool,
}

impl Default for ConsoleOptions {
    fn default() -> Self {
        ConsoleOptions {
            results: Shown::All,
            output: Shown::Off,
            diagnostics: DiagnosticLevel::Note,
            terse_summary: false,
            progress_bar: false,
            min_output_interval: 0.0,
            old: OldSwitches::default(),
            uses_levels: false,
            debug: false,
            live: false,
        }
    }
}

impl ConsoleOptions {
    /// Returns the levels for this dialect of lit.
    pub fn levels(&self, dialect: Dialect) -> Levels {
        let OldSwitches { quiet, succinct, verbose, show_all, no_progress_bar } = self.old;
        let levels = Levels {
            dialect,
            results: self.results,
            output: self.output,
            progress_bar: self.progress_bar,
            min_output_interval: self.min_output_interval,
            terse_summary: self.terse_summary,
            diagnostics: self.diagnostics,
            debug: self.debug,
            live: self.live,
            colors: false,
        };
        if dialect == Dialect::V23 || self.uses_levels {
            return levels;
        }
        let results = match (quiet, succinct && !show_all) {
            (true, _) => Shown::Off,
            (false, true) => Shown::Failed,
            (false, false) => Shown::All,
        };
        let output = match (show_all, verbose) {
            (true, _) => Shown::All,
            (false, true) => Shown::Failed,
            (false, false) => Shown::Off,
        };
        let diagnostics = if quiet { DiagnosticLevel::Error } else { DiagnosticLevel::Note };
        let progress_bar = succinct && !no_progress_bar && !quiet;
        Levels { results, output, progress_bar, terse_summary: quiet, diagnostics, ..levels }
    }

    /// Returns whether running tests are shown.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Sets `--print-result-after`: a test without a result line shows no output.
    pub(super) fn set_results(&mut self, shown: Shown) {
        self.results = shown;
        self.output = self.output.min(shown);
    }

    /// Sets `--test-output`: a test whose output is shown has a result line.
    pub(super) fn set_output(&mut self, shown: Shown) {
        self.output = shown;
        self.results = self.results.max(shown);
    }

    pub(super) fn set_results_level(&mut self, shown: Shown) {
        self.uses_levels = true;
        self.set_results(shown);
    }

    pub(super) fn set_output_level(&mut self, shown: Shown) {
        self.uses_levels = true;
        self.set_output(shown);
    }

    pub(super) fn set_diagnostics(&mut self, level: DiagnosticLevel) {
        self.uses_levels = true;
        self.diagnostics = level;
    }

    pub(super) fn set_terse_summary(&mut self, terse: bool) {
        self.uses_levels = true;
        self.terse_summary = terse;
    }

    pub(super) fn be_quiet(&mut self) {
        self.old.quiet = true;
        self.set_results(Shown::Failed);
        self.set_output(Shown::Off);
        self.diagnostics = DiagnosticLevel::Error;
        self.terse_summary = true;
    }

    pub(super) fn be_succinct(&mut self) {
        self.old.succinct = true;
        self.progress_bar = true;
        self.set_results(Shown::Failed);
    }

    pub(super) fn be_live(&mut self) {
        self.live = true;
        self.old.succinct = true;
        self.set_results(Shown::Failed);
    }

    pub(super) fn be_verbose(&mut self) {
        self.old.verbose = true;
        self.set_output(Shown::Failed);
    }

    pub(super) fn show_all(&mut self) {
        self.old.show_all = true;
        self.set_output(Shown::All);
    }

    pub(super) fn want_progress_bar(&mut self) {
        self.uses_levels = true;
        self.progress_bar = true;
    }

    pub(super) fn refuse_progress_bar(&mut self) {
        self.old.no_progress_bar = true;
        self.progress_bar = false;
    }

    pub(super) fn set_min_output_interval(&mut self, seconds: f64) {
        self.min_output_interval = seconds;
    }

    pub(super) fn set_debug(&mut self) {
        self.debug = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(steps: &[fn(&mut ConsoleOptions)], dialect: Dialect) -> Levels {
        let mut console = ConsoleOptions::default();
        steps.iter().for_each(|step| step(&mut console));
        console.levels(dialect)
    }

    #[test]
    fn quiet_means_more_to_the_older_lit() {
        let levels = after(&[ConsoleOptions::be_quiet], Dialect::V19);
        assert_eq!((levels.results, levels.terse_summary), (Shown::Off, true));
        let levels = after(&[ConsoleOptions::be_quiet], Dialect::V23);
        assert_eq!((levels.results, levels.terse_summary), (Shown::Failed, true));
    }

    #[test]
    fn show_all_is_stronger_than_succinct_in_any_order() {
        for steps in [
            [ConsoleOptions::be_succinct, ConsoleOptions::show_all],
            [ConsoleOptions::show_all, ConsoleOptions::be_succinct],
        ] {
            let levels = after(&steps, Dialect::V19);
            assert_eq!((levels.results, levels.output), (Shown::All, Shown::All));
        }
        let levels = after(&[ConsoleOptions::show_all, ConsoleOptions::be_succinct], Dialect::V23);
        assert_eq!((levels.results, levels.output), (Shown::Failed, Shown::Failed));
    }

    #[test]
    fn the_place_of_no_progress_bar_matters_to_the_newer_lit_only() {
        let steps: [fn(&mut ConsoleOptions); 2] =
            [ConsoleOptions::refuse_progress_bar, ConsoleOptions::be_succinct];
        assert!(after(&steps, Dialect::V23).progress_bar);
        assert!(!after(&steps, Dialect::V19).progress_bar);
    }

    #[test]
    fn new_options_are_followed_with_an_older_lit_too() {
        let step: fn(&mut ConsoleOptions) = |console| console.set_results_level(Shown::Failed);
        assert_eq!(after(&[step], Dialect::V19).results, Shown::Failed);
    }
}
