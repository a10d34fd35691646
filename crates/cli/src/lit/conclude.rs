//! The end of a run: recorded times, lists and summary, reports, exit code.
//!
//! Everything that follows the last test is here in the order in which lit does it, since users and scripts read that output.

use std::fmt::Write;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hotstart_lit::googletest::individual::Final;
use hotstart_lit::load::{Discovered, Timing};
use hotstart_lit::plan::Plan;
use hotstart_lit::times;
use hotstart_model::{Diagnostic, RunEnd, Severity, Verdict};
use hotstart_report::files::Facts;
use hotstart_report::time_by::{self, TimeBy, ToolRow};
use hotstart_report::{Diagnostics, Results, Sink, TestRecord, files, github, histogram, messages, summary};
use hotstart_run::{ToolTime, ToolTimes};

use super::records;
use crate::args::LitOptions;
use crate::exit_code::{self, ERROR, FAILURE, SUCCESS};

/// All that a finished run's reports are made of, beside the tests' outcomes.
pub(super) struct Conclusion<'a> {
    pub options: &'a LitOptions,
    pub cwd: &'a Path,
    pub discovered: &'a Discovered,
    pub end: RunEnd,
    /// The time between the start of the first test and the end of the last one.
    pub elapsed: Duration,
    pub tool_times: Option<&'a ToolTimes>,
    /// Collects what the HTML page shows beside the tests.
    pub facts: &'a dyn Fn() -> Facts,
}

impl Conclusion<'_> {
    /// Writes everything that follows a run, and returns the exit code.
    pub fn write(&self, plan: Plan<'_>, results: Results) -> ExitCode {
        let Conclusion { options, cwd, discovered, .. } = *self;
        let Results { outcomes, workers, mut out, mut diagnostics } = results;
        let levels = options.console.levels(discovered.session.dialect);
        if let Some(why) = messages::cut_short(self.end) {
            diagnostics.put(why);
        }
        diagnostics.put(&records::repetitions(discovered, &plan, &outcomes));
        let outcomes = records::outcomes(discovered, &plan, outcomes);
        // Reports contain googletest's single tests in place of shards.
        let single = plan.individual_tests(&outcomes);
        let (tests, own) = match &single {
            Some(Final { tests, outcomes }) => (tests.as_slice(), outcomes),
            None => (&*discovered.tests, &outcomes),
        };
        // No test runs any more, so each thread has a processor.
        let (paths, recorded) = std::thread::scope(|scope| {
            let record = || record_times(discovered, &outcomes);
            let wanted = !options.skip_test_time_recording;
            let thread = wanted.then(|| std::thread::Builder::new().spawn_scoped(scope, record));
            let paths = records::paths(tests);
            let recorded = thread.map(|thread| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => record(),
            });
            (paths, recorded)
        });
        match recorded {
            None => {}
            Some(Ok(warnings)) => warnings.iter().for_each(|warning| diagnostics.take(warning, &levels)),
            Some(Err(malformed)) => diagnostics.take(&malformed.diagnostic(), &levels),
        }
        let records = records::records(tests, &paths, own, options.relative_paths.then_some(cwd));
        self.write_console(&mut out, &records);
        if options.reports.github {
            let root = std::env::var_os("GITHUB_WORKSPACE").map_or_else(|| cwd.to_path_buf(), Into::into);
            let file = |place: usize| tests[place].file_path();
            github::write(&mut out, &records, &discovered.verdicts, &file, &root);
        }
        let reports_failed = self.write_reports(records, workers, &mut diagnostics);
        if let Err(warning) = plan.finish() {
            diagnostics.take(&plain(Severity::Warning, warning), &levels);
        }
        let lost = exit_code::lost(&mut out).map(|why| diagnostics.put(&format!("{why}\n"))).is_some();
        let failed = own.iter().any(|outcome| discovered.verdicts.kind(outcome.verdict).is_failure);
        // The process ends, so the system frees at once what would take milliseconds piece by piece.
        std::mem::forget((single, outcomes, paths));
        exit(options, discovered, &mut diagnostics, failed, reports_failed || lost)
    }

    /// Writes the times that were asked for, and the summary.
    fn write_console(&self, out: &mut Sink, records: &[TestRecord<'_>]) {
        let Conclusion { options, discovered, .. } = *self;
        if let Some(slowest) = options.time_tests {
            histogram::write(out, records, slowest, discovered.session.dialect);
        }
        if options.own.time_by.contains(&TimeBy::Directory) {
            time_by::write_directories(out, records);
        }
        if let Some(times) = self.tool_times.filter(|_| options.own.time_by.contains(&TimeBy::Tool)) {
            time_by::write_tools(out, tool_rows(times));
        }
        let shown = shown_codes(options, discovered);
        let terse = options.console.levels(discovered.session.dialect).terse_summary;
        let contents = summary::Contents { shown_codes: &shown, terse, elapsed: self.elapsed };
        summary::write(out, records, &contents, &discovered.verdicts);
    }

    /// Writes the reports, and returns whether one could not be written. With shards, they contain only the selected tests.
    fn write_reports(
        &self,
        mut records: Vec<TestRecord<'_>>,
        workers: usize,
        diagnostics: &mut Diagnostics,
    ) -> bool {
        let Conclusion { options, discovered, .. } = *self;
        if options.shard.is_some() {
            records.retain(|record| record.outcome.verdict != Verdict::EXCLUDED);
        }
        let run = files::Run {
            elapsed: self.elapsed,
            lit_version: discovered.session.lit_version,
            dialect: discovered.session.dialect,
            table: &discovered.verdicts,
            end: self.end,
            skip_reasons: options.reports.skip_reasons,
            line_times: options.reports.line_times,
        };
        let page = options.reports.html.as_ref().map(|path| {
            let mut facts = Facts { workers, ..(self.facts)() };
            facts.phases.push(("running tests", self.elapsed));
            files::write_page(path, &records, &run, &facts)
        });
        let mut errors = files::write(&options.reports, records, &run);
        errors.extend(page.and_then(Result::err));
        for error in &errors {
            diagnostics.put(&format!("error: {error}\n"));
        }
        !errors.is_empty()
    }
}

/// Converts the times of tools for reports.
pub(super) fn tool_rows(times: &ToolTimes) -> Vec<ToolRow> {
    let row = |(name, ToolTime { runs, cpu, wall })| ToolRow { name, runs, cpu, wall };
    times.sorted().into_iter().map(row).collect()
}

fn record_times(
    discovered: &Discovered,
    outcomes: &[Arc<hotstart_model::Outcome>],
) -> Result<Vec<Diagnostic>, times::Malformed> {
    let finished = discovered.tests.iter().zip(outcomes).filter_map(|(test, outcome)| {
        let failed = discovered.verdicts.kind(outcome.verdict).is_failure;
        outcome.elapsed.map(|elapsed| (test, elapsed, failed))
    });
    times::record(finished, discovered.session.dialect, &discovered.times)
}

fn shown_codes(options: &LitOptions, discovered: &Discovered) -> Vec<Verdict> {
    let named = |name: &str| options.shown_codes.contains(&name);
    discovered.verdicts.iter().filter(|(_, kind)| named(&kind.name)).map(|(verdict, _)| verdict).collect()
}

fn exit(
    options: &LitOptions,
    discovered: &Discovered,
    diagnostics: &mut Diagnostics,
    failed: bool,
    reports_failed: bool,
) -> ExitCode {
    let counts = diagnostics.counts();
    if counts.errors > 0 || discovered.counts.given_up > 0 {
        diagnostics.put(&messages::errors_in_tests(counts.errors.max(discovered.counts.given_up)));
        return exit_code::exit(ERROR);
    }
    // lit counts the warnings that `--diagnostic-level` hides, too. Those of the discovery were never reported, so `counts` lacks them.
    let levels = options.console.levels(discovered.session.dialect);
    let hidden = if levels.diagnostics.shows(Severity::Warning) { 0 } else { discovered.counts.warnings };
    let warnings = counts.warnings + hidden;
    if warnings > 0 {
        diagnostics.put(&messages::warnings_in_tests(warnings));
    }
    if reports_failed {
        return exit_code::exit(ERROR);
    }
    match (failed, options.ignore_fail) {
        (false, _) => exit_code::exit(SUCCESS),
        (true, false) => exit_code::exit(FAILURE),
        (true, true) => {
            diagnostics.put(messages::failures_ignored());
            exit_code::exit(SUCCESS)
        }
    }
}

fn plain(severity: Severity, message: String) -> Diagnostic {
    Diagnostic { severity, place: None, message }
}

/// Returns the times of the phases before the first test (`--debug-times`).
pub(super) fn times_of_discovery(timing: &Timing, whole: Duration) -> String {
    let mut text = String::new();
    let mut line = |what: &str, time: Duration| {
        let _ = writeln!(text, "hotstart: {what}: {:.1} ms", time.as_secs_f64() * 1e3);
    };
    line("discovery", whole);
    line("of it waiting for Python", timing.waited);
    line("of it after Python's last answer", timing.after_last_answer);
    text
}
