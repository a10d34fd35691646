//! Turns a script's transcript into the test's verdict.
//!
//! The rules are those of lit's TestRunner: fault, timeout, XFAIL, retries. This neither runs scripts nor prints, so each rule is a
//! function of its inputs.

use std::time::Duration;

use hotstart_model::{Command, Dialect, Fault, Interpreter, Outcome, Script, Transcript, Verdict};

use crate::exception::{self, Exception};
use crate::line_times;
use crate::render::{self, Scene, View};
use crate::script::Request;

/// A test's data while its script runs.
#[derive(Debug)]
pub struct Pending {
    commands: Vec<Command>,
    dialect: Dialect,
    external: bool,
    timeout: Option<Duration>,
    output_limit: i64,
    /// Whether the test is expected to fail, or the error in its XFAIL.
    expected_to_fail: Result<bool, String>,
    attempts: u32,
    annotate: bool,
    line_times: bool,
    /// Messages of updaters, by attempt; empty without `--update-tests`.
    updates: Vec<String>,
    /// Data for a diagnosis of its failure, if requested.
    scene: Option<Scene>,
}

/// lit's limit for the text of one stage, unless `-D output_limit` says otherwise.
const OUTPUT_LIMIT: i64 = 10240;

impl Pending {
    pub(crate) fn new(
        request: &Request<'_>,
        script: &Script,
        expected_to_fail: Result<bool, String>,
        attempts: u32,
    ) -> Self {
        let limit = request.session.params.get("output_limit").and_then(|limit| limit.parse().ok());
        Pending {
            commands: script.commands.clone(),
            dialect: script.dialect,
            external: matches!(script.interpreter, Interpreter::External(_)),
            timeout: script.timeout,
            output_limit: limit.unwrap_or(OUTPUT_LIMIT),
            expected_to_fail,
            attempts,
            annotate: request.annotate,
            line_times: request.line_times,
            updates: Vec::new(),
            scene: request.session.diagnose.clone().map(|outside| Scene::new(script, outside)),
        }
    }

    /// Returns whether updaters are called for commands that failed.
    pub(crate) fn can_be_updated(&self, transcript: &Transcript) -> bool {
        let is_settled = transcript.fault.is_none() && !transcript.timed_out;
        !self.external && is_settled && self.expected_to_fail == Ok(false)
    }

    /// Records the updaters' message after an attempt.
    pub(crate) fn note_update(&mut self, said: String) {
        self.updates.push(said);
    }

    /// Returns the outcome of a test whose updater raised an exception after `steps` steps of the transcript.
    pub(crate) fn failed_update(&self, transcript: &Transcript, steps: usize, trace: &str) -> Outcome {
        let seen = Transcript { steps: transcript.steps[..steps].to_vec(), ..Transcript::default() };
        let seen = render::trace(&self.view(&seen), &seen);
        let output = format!("{seen}Exception occurred in test updater:\n{trace}");
        Outcome::decided(Verdict::UNRESOLVED, output)
    }

    /// Returns the commands, for reports of hotstart's own.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Returns whether the test is expected to fail.
    pub fn is_expected_to_fail(&self) -> bool {
        self.expected_to_fail == Ok(true)
    }

    fn view(&self, transcript: &Transcript) -> View<'_> {
        View {
            commands: &self.commands,
            dialect: self.dialect,
            external: self.external && !transcript.run_by.is_internal(),
            timeout: self.timeout,
            output_limit: self.output_limit,
        }
    }
}

/// Returns the outcome of an attempt, counted from 1; `None` if another attempt follows.
pub fn conclude(
    pending: &Pending,
    attempt: u32,
    transcript: &Transcript,
    wants_output: bool,
) -> Option<Outcome> {
    let mut verdict = verdict(transcript);
    if verdict == Verdict::FAIL && attempt < pending.attempts {
        return None;
    }
    if verdict == Verdict::PASS && attempt > 1 {
        let is_updated = pending.updates.iter().any(|said| !said.is_empty());
        verdict = if is_updated { Verdict::FIXED } else { Verdict::FLAKYPASS };
    }
    let output = if wants_output { output(pending, transcript) } else { String::new() };
    let (verdict, output) = settle(verdict, output, &pending.expected_to_fail);
    let mut outcome = Outcome::decided(verdict, output);
    outcome.attempts = (attempt, pending.attempts);
    outcome.updates.clone_from(&pending.updates);
    let failed = matches!(verdict, Verdict::FAIL | Verdict::TIMEOUT | Verdict::UNRESOLVED);
    if let Some(scene) = pending.scene.as_ref().filter(|_| failed && wants_output) {
        outcome.diagnosis = scene.diagnosis(&pending.commands, transcript);
    }
    if pending.annotate && failed && wants_output {
        let summary = render::failure_summary(&pending.commands, transcript);
        outcome.blame = summary.map(|summary| summary.to_string()).unwrap_or_default();
    }
    if pending.line_times {
        outcome.lines = line_times::of(&pending.commands, transcript);
    }
    Some(outcome)
}

/// Returns the output of an attempt that `-v` shows.
pub(crate) fn shown(pending: &Pending, transcript: &Transcript) -> String {
    output(pending, transcript)
}

/// As [`shown`], for a script of a test format written in Python.
pub(crate) fn shown_of_delegated(dialect: Dialect, transcript: &Transcript) -> String {
    match &transcript.fault {
        None => {
            let external = transcript.steps.is_empty();
            let view = View { commands: &[], dialect, external, timeout: None, output_limit: OUTPUT_LIMIT };
            render::output(&view, transcript)
        }
        Some(fault) => of_fault(fault).1,
    }
}

fn verdict(transcript: &Transcript) -> Verdict {
    match &transcript.fault {
        Some(Fault::Interrupted) => Verdict::SKIPPED,
        Some(Fault::Parse { .. } | Fault::Exception { .. } | Fault::Internal(_)) => Verdict::UNRESOLVED,
        None if transcript.exit_code == Some(0) => Verdict::PASS,
        None if transcript.timed_out => Verdict::TIMEOUT,
        None => Verdict::FAIL,
    }
}

fn output(pending: &Pending, transcript: &Transcript) -> String {
    match &transcript.fault {
        Some(Fault::Parse { .. }) | None => render::output(&pending.view(transcript), transcript),
        Some(fault) => of_fault(fault).1,
    }
}

/// Returns verdict and output of a test whose script ended by a fault, without a status.
pub(crate) fn of_fault(fault: &Fault) -> (Verdict, String) {
    let output = match fault {
        Fault::Parse { message, .. } => message.clone(),
        Fault::Exception { kind, message } => exception::test_output(&Exception::new(kind, message)),
        Fault::Internal(what) => format!(
            "hotstart could not run this test, for a reason of its own: {what}\n\
             This says nothing about the test. Please report it.\n"
        ),
        Fault::Interrupted => return (Verdict::SKIPPED, String::new()),
    };
    (Verdict::UNRESOLVED, output)
}

/// Applies XFAIL to a verdict.
pub(crate) fn settle(verdict: Verdict, output: String, expected: &Result<bool, String>) -> (Verdict, String) {
    match (expected, verdict) {
        (Err(text), _) => (Verdict::UNRESOLVED, text.clone()),
        (Ok(true), Verdict::PASS) => (Verdict::XPASS, output),
        (Ok(true), Verdict::FAIL) => (Verdict::XFAIL, output),
        (Ok(_), verdict) => (verdict, output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(expected_to_fail: Result<bool, String>, attempts: u32) -> Pending {
        Pending {
            commands: vec![Command { label: "RUN: at line 1".into(), text: "false".into() }],
            dialect: Dialect::V23,
            external: false,
            timeout: None,
            output_limit: OUTPUT_LIMIT,
            expected_to_fail,
            attempts,
            annotate: false,
            line_times: false,
            updates: Vec::new(),
            scene: None,
        }
    }

    fn code(exit_code: i32) -> Transcript {
        Transcript { exit_code: Some(exit_code), ..Transcript::default() }
    }

    fn judged(pending: &Pending, attempt: u32, transcript: &Transcript) -> Option<Verdict> {
        conclude(pending, attempt, transcript, false).map(|outcome| outcome.verdict)
    }

    #[test]
    fn expectations_turn_pass_and_fail_only() {
        let expected = pending(Ok(true), 1);
        assert_eq!(judged(&expected, 1, &code(1)), Some(Verdict::XFAIL));
        assert_eq!(judged(&expected, 1, &code(0)), Some(Verdict::XPASS));
        let late = Transcript { timed_out: true, ..code(-9) };
        assert_eq!(judged(&expected, 1, &late), Some(Verdict::TIMEOUT));
        let fault = Fault::Parse { command: 0, message: String::new() };
        let unparsed = Transcript { fault: Some(fault), ..code(1) };
        assert_eq!(judged(&expected, 1, &unparsed), Some(Verdict::UNRESOLVED));
        let broken = conclude(&pending(Err("Error in XFAIL list:\n".into()), 1), 1, &code(0), false).unwrap();
        assert_eq!((broken.verdict, broken.output.as_str()), (Verdict::UNRESOLVED, "Error in XFAIL list:\n"));
    }

    #[test]
    fn blame_stands_beside_lits_output() {
        use hotstart_model::Step;
        let command = Command { label: "RUN: at line 7".into(), text: "tool".into() };
        let pending = Pending { commands: vec![command], annotate: true, ..pending(Ok(false), 1) };
        let failed = Transcript { steps: vec![Step::Begin(0)], ..code(1) };
        let outcome = conclude(&pending, 1, &failed, true).unwrap();
        assert_eq!(outcome.blame, "RUN: at line 7 could not be run");
        assert!(!outcome.output.contains("hotstart"), "{}", outcome.output);
        assert_eq!(conclude(&pending, 1, &code(0), true).unwrap().blame, "");
    }

    #[test]
    fn only_failures_are_retried() {
        let pending = pending(Ok(false), 2);
        assert_eq!(judged(&pending, 1, &code(1)), None);
        assert_eq!(judged(&pending, 2, &code(1)), Some(Verdict::FAIL));
        assert_eq!(judged(&pending, 2, &code(0)), Some(Verdict::FLAKYPASS));
        let late = Transcript { timed_out: true, ..Transcript::default() };
        assert_eq!(judged(&pending, 1, &late), Some(Verdict::TIMEOUT));
        let outcome = conclude(&pending, 2, &code(0), false).unwrap();
        assert_eq!(outcome.attempts, (2, 2));
    }

    #[test]
    fn a_pass_after_an_update_is_a_fix() {
        let mut pending = pending(Ok(false), 2);
        pending.note_update("copied".into());
        pending.note_update(String::new());
        let outcome = conclude(&pending, 2, &code(0), false).unwrap();
        assert_eq!((outcome.verdict, outcome.updates[0].as_str()), (Verdict::FIXED, "copied"));
        assert_eq!(judged(&pending, 2, &code(1)), Some(Verdict::FAIL));
        assert_eq!(judged(&pending, 1, &code(0)), Some(Verdict::PASS));
    }

    #[test]
    fn a_timeout_that_came_after_success_is_none() {
        let late = Transcript { timed_out: true, ..code(0) };
        assert_eq!(judged(&pending(Ok(false), 1), 1, &late), Some(Verdict::PASS));
    }
}
