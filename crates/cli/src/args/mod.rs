//! The command line of `hotstart lit`, which is lit's.
//!
//! lit parses with Python's argparse, and build scripts rely on its rules: unique prefixes abbreviate long options; `-sv` is
//! a bundle but `-vv` a single option; `@FILE` is replaced by the file's lines before anything else is parsed; LIT_OPTS
//! comes after the command line. Rust's libraries do not implement these rules, so `argparse` here does, over one table of
//! options (`table`). All become [`LitOptions`], the only form that later stages see.
//!
//! Nothing here reads the environment, the terminal or the clock: an [`Invocation`] provides them. Only argument files are read.

mod argparse;
mod builtin;
pub mod commands;
pub mod completions;
mod console;
mod flag;
mod help;
pub mod man;
mod options;
mod remote;
mod table;
mod values;
mod warm;
mod words;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use hotstart_python::{argfile, shlex};

pub use builtin::Builtin;
pub use console::ConsoleOptions;
pub use options::{AbOptions, ConfigCacheUse, LitOptions, OwnOptions, Remember, SHELLS};
pub use warm::{
    Allocator, AllocatorOptions, ConfigFile, Parity, Start, WarmOptions, allocator, allocator_tool,
    check_tool, is_percentage,
};
pub use words::Words;

use argparse::Stop;

/// Everything that parsing depends on.
#[derive(Clone, Copy)]
pub struct Invocation<'a> {
    /// Arguments after the program's name (and after `lit`).
    pub argv: &'a [OsString],
    /// Looks up an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// The working directory, absolute.
    pub cwd: &'a Path,
    /// Number of usable processors, the default number of workers.
    pub cores: usize,
    /// Width of the terminal in columns, for help and usage.
    pub columns: usize,
    /// Checks that a filter is a regular expression. The error is Python's message.
    pub check_regex: &'a dyn Fn(&str) -> Result<(), String>,
}

/// The request of a command line.
#[derive(Debug)]
pub enum Request {
    /// Run tests, or list them.
    Run(Box<LitOptions>),
    /// Print this help to standard output.
    Help(String),
    /// Print the version.
    Version,
}

/// An error in the command line: a text for standard error that ends in a newline. The exit code is 2.
#[derive(Debug, PartialEq, Eq)]
pub struct UsageError(pub String);

/// Parses a command line.
pub fn parse(invocation: &Invocation<'_>) -> Result<Request, UsageError> {
    match parse_words(invocation).and_then(|typed| typed.resolve(invocation).map_err(Stop::Error)) {
        Ok(options) => Ok(Request::Run(Box::new(options))),
        Err(Stop::ShortHelp) => Ok(Request::Help(help::short(invocation.columns))),
        Err(Stop::Help) => Ok(Request::Help(help::help(invocation.columns))),
        Err(Stop::Version) => Ok(Request::Version),
        Err(Stop::Error(message)) => {
            Err(UsageError(format!("{}lit: error: {message}\n", help::usage(invocation.columns))))
        }
    }
}

fn parse_words(invocation: &Invocation<'_>) -> Result<LitOptions, Stop> {
    let mut options = LitOptions::default();
    let mut argv = invocation.argv.to_vec();
    if let Some(more) = (invocation.env)("LIT_OPTS") {
        argv.extend(shlex::split(&more).map_err(|error| Stop::Error(format!("LIT_OPTS: {error}")))?);
    }
    let (argv, taken) = take_time_tests(argv, &mut options).map_err(Stop::Error)?;
    let argv = argfile::expand(argv, invocation.cwd).map_err(Stop::Error)?;
    argparse::run(&argv, invocation, &mut options)?;
    options.words.put_first(taken);
    Ok(options)
}

/// Removes `--time-tests`, whose value is optional and only follows a `=`. lit does so before any other parsing, even where
/// such a word is another option's value. Returns the remaining words and the removed ones.
fn take_time_tests(
    argv: Vec<OsString>,
    options: &mut LitOptions,
) -> Result<(Vec<OsString>, Vec<OsString>), String> {
    let (mut rest, mut taken) = (Vec::with_capacity(argv.len()), Vec::new());
    for arg in argv {
        if arg == "--time-tests" {
            options.time_tests = Some(hotstart_report::histogram::DEFAULT_SLOWEST);
            taken.push(arg);
        } else if let Some(value) = arg.to_str().and_then(|text| text.strip_prefix("--time-tests=")) {
            if value.is_empty() {
                return Err("argument --time-tests requires a value after '='".to_owned());
            }
            options.time_tests = Some(values::slowest(OsStr::new(value))?);
            taken.push(arg);
        } else {
            rest.push(arg);
        }
    }
    Ok((rest, taken))
}

#[cfg(test)]
mod tests;
