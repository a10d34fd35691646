//! What happened when a script ran, in the order in which it happened.
//!
//! Structured, not text: `lit` renders it the way lit words it, only for those who will read it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::Environment;

/// How a stage or a script ended, in lit's numbering: exit codes as they are, a death by signal as minus its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Exited with this code.
    Exited(i32),
    /// Died from this signal.
    Signaled(i32),
}

impl Status {
    /// Success, code 0.
    pub const OK: Status = Status::Exited(0);

    /// lit's one number for it: `-11` for a segmentation fault.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectedOutput {
    /// The name as written in the script.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its bytes after the stage ended.
    pub data: Vec<u8>,
}

/// One stage of a pipeline, or a builtin, or an error of the shell itself (status 127 with the error in `stderr`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The words after lexing and before globbing, `env`/`not` words included, redirections left out.
    pub args: Vec<String>,
    /// What was captured of its standard output, newlines translated as lit does; a non-last stage's leftover.
    pub stdout: String,
    /// What was captured of its standard error.
    pub stderr: String,
    /// After negation by `not`.
    pub status: i32,
    /// How the process itself ended; `None` where no process was started.
    pub process: Option<Status>,
    /// Whether the script's time was up when this stage ended.
    pub timed_out: bool,
    /// Files that output was redirected to; filled for a failing stage only.
    pub redirected: Vec<RedirectedOutput>,
    /// Which pipeline of the script this belongs to, counted from 0 over the whole script.
    pub pipeline: usize,
    /// Place in its pipeline, counted from 0, and the number of stages there.
    pub position: (usize, usize),
    /// Wall time from the start of its pipeline to the stage's end.
    pub wall: Duration,
    /// CPU time of its process, and of the processes that this one waited for.
    pub cpu: Duration,
}

/// An entry of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The script's command of this index begins.
    Begin(usize),
    /// A stage ended.
    Stage(Stage),
}

/// Why a script ended without a status of its own; lit calls such tests UNRESOLVED.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A command could not be parsed; nothing was run. Index of the command, and what is wrong with it.
    Parse {
        /// Index into the script's commands.
        command: usize,
        /// What the parser expected.
        message: String,
    },
    /// What in lit is a Python exception during execution: its type and message, for example
    /// `FileNotFoundError` and `[Errno 2] No such file or directory: 'x'`.
    Exception {
        /// Python's exception type.
        kind: String,
        /// Its message.
        message: String,
    },
    /// hotstart itself failed (out of descriptors, out of memory); never blamed on the test.
    Internal(String),
    /// The run was interrupted while this script ran.
    Interrupted,
}

/// What one stage handed to the next; recorded only where the script asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taped {
    /// Which pipeline of the script, counted from 0.
    pub pipeline: usize,
    /// Which stage of it wrote this, counted from 0.
    pub stage: usize,
    /// Every byte of it.
    pub data: Vec<u8>,
}

/// A pipeline that failed, as one would type it into another shell.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Who interpreted a script that asks for an external shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunBy {
    /// Whom the script asks for.
    #[default]
    AsAsked,
    /// The internal shell, as the script means the same to both.
    Native,
    /// The external shell although the internal one was allowed, for this reason.
    Refused(&'static str),
}

/// The record of one attempt at a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// In order of execution. Empty for a program, and for a script that an external shell interpreted.
    pub steps: Vec<Step>,
    /// Commands, by number, that were announced otherwise than they are written, as they name files whose contents
    /// were put in; `None` if such a file was not there.
    pub announced: Vec<(usize, Option<String>)>,
    /// The script's status in lit's numbering; `None` if it has none (a fault, a timeout in an external script).
    pub exit_code: Option<i32>,
    /// Whether the time limit ended it.
    pub timed_out: bool,
    /// Set when there is no proper status.
    pub fault: Option<Fault>,
    /// External script or program only: what it wrote.
    pub stdout: String,
    /// External script or program only: what it wrote to standard error.
    pub stderr: String,
    /// The bytes that passed between stages, if the script asked for a pipe capture.
    pub tapes: Vec<Taped>,
    /// The pipeline that made the internal shell end with a failure.
    pub again: Option<Box<Again>>,
    /// Who interpreted it, where that could be chosen.
    pub run_by: RunBy,
    /// External script or program only: CPU time of the process and of all that it waited for.
    pub cpu: Duration,
    /// How many of its FileChecks passed without a process.
    pub matched: usize,
}
