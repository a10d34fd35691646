//! Lets test updaters change a test, in the helper (`--update-tests`).
//!
//! Updaters are Python functions. This module and its caller decide on their arguments, and on the effect of their
//! answers on the test.

use std::path::PathBuf;

use hotstart_model::{Command, Stage};

use super::execute::{Assignment, request};
use super::wire::{Request, Text};
use super::{Probe, ProbeError};

/// A command that failed, and the index of the script's command that it is a part of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure<'a> {
    pub command: usize,
    pub stage: &'a Stage,
}

/// The result of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Updated {
    /// The last updater's message; may be empty.
    Said(String),
    /// An updater raised an exception at the failure of this index; its traceback.
    Raised(usize, String),
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct UpdateWire {
    said: Text,
    raised: Option<(usize, Text)>,
}

impl Probe<'_> {
    /// Calls the updaters. The inner error is the reason why they could not be called.
    pub(crate) fn update(
        &mut self,
        assignment: &Assignment<'_>,
        commands: &[Command],
        failures: &[Failure<'_>],
    ) -> Result<Result<Updated, String>, ProbeError> {
        let file = assignment.suite.source_root.join(assignment.components.iter().collect::<PathBuf>());
        let lines: Vec<String> = commands.iter().map(line).collect();
        let request = request("update", assignment)
            .list("lines", lines.iter().map(String::as_bytes))
            .objects("failures", failures.iter().map(|failure| Described::new(failure).0));
        let reply = self.ask(request, &file)?;
        match (reply.update, reply.error) {
            (_, Some(failure)) => Ok(Err(failure.text.into_string())),
            (Some(UpdateWire { raised: Some((index, trace)), .. }), _) => {
                Ok(Ok(Updated::Raised(index, trace.into_string())))
            }
            (Some(update), _) => Ok(Ok(Updated::Said(update.said.into_string()))),
            (None, None) => Err(ProbeError::Malformed("an update without an answer".into())),
        }
    }
}

/// Formats a command as lit's functions pass it: with the space after `RUN:`.
fn line(command: &Command) -> String {
    let space = if command.label.starts_with("RUN:") { " " } else { "" };
    format!("%dbg({}) {space}{}", command.label, command.text)
}

/// A failure in the helper's format.
#[derive(Debug)]
pub(crate) struct Described(Request);

impl Described {
    pub fn new(failure: &Failure<'_>) -> Self {
        let stage = failure.stage;
        let redirected = stage.redirected.iter().map(|file| {
            [file.name.as_bytes(), file.path.as_os_str().as_encoded_bytes(), file.data.as_slice()]
        });
        let request = Request::new()
            .raw("line", failure.command)
            .list("args", stage.args.iter().map(String::as_bytes))
            .raw("position", stage.position.0)
            .raw("stages", stage.position.1)
            .text("stdout", &stage.stdout)
            .text("stderr", &stage.stderr)
            .raw("status", stage.status)
            .raw("timed_out", stage.timed_out)
            .lists("redirected", redirected);
        Described(request)
    }

    /// Adds the trace of the script up to the failure.
    pub fn seen(self, trace: &str) -> Self {
        Described(self.0.text("seen", trace))
    }

    pub(super) fn into_request(self) -> Request {
        self.0
    }
}
