//! `--update-tests`: selects the failures for updaters, and applies their answers to the test.

use hotstart_model::{Command, Outcome, Step, Transcript, Verdict};

use super::{Helpers, Trouble};
use crate::probe::ProbeError;
use crate::probe::updaters::{Failure, Updated};
use crate::suite::Test;

/// The result of updaters.
#[derive(Debug)]
pub(crate) enum Update {
    /// Their message; may be empty.
    Said(String),
    /// An updater raised an exception: the number of steps of the transcript up to the failure, and the traceback.
    Raised(usize, String),
    /// They could not be called: the test's outcome, or `None` if the run was interrupted.
    Lost(Option<Box<Outcome>>),
}

impl Helpers<'_> {
    /// Lets updaters change a test if any of its commands failed, even if its script passed.
    pub fn update(&self, test: &Test, commands: &[Command], transcript: &Transcript) -> Update {
        let (steps, failures) = failures(transcript);
        if failures.is_empty() {
            return Update::Said(String::new());
        }
        let Some((launcher, group)) = self.starter else {
            return lost("Tests cannot be updated here: no Python helper may be started.\n".to_owned());
        };
        let updated = self.with_helper(launcher, group, |helper| {
            helper.assigned(test, &self.origins, |probe, assignment| {
                probe.update(assignment, commands, &failures)
            })
        });
        if group.is_killed() {
            return Update::Lost(None);
        }
        match updated {
            Ok(Updated::Said(said)) => Update::Said(said),
            Ok(Updated::Raised(index, trace)) => {
                Update::Raised(steps.get(index).copied().unwrap_or(transcript.steps.len()), trace)
            }
            Err(Trouble::Said(text)) => lost(text),
            Err(Trouble::Lost(ProbeError::Ended(_))) => {
                lost("The Python process of this test's updaters has ended; an updater must not end its process.\n".to_owned())
            }
            Err(Trouble::Lost(error)) => lost(format!("{error}\n")),
        }
    }
}

fn lost(text: String) -> Update {
    Update::Lost(Some(Box::new(Outcome::decided(Verdict::UNRESOLVED, text))))
}

/// Returns the number of steps up to the end of each command that failed, and these commands.
pub(super) fn failures(transcript: &Transcript) -> (Vec<usize>, Vec<Failure<'_>>) {
    let mut command = 0;
    let mut found = (Vec::new(), Vec::new());
    for (index, step) in transcript.steps.iter().enumerate() {
        match step {
            Step::Begin(begun) => command = *begun,
            Step::Stage(stage) if stage.status != 0 => {
                found.0.push(index + 1);
                found.1.push(Failure { command, stage });
            }
            Step::Stage(_) => {}
        }
    }
    found
}
