//! `hotstart lit --ab COMMAND`: runs another lit and this one interleaved, on the same tests with the same options.
//!
//! Both are separate processes, started as a user starts them. So the comparison includes all that a user waits for, such as
//! Python's start and discovery, and nothing of this process. Each run writes its results to a file, and the verdicts of all
//! runs are compared test by test. `hotstart ab`'s code measures the times.

mod commands;
mod contestant;
mod verdicts;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hotstart_bench::measure::{Accepted, Amount, Candidate, Halt, Plan, ProcessSettings};
use hotstart_bench::{Options as Statistics, Report, render};
use hotstart_launch::{EnvBlock, Launcher};
use hotstart_model::Environment;

use crate::ab::{Render, Stopper, observer, publish, warn};
use crate::args::LitOptions;
use crate::exit_code::{self, FAILURE, SUCCESS};
use contestant::Contestant;
use verdicts::Verdicts;

/// Default number of rounds.
const ROUNDS: usize = 10;

/// Compares with the lit that `--ab` names. Messages begin with `program`.
pub(super) fn run(program: &str, options: &LitOptions, cwd: &Path) -> ExitCode {
    let halt = Halt::new();
    let done = Stopper::start(halt.clone()).and_then(|stopper| Ok((compare(options, cwd, &halt)?, stopper)));
    match done {
        Err(error) => exit_code::exit(warn(&format!("{program}: error"), &error)),
        Ok(((report, differs), stopper)) => {
            let reports = &options.own.ab.reports;
            let files: Vec<_> = reports.iter().map(|path| (path.clone(), form(path))).collect();
            let code = if differs { FAILURE } else { SUCCESS };
            publish(&format!("{program}: error"), &report, &files, &stopper, code)
        }
    }
}

/// Returns the report, and whether verdicts differ.
fn compare(options: &LitOptions, cwd: &Path, halt: &Halt) -> Result<(Report, bool), String> {
    commands::refuse_other_work(options)?;
    let scratch = Scratch::new().map_err(|error| {
        format!("cannot make a directory for results: {error}; set TMPDIR to one that can be written")
    })?;
    let settings = settings(cwd, halt);
    let verdicts = RefCell::new(Verdicts::default());
    let mut candidates: Vec<Box<dyn Candidate + '_>> = Vec::new();
    for (side, results) in [scratch.0.join("a.json"), scratch.0.join("b.json")].into_iter().enumerate() {
        let command = if side == 0 {
            commands::other(options, cwd, &results)?
        } else {
            commands::own(options, &results)?
        };
        let contestant = Contestant::new(command, &settings, results, side, &verdicts);
        candidates.push(Box::new(contestant.map_err(|error| error.to_string())?));
    }
    let rounds = options.own.ab.runs.unwrap_or(ROUNDS);
    let plan = Plan { amount: Some(Amount::Rounds(rounds)), warmups: 0 };
    let mut observer = observer(false);
    let statistics = Statistics::default();
    let mut report = hotstart_bench::ab(&mut candidates, plan, &statistics, halt, observer.as_mut());
    drop(candidates);
    let verdicts = verdicts.into_inner();
    report.remarks = verdicts.in_words();
    Ok((report, verdicts.differ()))
}

fn settings(cwd: &Path, halt: &Halt) -> ProcessSettings {
    let mut env: Environment = std::env::vars_os().collect();
    // Both command lines contain its words already.
    env.unset("LIT_OPTS");
    ProcessSettings {
        launcher: Launcher::new().with_guard(),
        halt: halt.clone(),
        env: EnvBlock::new(&env),
        cwd: cwd.into(),
        input: None,
        timeout: None,
        // Tests may fail, so 1 is accepted.
        accepted: Accepted::Codes(vec![0, 1]),
        same_output: false,
        output_limit: u64::MAX,
        hooks: Default::default(),
    }
}

/// Returns the format for a file's extension, which the parser of the command line has checked.
fn form(path: &Path) -> Render {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("json") => render::json::render,
        Some("csv") => render::csv::render,
        Some("md") => render::markdown::render,
        _ => render::html::render,
    }
}

/// A directory for the results, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("hotstart-lit-ab-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
