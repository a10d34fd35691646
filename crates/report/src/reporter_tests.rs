//! Golden texts of whole runs, one for each level of verbosity.

use std::time::Duration;

use super::*;
use crate::Shown;
use crate::sink::tests::Captured;
use hotstart_model::{Dialect, Severity};

struct Names;

impl Catalog for Names {
    fn full_name(&self, job: JobId) -> String {
        format!("s :: t{}", job.0)
    }

    fn previous_elapsed(&self, _: JobId) -> f64 {
        0.0
    }
}

struct Run {
    out: Captured,
    err: Captured,
    reporter: Reporter<Names>,
}

impl Run {
    fn new(levels: Levels, keep_output: KeepOutput) -> Run {
        let (out, err) = (Captured::default(), Captured::default());
        let settings =
            Settings { levels, bar: Bar::Simple, discovered: 5, table: VerdictTable::default(), keep_output };
        let diagnostics = Diagnostics::new("lit", err.sink());
        let reporter = Reporter::new(Names, settings, out.sink(), diagnostics);
        Run { out, err, reporter }
    }

    fn finish(&self, job: u32, verdict: Verdict, output: &str) {
        let mut outcome = Outcome::decided(verdict, output);
        outcome.elapsed = Some(Duration::from_secs(1));
        let event = Event::Finished { job: JobId(job), completed: 0, outcome: Arc::new(outcome) };
        self.reporter.send(event);
    }

    fn all(levels: Levels) -> String {
        let run = Run::new(levels, KeepOutput::None);
        run.reporter.send(Event::RunStarted { jobs: 4, workers: 2 });
        run.finish(0, Verdict::PASS, "passed");
        run.finish(2, Verdict::FAIL, "failed");
        run.finish(1, Verdict::XFAIL, "as expected");
        run.finish(3, Verdict::PASS, "");
        run.reporter.send(Event::RunFinished { end: RunEnd::Completed });
        run.out.text()
    }
}

const HEADER: &str = "-- Testing: 4 of 5 tests, 2 workers --\n";

#[test]
fn by_default_a_line_for_each() {
    let lines =
        "PASS: s :: t0 (1 of 4)\nFAIL: s :: t2 (2 of 4)\nXFAIL: s :: t1 (3 of 4)\nPASS: s :: t3 (4 of 4)\n";
    assert_eq!(Run::all(Levels::default()), format!("{HEADER}{lines}"));
}

#[test]
fn verbose_adds_output_of_failures() {
    let text = Run::all(Levels { output: Shown::Failed, ..Levels::default() });
    assert!(text.contains(
        "FAIL: s :: t2 (2 of 4)\n******************** TEST 's :: t2' FAILED ********************\nfailed\n\
         ********************\nXFAIL"
    ));
    assert!(!text.contains("passed"));
}

#[test]
fn show_all_adds_output_of_all() {
    let text = Run::all(Levels { output: Shown::All, ..Levels::default() });
    assert!(text.starts_with(&format!("{HEADER}PASS: s :: t0 (1 of 4)\npassed\n********************\nFAIL")));
    assert!(text.ends_with("PASS: s :: t3 (4 of 4)\n\n********************\n"));
}

#[test]
fn quiet_shows_failures_or_nothing() {
    let quiet = Levels { results: Shown::Failed, ..Levels::default() };
    assert_eq!(Run::all(quiet.clone()), format!("{HEADER}FAIL: s :: t2 (2 of 4)\n"));
    assert_eq!(Run::all(Levels { results: Shown::Off, dialect: Dialect::V19, ..quiet }), "");
}

#[test]
fn succinct_draws_a_bar() {
    let levels = Levels { results: Shown::Failed, progress_bar: true, ..Levels::default() };
    let bar = "Testing:  0.. 10.. 20\nFAIL: s :: t2 (2 of 4)\n\
               Testing:  0.. 10.. 20.. 30.. 40.. 50.. 60.. 70.. 80.. 90.. \n";
    assert_eq!(Run::all(levels), format!("{HEADER}{bar}"));
}

#[test]
fn what_did_not_finish_is_skipped_and_said() {
    let run = Run::new(Levels::default(), KeepOutput::None);
    run.reporter.send(Event::RunStarted { jobs: 2, workers: 1 });
    run.finish(1, Verdict::PASS, "");
    run.reporter.send(Event::RunFinished { end: RunEnd::Interrupted });
    let verdicts: Vec<_> = run.reporter.into_results().outcomes.iter().map(|o| o.verdict).collect();
    assert_eq!(verdicts, [Verdict::SKIPPED, Verdict::PASS]);
    assert_eq!(run.err.text(), "", "why it ended is said once, with the summary");
}

#[test]
fn outputs_are_kept_for_those_who_read_them() {
    for (keep_output, expected) in
        [(KeepOutput::None, ["", ""]), (KeepOutput::OfFailures, ["", "f"]), (KeepOutput::OfAll, ["p", "f"])]
    {
        let run = Run::new(Levels::default(), keep_output);
        run.reporter.send(Event::RunStarted { jobs: 2, workers: 1 });
        run.finish(0, Verdict::PASS, "p");
        run.finish(1, Verdict::FAIL, "f");
        let results = run.reporter.into_results();
        let outputs: Vec<_> = results.outcomes.iter().map(|o| o.output.clone()).collect();
        assert_eq!(outputs, expected);
    }
}

#[test]
fn diagnostics_go_to_standard_error() {
    let run = Run::new(Levels::default(), KeepOutput::None);
    let diagnostic = Diagnostic { severity: Severity::Warning, place: None, message: "m".into() };
    run.reporter.send(Event::Diagnostic(diagnostic));
    assert_eq!(run.err.text(), "lit: warning: m\n");
    assert_eq!(run.reporter.into_results().diagnostic_counts().warnings, 1);
}

#[test]
fn what_failed_is_told_beside_the_output_it_belongs_to() {
    for (output, told) in [(Shown::Failed, "hotstart: s :: t0: RUN: at line 1\n"), (Shown::Off, "")] {
        let run = Run::new(Levels { output, ..Levels::default() }, KeepOutput::None);
        run.reporter.send(Event::RunStarted { jobs: 1, workers: 1 });
        let outcome = Outcome { blame: "RUN: at line 1".into(), ..Outcome::decided(Verdict::FAIL, "failed") };
        let event = Event::Finished { job: JobId(0), completed: 0, outcome: Arc::new(outcome) };
        run.reporter.send(event);
        assert_eq!(run.err.text(), told);
        assert!(!run.out.text().contains("hotstart"));
    }
}
