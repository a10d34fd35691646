//! A test's script as `lit` passes it to `shell`: the text after substitution, and everything that its commands
//! inherit.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{ColdTools, Environment};

/// The lit whose behaviour applies. The version of the `lit` package that evaluated the configs decides it.
///
/// Behaviour that came between two known versions is attributed to the later one, because 20 to 22 are not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Dialect {
    /// lit 19 and older.
    V19,
    /// lit 20 and newer, as published in 23.
    V23,
}

/// One RUN command (continuation lines joined), or a preamble command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The place, in lit's words: `RUN: at line 3`, `RUN: from line 3 to 5`, `preamble command line`.
    pub label: String,
    /// The text after substitution, not yet parsed. Empty if nothing was left of it.
    pub text: String,
}

/// The interpreter of the commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interpreter {
    /// hotstart's own implementation of lit's internal shell.
    Internal,
    /// The shell that the suite requests. The commands are written to a script file as lit writes it.
    External(ExternalShell),
    /// No interpreter: there are no commands, but one program, whose whole output is captured.
    Program(Program),
}

/// A program that is a test by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The program and its arguments. A name without a slash is looked up along PATH.
    pub argv: Vec<OsString>,
    /// Whether standard error goes where standard output goes.
    pub merges_errors: bool,
}

/// The settings with which lit runs a script in an external shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalShell {
    /// The shell's path, normally bash's.
    pub shell: PathBuf,
    /// The script file to write and run: `%t`'s base name with `.script`.
    pub script_path: PathBuf,
    /// Words put before the command line (`--vg`).
    pub prefix: Vec<String>,
    /// Whether the internal shell may run a script that means the same in both.
    pub may_be_native: bool,
}

/// A tool that another program starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrap {
    /// The tool's name, which is the last component of its path.
    pub tool: String,
    /// The program and its arguments, before the tool's own. `%t` is the test's temporary file, `%n` the number of the
    /// start.
    pub words: Vec<String>,
}

/// Everything needed to run one attempt of one test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Script {
    /// The commands. Each runs only if the one before it succeeded.
    pub commands: Vec<Command>,
    /// The rules of which lit apply.
    pub dialect: Dialect,
    /// The interpreter.
    pub interpreter: Interpreter,
    /// Whether a pipeline fails if any stage fails (lit's `config.pipefail`), or only by its last stage.
    pub pipefail: bool,
    /// Directory in which the script starts. Absolute.
    pub cwd: PathBuf,
    /// Directories to create before anything runs (lit's `Output`).
    pub make_dirs: Vec<PathBuf>,
    /// The whole environment of the commands; nothing else is inherited.
    pub env: Arc<Environment>,
    /// Limit for the whole script, per attempt.
    pub timeout: Option<Duration>,
    /// The beginning of `%t`, without its `.tmp`. Files of this name and longer ones belong to the test.
    pub tmp_base: PathBuf,
    /// Whether to record the bytes between stages, for a comparison of two runs.
    pub captures: bool,
    /// Directory of the `lit` package, which lit's `cat` and `diff` put into PYTHONPATH of later commands
    /// (docs/reference/lit-compat.md, 5.7).
    pub lit_package_dir: Option<PathBuf>,
    /// The Python that runs lit's programs for `cat` and `diff`, where a process is needed.
    pub lit_python: Option<PathBuf>,
    /// Tools that must start cold.
    pub cold: ColdTools,
    /// Tools that other programs start.
    pub wraps: Arc<[Wrap]>,
}
