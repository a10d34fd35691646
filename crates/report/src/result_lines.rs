//! Writes the result line of a test that has ended, and below it output, metrics and micro-tests.
//!
//! The text is lit's to the byte, in both dialects: editors and CI systems parse it.

use hotstart_model::{Dialect, MetricValue, Outcome, VerdictTable};

use crate::filecheck;
use crate::{Levels, Sink, colors};
use hotstart_python::json::Json;
use hotstart_python::number::fixed;

const STARS_20: &str = "********************";
const STARS_10: &str = "**********";

/// A test that has ended.
pub(crate) struct Ended<'a> {
    pub name: &'a str,
    pub outcome: &'a Outcome,
    /// Number of tests that have ended, this one included, and number of all tests.
    pub place: (u32, u32),
}

/// Writes everything that is shown of a test.
pub(crate) fn write(to: &mut Sink, test: &Ended<'_>, levels: &Levels, table: &VerdictTable) {
    let Ended { name, outcome, place: (completed, total) } = *test;
    let kind = table.kind(outcome.verdict);
    let attempts = match (levels.dialect, outcome.attempts) {
        (Dialect::V23, (made, allowed)) if made > 1 => format!(", {made} of {allowed} attempts"),
        _ => String::new(),
    };
    // lit's lines have no colours. Programs that parse them do not read the live view.
    let (color, normal) = match levels.live && levels.colors && kind.is_failure {
        true => (colors::RED, colors::NORMAL),
        false => ("", ""),
    };
    to.line(&format!("{color}{}{normal}: {name} ({completed} of {total}{attempts})", kind.name));
    write_diagnosis(to, outcome, levels.colors);

    let shows_output = levels.output.includes(outcome, table);
    if shows_output {
        if kind.is_failure {
            to.line(&format!("{STARS_20} TEST '{name}' FAILED {STARS_20}"));
        }
        to.line(&outcome.output);
    }
    match levels.dialect {
        Dialect::V19 => write_details_v19(to, test, shows_output),
        Dialect::V23 => write_details_v23(to, test, shows_output),
    }
}

/// Writes which command failed, if requested, and what FileCheck expected beside what it found.
fn write_diagnosis(to: &mut Sink, outcome: &Outcome, colors: bool) {
    let mut lines = outcome.diagnosis.lines();
    if let Some(first) = lines.next() {
        let [bold, red, normal] =
            [colors::BOLD, colors::RED, colors::NORMAL].map(|s| colors::only_if(colors, s));
        to.line(&format!("{bold}{red}{first}{normal}"));
    }
    lines.for_each(|line| to.line(line));
    if !outcome.diagnosis.is_empty() {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let checks = filecheck::failures(&outcome.output, &read);
        checks.iter().flat_map(filecheck::Check::text).for_each(|line| to.line(&line));
    }
}

/// Older lits close each section separately.
fn write_details_v19(to: &mut Sink, test: &Ended<'_>, shows_output: bool) {
    if shows_output {
        to.line(STARS_20);
    }
    if !test.outcome.metrics.is_empty() {
        write_metrics(to, test);
        to.line(STARS_10);
    }
    write_micro_results(to, test.outcome);
}

/// lit 23 puts a line between sections and one below the last.
fn write_details_v23(to: &mut Sink, test: &Ended<'_>, mut has_section: bool) {
    if test.outcome.updates.iter().any(|said| !said.is_empty()) {
        if has_section {
            to.line(STARS_10);
        }
        has_section = true;
        write_updates(to, test.outcome);
    }
    if !test.outcome.metrics.is_empty() {
        if has_section {
            to.line(STARS_10);
        }
        has_section = true;
        write_metrics(to, test);
    }
    if !test.outcome.micro_results.is_empty() {
        if has_section {
            to.line(STARS_10);
        }
        has_section = true;
        write_micro_results(to, test.outcome);
    }
    if has_section {
        to.line(STARS_20);
    }
}

fn write_updates(to: &mut Sink, outcome: &Outcome) {
    for (index, said) in outcome.updates.iter().enumerate().filter(|(_, said)| !said.is_empty()) {
        if outcome.attempts.0 > 1 {
            to.line(&format!("[Attempt {}]", index + 1));
        }
        to.line(said);
    }
}

fn write_metrics(to: &mut Sink, test: &Ended<'_>) {
    to.line(&format!("{STARS_10} TEST '{}' RESULTS {STARS_10}", test.name));
    for (name, value) in sorted(&test.outcome.metrics) {
        to.line(&format!("{name}: {} ", format_metric(value)));
    }
}

fn write_micro_results(to: &mut Sink, outcome: &Outcome) {
    for (name, micro) in sorted(&outcome.micro_results) {
        to.line(&format!("*** MICRO-TEST: {name}"));
        for (name, value) in sorted(&micro.metrics) {
            to.line(&format!("    {name}:  {} ", format_metric(value)));
        }
    }
}

fn sorted<T>(named: &[(String, T)]) -> Vec<&(String, T)> {
    let mut named: Vec<_> = named.iter().collect();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    named
}

fn format_metric(value: &MetricValue) -> String {
    match value {
        MetricValue::Int(value) => value.to_string(),
        MetricValue::Real(value) => fixed(*value, 4),
        MetricValue::Json(text) => Json::from_text(text).indented(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shown;
    use crate::sink::tests::Captured;
    use hotstart_model::Verdict;

    fn written(outcome: &Outcome, levels: &Levels) -> String {
        let captured = Captured::default();
        let test = Ended { name: "s :: a.ll", outcome, place: (2, 10) };
        write(&mut captured.sink(), &test, levels, &VerdictTable::default());
        captured.text()
    }

    fn with_metrics() -> Outcome {
        let mut micro = Outcome::decided(Verdict::PASS, "");
        micro.metrics.push(("m".into(), MetricValue::Real(0.25)));
        let mut outcome = Outcome::decided(Verdict::PASS, "out");
        outcome.metrics.push(("size".into(), MetricValue::Int(3)));
        outcome.metrics.push(("obj".into(), MetricValue::Json(r#"{"b": [], "a": [1, 2.5]}"#.into())));
        outcome.micro_results.push(("one".into(), micro));
        outcome
    }

    #[test]
    fn a_result_line_alone() {
        let mut outcome = Outcome::decided(Verdict::FLAKYPASS, "out");
        outcome.attempts = (2, 3);
        let levels = Levels::default();
        assert_eq!(written(&outcome, &levels), "FLAKYPASS: s :: a.ll (2 of 10, 2 of 3 attempts)\n");
        let older = Levels { dialect: Dialect::V19, ..levels };
        assert_eq!(written(&outcome, &older), "FLAKYPASS: s :: a.ll (2 of 10)\n");
    }

    #[test]
    fn output_of_failures_has_a_headline() {
        let levels = Levels { output: Shown::All, ..Levels::default() };
        assert_eq!(
            written(&Outcome::decided(Verdict::FAIL, "line\n"), &levels),
            "FAIL: s :: a.ll (2 of 10)\n******************** TEST 's :: a.ll' FAILED ********************\n\
             line\n\n********************\n"
        );
        assert_eq!(
            written(&Outcome::decided(Verdict::PASS, ""), &levels),
            "PASS: s :: a.ll (2 of 10)\n\n********************\n"
        );
    }

    #[test]
    fn only_failures_show_output_with_v() {
        let levels = Levels { output: Shown::Failed, ..Levels::default() };
        assert_eq!(written(&Outcome::decided(Verdict::XFAIL, "x"), &levels), "XFAIL: s :: a.ll (2 of 10)\n");
        let mut retried = Outcome::decided(Verdict::FLAKYPASS, "x");
        retried.attempts = (2, 2);
        let flaky = Levels { output: Shown::FailedOrFlaky, ..levels };
        assert!(written(&retried, &flaky).ends_with("\nx\n********************\n"));
    }

    #[test]
    fn what_updaters_said_follows_the_output() {
        let mut outcome = Outcome::decided(Verdict::FIXED, "out");
        outcome.updates = vec!["changed a".into(), String::new()];
        assert_eq!(
            written(&outcome, &Levels::default()),
            "FIXED: s :: a.ll (2 of 10)\nchanged a\n********************\n"
        );
        outcome.attempts = (2, 2);
        let levels = Levels { output: Shown::All, ..Levels::default() };
        assert_eq!(
            written(&outcome, &levels),
            "FIXED: s :: a.ll (2 of 10, 2 of 2 attempts)\nout\n**********\n[Attempt 1]\nchanged a\n\
             ********************\n"
        );
    }

    #[test]
    fn sections_of_lit_23() {
        let levels = Levels { output: Shown::All, ..Levels::default() };
        assert_eq!(
            written(&with_metrics(), &levels),
            "PASS: s :: a.ll (2 of 10)\nout\n**********\n********** TEST 's :: a.ll' RESULTS **********\n\
             obj: {\n  \"a\": [\n    1,\n    2.5\n  ],\n  \"b\": []\n} \nsize: 3 \n**********\n\
             *** MICRO-TEST: one\n    m:  0.2500 \n********************\n"
        );
    }

    #[test]
    fn sections_of_lit_19() {
        let levels = Levels { dialect: Dialect::V19, ..Levels::default() };
        assert_eq!(
            written(&with_metrics(), &levels),
            "PASS: s :: a.ll (2 of 10)\n********** TEST 's :: a.ll' RESULTS **********\n\
             obj: {\n  \"a\": [\n    1,\n    2.5\n  ],\n  \"b\": []\n} \nsize: 3 \n**********\n\
             *** MICRO-TEST: one\n    m:  0.2500 \n"
        );
    }
}
