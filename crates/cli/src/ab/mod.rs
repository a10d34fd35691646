//! `hotstart ab`: command line to settings, settings to a measurement, the report to the terminal and to files.

mod options;
mod progress;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use hotstart_bench::command::{Command, sweep};
use hotstart_bench::machine::{Machine, Watch};
use hotstart_bench::measure::{self, Candidate, Failure, Halt, Process, ProcessSettings, Series};
use hotstart_bench::{Report, render};
use hotstart_launch::signals::{self, Stop};
use hotstart_launch::{EnvBlock, Launcher};
use hotstart_report::Sink;

use crate::exit_code;
use options::{Asked, Options};

/// Runs `hotstart ab` with the arguments after `ab`.
pub fn run(args: &[OsString]) -> ExitCode {
    let options = match options::parse(args) {
        Ok(Asked::Measure(options)) => *options,
        Ok(Asked::Help) => {
            let mut out = Sink::stdout();
            out.put(options::HELP);
            out.flush();
            return exit_code::exit(exit_code::SUCCESS);
        }
        Err(error) => return refuse(&error),
    };
    let halt = Halt::new();
    attend(halt.clone());
    match compare(&options, &halt) {
        Err(error) => refuse(&error),
        Ok(report) => conclude(&options, &report, &halt),
    }
}

/// Ctrl-C ends the measurement with a report; a second one, or another signal, ends everything at once.
fn attend(halt: Halt) {
    std::thread::spawn(move || {
        loop {
            let stop = signals::wait_for_stop();
            let again = halt.is_interrupted();
            halt.interrupt();
            match stop {
                Stop::Interrupt if !again => {}
                Stop::Interrupt => signals::die_of_interrupt(),
                Stop::Terminate(signal) => signals::die_of(signal),
            }
        }
    });
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
    let (machine, watch) = (Machine::read(), Watch::start());
    let mut observer = progress::observer(options.quiet);
    let series = measure::measure(&mut candidates, options.plan, halt, observer.as_mut());
    drop(observer);
    let mut report = hotstart_bench::report(&series, machine, watch.end(used(&series)), &options.statistics);
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

/// Processor time of all timed runs.
fn used(series: &Series) -> f64 {
    series.runs.iter().flat_map(|runs| &runs.samples).map(|s| s.user + s.system).sum()
}

/// Writes the report everywhere, and says by the exit code whether it is all that was asked for.
fn conclude(options: &Options, report: &Report, halt: &Halt) -> ExitCode {
    let mut out = Sink::stdout();
    if report.candidates.iter().any(|candidate| !candidate.runs.is_empty()) {
        out.put(&render::terminal::render(report));
        out.flush();
    }
    let mut code = exit_code::SUCCESS;
    for (path, render) in &options.files {
        if let Err(error) = std::fs::write(path, render(report)) {
            code = warn(&format!("cannot write '{}': {error}", path.display()));
        }
    }
    if halt.is_interrupted() {
        warn("interrupted; the report is of what was measured until then");
        signals::die_of_interrupt();
    }
    match &report.failure {
        Some(failure) => exit_code::exit(warn(failure)),
        None => exit_code::exit(code),
    }
}

fn refuse(error: &str) -> ExitCode {
    exit_code::exit(warn(error))
}

fn warn(text: &str) -> u8 {
    let mut err = Sink::stderr();
    err.line(&format!("hotstart ab: {text}"));
    err.flush();
    exit_code::ERROR
}
