//! The command line of `hotstart ab`.
//!
//! It does not use lit's parser, which follows Python's argparse in every abbreviation; nobody expects that here.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use hotstart_bench::measure::{Accepted, Amount, Hooks, Plan};
use hotstart_bench::{Options as Statistics, render};

use super::Render;

pub(crate) const HELP: &str = "\
usage: hotstart ab [OPTIONS] -- COMMAND... [-- COMMAND...]...

Interleaves the commands (A B B A ...), each without a shell, and compares their costs with the first one's.
A word with {1,2,4} in it stands for one command for each value; quote it, so that the shell leaves it alone.

how much (default: at least 10 rounds and 5 seconds)
  -r, --runs N           so many runs of each command
  --seconds N, --minutes N, --hours N
                         as many rounds as fit into this time
  -w, --warmup N         untimed runs of each command after the check (default 1)

how to run
  --prepare COMMAND      run by sh before each run, not timed
  --conclude COMMAND     run by sh after each run, not timed
  --setup COMMAND        run by sh once before everything
  --cleanup COMMAND      run by sh once after everything, whatever happened
  --input FILE           standard input of each run (default: none)
  --timeout SECONDS      kill a run that takes longer, and stop (default 3600; 0 is none)
  --exit-code CODES      how a run may end: a list as 0,1 or `any` (default 0)
  --same-output          check before all timing that the commands print the same to standard output
  --output-limit BYTES   stop if a command prints more in the check; with K, M or G (default 4G)
  --no-sweep             take braces as they are

what to say
  -n, --name NAME        name of a command, in their order
  --confidence PERCENT   of the intervals, for all comparisons together (default 95)
  --seed N               of the resampling (default 1): the same runs and seed give the same intervals
  --jobs N --processes N estimate the overhead of a process: time saved x parallel jobs / processes
  --json FILE, --csv FILE, --markdown FILE, --html FILE
                         write the report there as well
  -q, --quiet            no progress line
  -h, --help             print this

Exit code: 0 if all was measured, 2 if not. Ctrl-C ends a measurement with a report of the runs so far.
";

/// The request of a command line.
pub(super) enum Asked {
    Help,
    Measure(Box<Options>),
}

/// Settings of a measurement.
pub(super) struct Options {
    pub commands: Vec<Vec<OsString>>,
    pub names: Vec<String>,
    pub plan: Plan,
    pub statistics: Statistics,
    pub hooks: Hooks,
    pub setup: Option<String>,
    pub cleanup: Option<String>,
    pub input: Option<PathBuf>,
    pub timeout: Option<Duration>,
    pub accepted: Accepted,
    pub same_output: bool,
    pub output_limit: u64,
    pub sweep: bool,
    pub quiet: bool,
    pub files: Vec<(PathBuf, Render)>,
}

impl Options {
    fn new() -> Self {
        Options {
            commands: Vec::new(),
            names: Vec::new(),
            plan: Plan { amount: None, warmups: 1 },
            statistics: Statistics::default(),
            hooks: Hooks::default(),
            setup: None,
            cleanup: None,
            input: None,
            timeout: Some(Duration::from_secs(3600)),
            accepted: Accepted::Codes(vec![0]),
            same_output: false,
            output_limit: 4 << 30,
            sweep: true,
            quiet: false,
            files: Vec::new(),
        }
    }
}

/// Parses the arguments after `ab`.
pub(super) fn parse(args: &[OsString]) -> Result<Asked, String> {
    let mut options = Options::new();
    let split = args.iter().position(|word| word == "--").unwrap_or(args.len());
    let mut words = args[..split].iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(OsString::from(value))),
            _ => (text.into_owned(), None),
        };
        match name.as_str() {
            "-h" | "--help" => return Ok(Asked::Help),
            "--same-output" => options.same_output = true,
            "--no-sweep" => options.sweep = false,
            "-q" | "--quiet" => options.quiet = true,
            name if !name.starts_with('-') => {
                return Err(format!("'{name}': commands come after `--`, as in `hotstart ab -- {name}`"));
            }
            name => {
                let value = attached.or_else(|| words.next().cloned());
                let value =
                    value.ok_or_else(|| format!("{name} needs a value (or is no option: see --help)"))?;
                set(&mut options, name, &value)?;
            }
        }
    }
    let lines = args[split..].split(|word| word == "--").skip(1);
    options.commands = lines.map(<[OsString]>::to_vec).collect();
    if options.commands.is_empty() || options.commands.iter().any(Vec::is_empty) {
        return Err("no command: write `hotstart ab [OPTIONS] -- A... -- B...`; see --help".to_owned());
    }
    Ok(Asked::Measure(Box::new(options)))
}

fn set(options: &mut Options, name: &str, value: &OsStr) -> Result<(), String> {
    let text = value.to_string_lossy().into_owned();
    let path = || PathBuf::from(value);
    let time = |unit: f64| Ok::<_, String>(Some(Amount::Time(duration(name, number(name, &text)? * unit)?)));
    match name {
        "-r" | "--runs" => options.plan.amount = Some(Amount::Rounds(whole(name, &text)?.max(1))),
        "--seconds" => options.plan.amount = time(1.0)?,
        "--minutes" => options.plan.amount = time(60.0)?,
        "--hours" => options.plan.amount = time(3600.0)?,
        "-w" | "--warmup" => options.plan.warmups = whole(name, &text)?,
        "--prepare" => options.hooks.prepare = Some(text),
        "--conclude" => options.hooks.conclude = Some(text),
        "--setup" => options.setup = Some(text),
        "--cleanup" => options.cleanup = Some(text),
        "--input" => options.input = Some(path()),
        "--timeout" => {
            let limit = duration(name, number(name, &text)?)?;
            options.timeout = (limit > Duration::ZERO).then_some(limit);
        }
        "--exit-code" => options.accepted = accepted(name, &text)?,
        "--output-limit" => options.output_limit = size(name, &text)?,
        "-n" | "--name" => options.names.push(text),
        "--confidence" => {
            let percent = number(name, &text)?;
            if !(50.0..100.0).contains(&percent) {
                return Err(format!("{name}: '{text}' is not between 50 and 100"));
            }
            options.statistics.confidence = percent / 100.0;
        }
        "--seed" => options.statistics.seed = whole(name, &text)? as u64,
        "--jobs" => options.statistics.jobs = Some(positive(name, &text)?),
        "--processes" => options.statistics.processes = Some(positive(name, &text)?),
        "--json" => options.files.push((path(), render::json::render)),
        "--csv" => options.files.push((path(), render::csv::render)),
        "--markdown" => options.files.push((path(), render::markdown::render)),
        "--html" => options.files.push((path(), render::html::render)),
        _ => return Err(format!("there is no option '{name}'; see --help")),
    }
    Ok(())
}

fn number(name: &str, text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("{name}: '{text}' is not a number"))?;
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(format!("{name}: '{text}' is no amount")) }
}

fn positive(name: &str, text: &str) -> Result<f64, String> {
    number(name, text)?
        .gt(&0.0)
        .then(|| text.parse().unwrap_or(1.0))
        .ok_or(format!("{name}: '{text}' is not above 0"))
}

fn duration(name: &str, seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{name}: {error}"))
}

fn whole(name: &str, text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{name}: '{text}' is not a whole number"))
}

fn accepted(name: &str, text: &str) -> Result<Accepted, String> {
    if text == "any" {
        return Ok(Accepted::AnyCode);
    }
    let codes: Result<Vec<i32>, _> = text.split(',').map(str::parse).collect();
    codes.map(Accepted::Codes).map_err(|_| format!("{name}: '{text}' is neither `any` nor a list as 0,1"))
}

fn size(name: &str, text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let value: Option<u64> = digits.parse().ok();
    value.and_then(|v| v.checked_mul(1 << shift)).ok_or_else(|| format!("{name}: '{text}' is no size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match parse(&words)? {
            Asked::Measure(options) => Ok(*options),
            Asked::Help => Err("help".to_owned()),
        }
    }

    #[test]
    fn options_and_commands_are_told_apart() {
        let options = parsed("--runs=5 -w 3 --exit-code 0,2 --output-limit 2M -- a -r -- b").unwrap();
        assert_eq!(options.commands, [vec!["a", "-r"], vec!["b"]]);
        assert_eq!(options.plan, Plan { amount: Some(Amount::Rounds(5)), warmups: 3 });
        assert_eq!((options.accepted, options.output_limit), (Accepted::Codes(vec![0, 2]), 2 << 20));
        let hours = parsed("--hours 5 -- a").unwrap().plan.amount;
        assert_eq!(hours, Some(Amount::Time(Duration::from_secs(18000))));
    }

    #[test]
    fn wrong_words_are_named() {
        let error = |line: &str| parsed(line).err().unwrap_or_default();
        assert!(error("").contains("no command"));
        assert!(error("-- a --").contains("no command"));
        assert!(error("a -- b").contains("'a': commands come after `--`"));
        assert!(error("--frob 1 -- a").contains("no option '--frob'"));
        assert!(error("--runs x -- a").contains("--runs: 'x' is not a whole number"));
        assert!(error("--seconds -1 -- a").contains("'-1'"));
        assert!(error("--confidence 10 -- a").contains("not between"));
        assert!(error("--runs").contains("needs a value"));
    }
}
