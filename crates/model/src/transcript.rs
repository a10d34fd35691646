//! The record of a script's run, in the order of events.
//!
//! It is structured data, not text: `lit` renders it in lit's words, only if somebody will read it.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::Environment;

/// How a stage or a script ended, in lit's numbering: the exit code, or minus the number of the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Exited with this code.
    Exited(i32),
    /// Died from this signal.
    Signaled(i32),
}

impl Status {
    /// Success, code 0.
    pub const OK: Status = Status::Exited(0);

    /// Returns lit's number: `-11` for a segmentation fault.
    pub fn code(self) -> i32 {
        match self {
            Status::Exited(code) => code,
            Status::Signaled(signal) => -signal,
        }
    }

    /// Whether it is exit code 0.
    pub fn success(self) -> bool {
        self == Status::OK
    }
}

/// The content of a file that a failing stage's output was redirected to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedirectedOutput {
    /// The name as written in the script.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its bytes after the stage ended.
    pub data: Vec<u8>,
}

/// One stage of a pipeline, or a builtin, or an error of the shell itself (status 127 with the error in `stderr`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The words after lexing and before globbing, with `env`/`not` words and without redirections.
    pub args: Vec<String>,
    /// The captured standard output, with newlines translated as lit does. For a stage that is not the last: the part
    /// that the next one did not read.
    pub stdout: String,
    /// The captured standard error.
    pub stderr: String,
    /// The status after negation by `not`.
    pub status: i32,
    /// How the process itself ended, or what ran in its place. `None` for a command of the shell's own.
    pub process: Option<Status>,
    /// Whether the script's time was up when this stage ended.
    pub timed_out: bool,
    /// The files that received output. Filled for a failing stage only.
    pub redirected: Vec<RedirectedOutput>,
    /// The index of its pipeline, counted from 0 over the whole script.
    pub pipeline: usize,
    /// The place in its pipeline, counted from 0, and the number of stages there.
    pub position: (usize, usize),
    /// Wall time from the start of its pipeline to the stage's end.
    pub wall: Duration,
    /// CPU time of its process, and of the processes that this process waited for.
    pub cpu: Duration,
}

/// An entry of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The command with this index begins.
    Begin(usize),
    /// A stage ended.
    Stage(Stage),
}

/// The reason why a script ended without a status of its own. lit reports such tests as UNRESOLVED.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// A command could not be parsed, and nothing was run.
    Parse {
        /// The index into the script's commands.
        command: usize,
        /// The error, as the parser describes it.
        message: String,
    },
    /// A Python exception during execution in lit: its type and message, for example `FileNotFoundError` and
    /// `[Errno 2] No such file or directory: 'x'`.
    Exception {
        /// Python's exception type.
        kind: String,
        /// Its message.
        message: String,
    },
    /// hotstart itself failed (out of descriptors, out of memory). It is never blamed on the test.
    Internal(String),
    /// The run was interrupted while this script ran.
    Interrupted,
}

/// The bytes that one stage wrote to the next, recorded only if the script requests it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// The index of the pipeline in the script, counted from 0.
    pub pipeline: usize,
    /// The index of the stage that wrote this, counted from 0.
    pub stage: usize,
    /// All bytes.
    pub data: Vec<u8>,
}

/// A pipeline that failed, in the form in which a user can type it into another shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// The pipeline in the language of POSIX shells.
    pub command: String,
    /// Whether it has more than one stage.
    pub is_piped: bool,
    /// The directory in which it ran.
    pub cwd: PathBuf,
    /// Its environment.
    pub env: Arc<Environment>,
}

/// The shell that interpreted a script which requests an external shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunBy {
    /// The shell that the script requests.
    #[default]
    AsAsked,
    /// The internal shell, because the script means the same in both.
    Native,
    /// The internal shell, until it turned out that the script may not mean the same in both, for this reason. The run counts for nothing.
    Doubted(&'static str),
    /// The external shell, although the internal one was allowed, for this reason.
    Refused(&'static str),
}

impl RunBy {
    /// Returns whether the internal shell ran the script.
    pub fn is_internal(&self) -> bool {
        matches!(self, RunBy::Native | RunBy::Doubted(_))
    }
}

/// The record of one attempt at a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// In order of execution. Empty for a program, and for a script that an external shell interpreted.
    pub steps: Vec<Step>,
    /// Commands, by index, whose announced text differs from the written one, because the contents of files were
    /// inserted. `None` if such a file did not exist.
    pub announced: Vec<(usize, Option<String>)>,
    /// The script's status in lit's numbering. `None` if it has none (a fault, a timeout in an external script).
    pub exit_code: Option<i32>,
    /// Whether the time limit ended it.
    pub timed_out: bool,
    /// Set if there is no proper status.
    pub fault: Option<Fault>,
    /// The standard output of an external script or a program.
    pub stdout: String,
    /// The standard error of an external script or a program.
    pub stderr: String,
    /// The bytes that passed between stages, if the script asked for a pipe capture.
    pub captured: Vec<Captured>,
    /// The pipeline that made the internal shell end with a failure.
    pub again: Option<Box<Again>>,
    /// The shell that interpreted it, if there was a choice.
    #[serde(with = "native_or_not")]
    pub run_by: RunBy,
    /// CPU time of an external script or a program, and of all processes that it waited for.
    pub cpu: Duration,
    /// The number of its FileChecks that passed without a process.
    pub matched: usize,
    /// The number of its `cat`s and `diff`s that ran without a process. In a cold run these are processes.
    pub natives: usize,
    /// Whether a file changed between the time at which a command would have read it, and the time at which it was started.
    pub is_outdated: bool,
}

/// Hands a record on to another process: a reason is only counted, and stays where it arose.
mod native_or_not {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::RunBy;

    pub(super) fn serialize<S: Serializer>(by: &RunBy, to: S) -> Result<S::Ok, S::Error> {
        by.is_internal().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RunBy, D::Error> {
        Ok(if bool::deserialize(from)? { RunBy::Native } else { RunBy::AsAsked })
    }
}
