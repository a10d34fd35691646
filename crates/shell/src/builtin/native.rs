//! `cat` and `diff` as stages of a pipeline, without a process. lit runs them as Python programs.
//!
//! A task and its run are separate, because a task that reads standard input has to wait for it.

use hotstart_model::Dialect;

use super::cat::Cat;
use super::diff::Diff;
use crate::halt::Halting;

/// The output and the status of a native stage.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub status: i32,
    /// The number of bytes of output before the errors, if both go to one place. Python's buffers keep it small.
    pub output_before_errors: usize,
}

impl Written {
    /// Returns an error without output.
    pub fn error(message: String) -> Self {
        Written { stderr: message.into_bytes(), status: 1, ..Written::default() }
    }
}

/// A native stage.
#[derive(Debug)]
pub(crate) enum Task {
    Cat(Cat),
    Diff(Diff),
    /// The arguments were wrong.
    Refused(Written),
}

impl Task {
    /// Returns the native stage for `args`. `None` if only lit's own program can run them.
    pub fn find(args: &[String], dialect: Dialect) -> Option<Task> {
        let task = match args[0].as_str() {
            "cat" => Cat::parse(&args[1..], dialect).map(Task::Cat),
            _ => match Diff::parse(&args[1..]) {
                Ok(diff) => Ok(Task::Diff(diff?)),
                Err(written) => Err(written),
            },
        };
        Some(task.unwrap_or_else(Task::Refused))
    }

    /// Whether it reads the output of the stage before.
    pub fn reads_stdin(&self, cwd: &str) -> bool {
        match self {
            Task::Cat(cat) => cat.reads_stdin(),
            Task::Diff(diff) => diff.reads_stdin(cwd),
            Task::Refused(_) => false,
        }
    }

    /// Runs the task.
    pub fn run(self, stdin: Vec<u8>, cwd: &str) -> Halting<Written> {
        match self {
            Task::Cat(cat) => Ok(cat.run(stdin, cwd)),
            Task::Diff(diff) => diff.run(&stdin, cwd),
            Task::Refused(written) => Ok(written),
        }
    }
}
