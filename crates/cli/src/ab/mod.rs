//! `hotstart ab`: connects the command line, the measurement, and the report to the terminal and to files.

mod options;
mod progress;
mod publish;
mod stop;

pub(crate) use options::HELP;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use hotstart_bench::Report;
use hotstart_bench::command::{Command, sweep};
use hotstart_bench::measure::{self, Candidate, Failure, Halt, Process, ProcessSettings};
use hotstart_launch::{EnvBlock, Launcher};
use hotstart_report::Sink;

use crate::exit_code;
use options::{Asked, Options};
pub(crate) use progress::observer;
pub(crate) use publish::{Render, publish, warn};
pub(crate) use stop::Stopper;

/// The beginning of messages.
const PROGRAM: &str = "hotstart ab";

/// Runs `hotstart ab` with the arguments after `ab`.
pub fn run(args: &[OsString]) -> ExitCode {
    let options = match options::parse(args) {
        Ok(Asked::Measure(options)) => *options,
        Ok(Asked::Help) => {
            let mut out = Sink::stdout();
            out.put(HELP);
            return exit_code::written(&mut out, exit_code::SUCCESS);
        }
        Err(error) => return refuse(&error),
    };
    let halt = Halt::new();
    let done = Stopper::start(halt.clone()).and_then(|stopper| Ok((compare(&options, &halt)?, stopper)));
    match done {
        Err(error) => refuse(&error),
        Ok((report, stopper)) => publish(PROGRAM, &report, &options.files, &stopper, exit_code::SUCCESS),
    }
}

fn compare(options: &Options, halt: &Halt) -> Result<Report, String> {
    let settings = settings(options, halt).map_err(|error| format!("the working directory: {error}"))?;
    let commands = commands(options, &settings.cwd).map_err(|error| error.to_string())?;
    let candidate = |command| {
        let process = Process::new(command, &settings)?;
        Ok(Box::new(process) as Box<dyn Candidate + '_>)
    };
    let candidates: Result<Vec<_>, Failure> = commands.into_iter().map(candidate).collect();
    let mut candidates = candidates.map_err(|error| error.to_string())?;
    let hook = |name, command: &Option<String>| {
        command.as_ref().map_or(Ok(()), |line| measure::run_hook(&settings, name, line))
    };
    hook("setup", &options.setup).map_err(|error| error.to_string())?;
    let mut observer = observer(options.quiet);
    let mut report =
        hotstart_bench::ab(&mut candidates, options.plan, &options.statistics, halt, observer.as_mut());
    drop(observer);
    if let Err(error) = hook("cleanup", &options.cleanup) {
        report.failure.get_or_insert(error.to_string());
        report.complete = false;
    }
    Ok(report)
}

fn settings(options: &Options, halt: &Halt) -> std::io::Result<ProcessSettings> {
    let mut settings = ProcessSettings::here()?;
    settings.launcher = Launcher::new().with_guard();
    settings.halt = halt.clone();
    settings.env = EnvBlock::new(&std::env::vars_os().collect());
    settings.input = options.input.clone();
    settings.timeout = options.timeout;
    settings.accepted = options.accepted.clone();
    settings.same_output = options.same_output;
    settings.output_limit = options.output_limit;
    settings.hooks = options.hooks.clone();
    Ok(settings)
}

fn commands(options: &Options, cwd: &Path) -> Result<Vec<Command>, Failure> {
    let path = std::env::var_os("PATH");
    let expand = |words: &Vec<OsString>| if options.sweep { sweep(words) } else { vec![words.clone()] };
    let lines: Vec<Vec<OsString>> = options.commands.iter().flat_map(expand).collect();
    let mut commands = Vec::new();
    for (index, argv) in lines.into_iter().enumerate() {
        let mut command = Command::find(argv, path.as_deref(), cwd)?;
        if let Some(name) = options.names.get(index) {
            command.name.clone_from(name);
        }
        commands.push(command);
    }
    Ok(commands)
}

fn refuse(error: &str) -> ExitCode {
    exit_code::exit(warn(PROGRAM, error))
}
