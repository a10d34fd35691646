//! Runs the script of a test: in lit's internal shell, in the external shell that a suite requests, or as a single
//! program.
//!
//! lit's shell is a language of its own that only resembles sh. This crate follows it rule by rule, in two dialects,
//! and explains each rule where it applies it. Data flows `lex` → `parse` → `interp` → `pipeline`, with `prefix`
//! (`env`, `not`), `redirect`, `expand` and `lookup` preparing one stage, and `pump` moving bytes until it has ended.
//! This crate knows no test and no verdict, prints nothing, and changes neither the working directory nor the
//! environment of the process it runs in.
#![forbid(unsafe_code)]

mod assembly;
mod ast;
mod builtin;
mod clock;
mod executable;
mod expand;
mod external;
mod filecheck;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod halt;
mod interp;
mod interpreter;
mod lex;
mod lookup;
mod mark;
mod native;
mod parse;
mod paste;
mod pipeline;
mod prefix;
mod program;
mod pump;

mod redirect;
mod stage;
mod state;
mod wrap;

pub use ast::{Ast, Command, Operator, Pipeline, Redirect, RedirectOp, Target, Word};
pub use filecheck::{
    FileCheckCounts, FileCheckUses, FileChecks, KnownFileCheck, Losses, Observe, PassesReport,
    passes_directory, passes_report, remove_damaged_passes,
};
pub use hotstart_filecheck::MAX_INPUT as MAX_FILECHECK_INPUT;
pub use parse::{ParseError, parse};

use hotstart_launch::{Group, Launcher};
use hotstart_model::{Interpreter, Script, Transcript};

/// Runs one attempt of a script, and returns when all its processes have ended.
///
/// The caller keeps the deadline and calls [`Group::kill`] when it passes. This function tells the script's timeout
/// from an interruption of the whole run by the group and its own clock.
pub fn run_script(script: &Script, launcher: &Launcher, group: &Group) -> Transcript {
    run_script_with(script, Starts { launcher, group, filechecks: None, is_repeatable: false })
}

/// Like [`run_script`], but passes of FileCheck may be decided without a process.
pub fn run_script_with(script: &Script, starts: Starts<'_>) -> Transcript {
    let Starts { launcher, group, .. } = starts;
    match &script.interpreter {
        Interpreter::Internal => interp::run(script, starts),
        Interpreter::External(shell) if shell.may_be_native => native::run(script, shell, starts),
        Interpreter::External(shell) => external::run(script, shell, launcher, group),
        Interpreter::Program(program) => program::run(script, program, launcher, group),
    }
}

/// The means to start the processes of a script.
#[derive(Clone, Copy, Debug)]
pub struct Starts<'a> {
    /// The launcher of its processes.
    pub launcher: &'a Launcher,
    /// The job of its processes.
    pub group: &'a Group,
    /// Decides passes of FileCheck. `None` if every FileCheck runs.
    pub filechecks: Option<&'a FileChecks>,
    /// Whether the caller runs the script again, cold, if the transcript proves nothing ([`Transcript::is_outdated`]).
    pub is_repeatable: bool,
}
