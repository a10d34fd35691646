//! The command line.

use std::path::PathBuf;

use crate::run::Mode;

/// The text of `--help`.
pub const USAGE: &str = "\
warm-fuzz: runs generated programs cold, forked and reset, and reports every difference that can be observed.

  --seed N         where drawing begins (by default from the clock; it is printed)
  --first K        the first sequence of that seed
  --minutes M      how long, 1 by default; fractions are allowed
  --jobs J         sequences at a time, 1 by default
  --act NAME       only sequences with this act
  --skip NAME,…    acts that are never drawn
  --mode MODE      fork, reset or clone; fork and reset by default
  --out DIR        where findings are written, target/warm-fuzz by default
  --findings N     ends after so many, 50 by default
  --against FILE   another warm-fuzz: what that one finds as well is told, but does not count
  --list           prints all acts
  --replay DIR     runs a finding again

Exit status: 0 without a difference, 1 with one, 2 if it cannot work.
";

/// The task.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// A campaign.
    Fuzz,
    /// Print the acts.
    List,
    /// Print the usage.
    Help,
    /// Run a finding again.
    Replay(PathBuf),
}

/// The settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The task.
    pub task: Task,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The number of the first sequence.
    pub first: u64,
    /// The duration in minutes.
    pub minutes: f64,
    /// The number of jobs, which run at the same time.
    pub jobs: usize,
    /// An act that every sequence has.
    pub act: Option<String>,
    /// Acts that are never drawn.
    pub skip: Vec<String>,
    /// The modes to compare with cold runs.
    pub modes: Vec<Mode>,
    /// The number of findings after which the campaign ends.
    pub findings: usize,
    /// The directory for findings.
    pub out: PathBuf,
    /// A `warm-fuzz` with another runtime. Findings that it reproduces do not count.
    pub against: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments after the program's name. `seed` is the default seed.
    pub fn parse(mut arguments: impl Iterator<Item = String>, seed: u64) -> Result<Self, String> {
        let mut options = Options {
            task: Task::Fuzz,
            seed,
            first: 0,
            minutes: 1.0,
            jobs: 1,
            act: None,
            skip: Vec::new(),
            modes: vec![Mode::Fork, Mode::Audited, Mode::Reset],
            findings: 50,
            out: "target/warm-fuzz".into(),
            against: None,
        };
        while let Some(name) = arguments.next() {
            match name.as_str() {
                "--list" => options.task = Task::List,
                "--help" | "-h" => options.task = Task::Help,
                _ => {
                    let value = arguments.next().ok_or(format!("{name} is unknown, or lacks its value"))?;
                    options.set(&name, value)?;
                }
            }
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let wrong = format!("{name} cannot be '{value}'");
        match name {
            "--seed" => self.seed = value.parse().map_err(|_| wrong)?,
            "--first" => self.first = value.parse().map_err(|_| wrong)?,
            "--minutes" => {
                self.minutes = value.parse().ok().filter(|m| (0.0..1e6).contains(m)).ok_or(wrong)?
            }
            "--jobs" => self.jobs = value.parse().ok().filter(|jobs| *jobs > 0).ok_or(wrong)?,
            "--findings" => self.findings = value.parse().ok().filter(|n| *n > 0).ok_or(wrong)?,
            "--act" => self.act = Some(value),
            "--skip" => self.skip.extend(value.split(',').filter(|name| !name.is_empty()).map(str::to_owned)),
            "--out" => self.out = value.into(),
            "--against" => self.against = Some(value.into()),
            "--replay" => self.task = Task::Replay(value.into()),
            "--mode" => {
                self.modes = match value.as_str() {
                    "fork" => vec![Mode::Fork],
                    "reset" => vec![Mode::Audited, Mode::Reset],
                    "clone" => vec![Mode::Cloned],
                    _ => return Err(wrong),
                }
            }
            _ => return Err(format!("{name} is unknown; --help prints what there is")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned), 5)
    }

    #[test]
    fn options_are_read() {
        let options = parse("--seed 7 --minutes 0.5 --jobs 2 --act a --mode reset").unwrap();
        assert_eq!((options.seed, options.minutes, options.jobs), (7, 0.5, 2));
        assert_eq!(options.modes, [Mode::Audited, Mode::Reset]);
        assert_eq!(parse("").unwrap().seed, 5);
        assert_eq!(parse("--replay x").unwrap().task, Task::Replay("x".into()));
        assert_eq!(parse("--skip a,b").unwrap().skip, ["a", "b"]);
        assert_eq!(parse("--against x").unwrap().against, Some("x".into()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse("--jobs 0").unwrap_err(), "--jobs cannot be '0'");
        assert_eq!(parse("--frob 1").unwrap_err(), "--frob is unknown; --help prints what there is");
        assert_eq!(parse("--seed").unwrap_err(), "--seed is unknown, or lacks its value");
    }
}
