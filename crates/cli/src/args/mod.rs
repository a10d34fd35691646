//! The command line of `hotstart lit`, which is lit's.
//!
//! lit parses with Python's argparse, whose habits build scripts have come to rely on: unique prefixes stand for long
//! options, `-sv` is a bundle but `-vv` an option of its own, `@FILE` is replaced by the file's lines before anything
//! else is looked at, LIT_OPTS comes after the command line. Libraries for Rust cannot follow these rules, so
//! `argparse` here does, over one table of options (`table`). What was typed becomes [`low::LowArgs`], and that
//! [`LitOptions`], which is all that later stages see.
//!
//! Nothing here reads the environment, the terminal or the clock: all of it comes in an [`Invocation`]. Only argument
//! files are read.

mod argparse;
mod builtin;
pub mod completions;
mod console;
mod flag;
mod help;
mod low;
pub mod man;
mod options;
mod table;
mod values;
mod warm;
mod words;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use hotstart_python::{argfile, shlex};

pub use builtin::Builtin;
pub use console::ConsoleOptions;
pub use options::{AbOptions, ConfigCacheUse, LitOptions, Order, OwnOptions, SHELLS};
pub use warm::{
    Allocator, AllocatorOptions, ConfigFile, Parity, Start, WarmOptions, allocator, allocator_tool,
    check_tool, is_percentage,
};
pub use words::Words;

use argparse::Stop;
use low::LowArgs;

/// All that parsing depends on.
#[derive(Clone, Copy)]
pub struct Invocation<'a> {
    /// Arguments after the program's name (and after `lit`).
    pub argv: &'a [OsString],
    /// Looks up an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// The working directory, absolute.
    pub cwd: &'a Path,
    /// Processors that can be used: the number of workers unless another is given.
    pub cores: usize,
    /// Width of the terminal, for help and usage.
    pub columns: usize,
    /// Whether a filter is a regular expression; if not, Python's words for what is wrong with it.
    pub check_regex: &'a dyn Fn(&str) -> Result<(), String>,
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Request {
    /// To run tests, or to list them.
    Run(Box<LitOptions>),
    /// To print this help to standard output.
    Help(String),
    /// To print the version.
    Version,
}

/// A command line that cannot be followed: a text for standard error that ends in a newline. The exit code is 2.
#[derive(Debug, PartialEq, Eq)]
pub struct UsageError(pub String);

/// Parses a command line.
pub fn parse(invocation: &Invocation<'_>) -> Result<Request, UsageError> {
    match parse_low(invocation).and_then(|low| options::resolve(low, invocation).map_err(Stop::Error)) {
        Ok(options) => Ok(Request::Run(Box::new(options))),
        Err(Stop::Help) => Ok(Request::Help(help::help(invocation.columns))),
        Err(Stop::Version) => Ok(Request::Version),
        Err(Stop::Error(message)) => {
            Err(UsageError(format!("{}lit: error: {message}\n", help::usage(invocation.columns))))
        }
    }
}

fn parse_low(invocation: &Invocation<'_>) -> Result<LowArgs, Stop> {
    let mut low = LowArgs::default();
    let mut argv = invocation.argv.to_vec();
    if let Some(more) = (invocation.env)("LIT_OPTS") {
        argv.extend(shlex::split(&more).map_err(|error| Stop::Error(format!("LIT_OPTS: {error}")))?);
    }
    let (argv, taken) = take_time_tests(argv, &mut low).map_err(Stop::Error)?;
    let argv = argfile::expand(argv, invocation.cwd).map_err(Stop::Error)?;
    argparse::run(&argv, invocation, &mut low)?;
    low.words.put_first(taken);
    Ok(low)
}

/// Takes out `--time-tests`, whose value is optional and only ever follows a `=`. lit does so before it looks at
/// anything else, so the words go even where they are another option's value. The other words, and those.
fn take_time_tests(argv: Vec<OsString>, low: &mut LowArgs) -> Result<(Vec<OsString>, Vec<OsString>), String> {
    let (mut rest, mut taken) = (Vec::with_capacity(argv.len()), Vec::new());
    for arg in argv {
        if arg == "--time-tests" {
            low.time_tests = Some(hotstart_report::histogram::DEFAULT_SLOWEST);
            taken.push(arg);
        } else if let Some(value) = arg.to_str().and_then(|text| text.strip_prefix("--time-tests=")) {
            if value.is_empty() {
                return Err("argument --time-tests requires a value after '='".to_owned());
            }
            low.time_tests = Some(values::slowest(OsStr::new(value))?);
            taken.push(arg);
        } else {
            rest.push(arg);
        }
    }
    Ok((rest, taken))
}

#[cfg(test)]
mod tests;
