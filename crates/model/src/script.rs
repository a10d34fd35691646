//! A test's script as `lit` hands it to `shell`: text after substitution, and all that its commands inherit.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{ColdTools, Environment};

/// Which lit's behaviour is followed; decided by the version of the `lit` package that evaluated the configs.
///
/// Behaviour that came between two known versions is attributed to the later one, as 20 to 22 are not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// lit 19 and older.
    V19,
    /// lit 20 and newer, as published in 23.
    V23,
}

/// One RUN command (continuation lines joined), or a preamble command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Where it stands, in lit's words: `RUN: at line 3`, `RUN: from line 3 to 5`, `preamble command line`.
    pub label: String,
    /// The text after substitution, not yet parsed. Empty when nothing was left of it.
    pub text: String,
}

/// Who interprets the commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interpreter {
    /// hotstart's own implementation of lit's internal shell.
    Internal,
    /// The shell the suite asked for; the commands are written to a script file as lit writes it.
    External(ExternalShell),
    /// Nobody: there are no commands, but one program, of which all is captured.
    Program(Program),
}

/// A program that is a test by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments. Without a slash in its name, it is sought along PATH.
    pub argv: Vec<OsString>,
    /// Whether standard error goes where standard output goes.
    pub merges_errors: bool,
}

/// How lit runs a script by an external shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalShell {
    /// The shell's path, normally bash's.
    pub shell: PathBuf,
    /// The script file to write and run: `%t`'s base name with `.script`.
    pub script_path: PathBuf,
    /// Words put before the command line (`--vg`).
    pub prefix: Vec<String>,
    /// Whether the internal shell may run scripts that mean the same to it.
    pub may_be_native: bool,
}

/// A tool that is started by another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrap {
    /// The tool's name, which is the last component of its path.
    pub tool: String,
    /// The program and its arguments, before the tool's own; `%t` is the test's temporary file, `%n` the number of the start.
    pub words: Vec<String>,
}

/// Everything needed to run one attempt of one test.
#[derive(Clone, Debug)]
pub struct Script {
    /// Run in order, each only if the one before it succeeded.
    pub commands: Vec<Command>,
    /// Which lit's rules apply.
    pub dialect: Dialect,
    /// Internal or external shell.
    pub interpreter: Interpreter,
    /// Whether a pipeline fails when any stage fails (lit's `config.pipefail`), or only by its last stage.
    pub pipefail: bool,
    /// Directory in which the script starts. Absolute.
    pub cwd: PathBuf,
    /// Directories to create before anything runs (lit's `Output`).
    pub make_dirs: Vec<PathBuf>,
    /// The whole environment of the commands; nothing else is inherited.
    pub env: Arc<Environment>,
    /// Limit for the whole script, per attempt.
    pub timeout: Option<Duration>,
    /// What `%t` begins with, without its `.tmp`: files of this name and longer ones are the test's own.
    pub tmp_base: PathBuf,
    /// Whether to record what goes through the pipes between stages, so that two runs can be compared.
    pub tape: bool,
    /// Directory of the `lit` package, which lit's `cat` and `diff` put into PYTHONPATH of later commands
    /// (docs/reference/lit-compat.md, 5.7).
    pub lit_package_dir: Option<PathBuf>,
    /// The Python that runs the programs which lit has for `cat` and `diff`, where only a program will do.
    pub lit_python: Option<PathBuf>,
    /// Tools that are not to be started warm.
    pub cold: ColdTools,
    /// Tools that are started by other programs.
    pub wraps: Arc<[Wrap]>,
}
