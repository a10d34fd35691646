//! The `warm-fuzz` binary: glue only.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use hotstart_fuzz::find;
use hotstart_fuzz::options::{Options, Task, USAGE};
use hotstart_fuzz::run::{Workshop, sources};

const DIFFERENT: u8 = 1;
const WRONG: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // This binary also starts itself, to set limits for a cold start and to exec the program.
    if let Some(code) = hotstart_launch::enter_trampoline(&args) {
        return code.into();
    }
    if hotstart_launch::enter_guard(&args) {
        return ExitCode::SUCCESS;
    }
    let words = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned());
    match Options::parse(words, seed_of_the_moment()).and_then(|options| work(&options)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("warm-fuzz: {error}");
            WRONG.into()
        }
    }
}

fn seed_of_the_moment() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_secs())
}

fn work(options: &Options) -> Result<ExitCode, String> {
    match &options.task {
        Task::Help => print!("{USAGE}"),
        Task::List => list()?,
        Task::Replay(dir) => return replay(options, dir),
        Task::Fuzz => return fuzz(options),
    }
    Ok(ExitCode::SUCCESS)
}

fn fuzz(options: &Options) -> Result<ExitCode, String> {
    println!("seed {}, {} minutes, {} jobs", options.seed, options.minutes, options.jobs);
    let (statistics, findings) = find::run(options)?;
    print!("{statistics}");
    println!("findings {findings}");
    Ok(if findings == 0 { ExitCode::SUCCESS } else { DIFFERENT.into() })
}

fn replay(options: &Options, dir: &Path) -> Result<ExitCode, String> {
    let found = find::replay(dir, &options.modes)?;
    found.iter().for_each(|difference| print!("{difference}"));
    println!("modes that differ: {}", found.len());
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { DIFFERENT.into() })
}

fn list() -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|e| format!("no scratch directory: {e}"))?;
    let workshop = Workshop::open(scratch.path())?;
    for act in &workshop.catalogue.acts {
        println!("{:24} {:12} {:?}", act.name, act.family, act.role);
    }
    sources::before_names().iter().for_each(|name| println!("{name:24} {:12} Before", "before"));
    Ok(())
}
