//! Summarizes a failure in hotstart's words: the RUN line, the stages of its pipeline that failed, and how they ended.

use std::fmt;

use hotstart_model::{Command, Fault, Stage, Status, Step, Transcript};
use hotstart_python::shlex;

/// The command that made a script fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureSummary {
    /// Label of the command: `RUN: at line 3`.
    pub label: String,
    /// Its text.
    pub command: String,
    /// The stages that failed, from left to right; empty if none was run.
    pub stages: Vec<FailedStage>,
    /// Whether the script ran out of time.
    pub timed_out: bool,
}

/// A stage that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedStage {
    /// Place in its pipeline, from 1.
    pub number: usize,
    /// Stages in its pipeline.
    pub of: usize,
    /// Its words.
    pub args: Vec<String>,
    /// Its ending.
    pub ending: Ending,
}

/// The ending of a failing stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// With success, which the script did not expect.
    Succeeded,
    /// Without a process: a builtin's status, or an error of the shell.
    Status(i32),
}

/// Summarizes the failure; `None` if the script succeeded or no command can be blamed.
pub fn failure_summary(commands: &[Command], transcript: &Transcript) -> Option<FailureSummary> {
    let index = match &transcript.fault {
        Some(Fault::Parse { command, .. }) => Some(*command),
        Some(Fault::Internal(_) | Fault::Interrupted) => return None,
        Some(Fault::Exception { .. }) => last_begun(transcript),
        None if transcript.exit_code == Some(0) => return None,
        None => last_begun(transcript),
    };
    let command = commands.get(index?)?;
    let stages = if transcript.fault.is_none() { failed_stages(transcript) } else { Vec::new() };
    Some(FailureSummary {
        label: command.label.clone(),
        command: command.text.clone(),
        stages,
        timed_out: transcript.timed_out,
    })
}

fn last_begun(transcript: &Transcript) -> Option<usize> {
    transcript.steps.iter().rev().find_map(|step| match step {
        Step::Begin(index) => Some(*index),
        Step::Stage(_) => None,
    })
}

/// Returns the stages of the last pipeline that did not succeed. That pipeline decided the result.
fn failed_stages(transcript: &Transcript) -> Vec<FailedStage> {
    let stages = || {
        transcript.steps.iter().rev().map_while(|step| match step {
            Step::Stage(stage) => Some(stage),
            Step::Begin(_) => None,
        })
    };
    let Some(last) = stages().next().map(|stage| stage.pipeline) else { return Vec::new() };
    let failed = stages().filter(|stage| stage.pipeline == last && stage.status != 0);
    let mut failed: Vec<_> = failed.map(failed_stage).collect();
    failed.reverse();
    failed
}

fn failed_stage(stage: &Stage) -> FailedStage {
    let ending = match stage.process {
        Some(Status::Exited(0)) => Ending::Succeeded,
        Some(Status::Exited(code)) => Ending::Exited(code),
        Some(Status::Signaled(signal)) => Ending::Signaled(signal),
        None => Ending::Status(stage.status),
    };
    FailedStage {
        number: stage.position.0 + 1,
        of: stage.position.1.max(1),
        args: stage.args.clone(),
        ending,
    }
}

/// Longest command line that is shown.
const SHOWN: usize = 100;

impl fmt::Display for FailureSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)?;
        for (i, stage) in self.stages.iter().enumerate() {
            write!(f, "{}{stage}", if i == 0 { ", " } else { "; " })?;
        }
        if self.timed_out {
            f.write_str(": out of time")?;
        } else if self.stages.is_empty() {
            f.write_str(" could not be run")?;
        }
        Ok(())
    }
}

impl fmt::Display for FailedStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.args.iter().map(|word| shlex::quote(word)).collect();
        let mut shown: String = words.join(" ").replace(['\n', '\r'], " ");
        if let Some((end, _)) = shown.char_indices().nth(SHOWN) {
            shown.truncate(end);
            shown.push_str("...");
        }
        write!(f, "stage {} of {} ({shown}) ", self.number, self.of)?;
        match self.ending {
            Ending::Exited(code) => write!(f, "exited with {code}"),
            Ending::Signaled(signal) => match signal_name(signal) {
                Some(name) => write!(f, "was killed by {name}"),
                None => write!(f, "was killed by signal {signal}"),
            },
            Ending::Succeeded => f.write_str("exited with 0, but was to fail"),
            Ending::Status(status) => write!(f, "failed with status {status}"),
        }
    }
}

/// Returns the name of a Linux signal.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    usize::try_from(signal).ok()?.checked_sub(1).and_then(|index| NAMES.get(index).copied())
}
