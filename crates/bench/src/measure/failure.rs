//! The reasons why a measurement stopped early. The runs measured before are kept.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use hotstart_launch::StartError;
use hotstart_model::Status;

/// The part of a measurement in which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The first run, untimed, whose output is checked.
    Check,
    /// An untimed run that fills caches; counted from 1.
    Warmup(usize),
    /// A timed run; counted from 1.
    Run(usize),
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Phase::Check => write!(f, "in the check before all timing"),
            Phase::Warmup(number) => write!(f, "in warm-up {number}"),
            Phase::Run(number) => write!(f, "in run {number}"),
        }
    }
}

/// The reason why a measurement stopped early.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no such program.
    #[error("there is no program '{program}' {searched}; give its path, or correct the command")]
    NotFound {
        /// The program as written in the command.
        program: String,
        /// The places that were searched.
        searched: &'static str,
    },
    /// The process could not be started.
    #[error("'{name}' could not be started {phase}: {source}")]
    Start {
        /// The candidate.
        name: String,
        /// The part of the measurement.
        phase: Phase,
        /// The launcher's error.
        source: StartError,
    },
    /// The process ended in another way than expected.
    #[error(
        "'{name}' {} {phase}, where {expected} was expected; `--exit-code` takes other codes{}",
        describe(*status),
        quoted(said)
    )]
    Status {
        /// The candidate.
        name: String,
        /// The part of the measurement.
        phase: Phase,
        /// How it ended.
        status: Status,
        /// The accepted ends.
        expected: String,
        /// The end of its standard error, in the check.
        said: String,
    },
    /// The process ran for too long and was killed with its process group.
    #[error("'{name}' had not ended {phase} after {} s and was killed; `--timeout` allows more", limit.as_secs_f64())]
    Timeout {
        /// The candidate.
        name: String,
        /// The part of the measurement.
        phase: Phase,
        /// The limit.
        limit: Duration,
    },
    /// The process printed more than allowed and was killed.
    #[error("'{name}' printed more than {limit} bytes {phase} and was killed; `--output-limit` allows more")]
    Output {
        /// The candidate.
        name: String,
        /// The part of the measurement.
        phase: Phase,
        /// The limit in bytes.
        limit: u64,
    },
    /// Two candidates should print the same and do not.
    #[error("'{other}' does not print what '{reference}' prints: {difference}; nothing was timed")]
    Differ {
        /// The first candidate.
        reference: String,
        /// The one that differs.
        other: String,
        /// The first difference.
        difference: String,
    },
    /// A command before or after the runs failed.
    #[error("the {hook} command `{command}` {}{}", describe(*status), quoted(said))]
    Hook {
        /// The kind of hook.
        hook: &'static str,
        /// The command as given.
        command: String,
        /// How it ended.
        status: Status,
        /// The end of its output.
        said: String,
    },
    /// A file that the measurement itself needs could not be opened.
    #[error("cannot open '{}': {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A pipe could not be made.
    #[error("cannot make a pipe for the output: {0}")]
    Pipe(io::Error),
    /// The failure of a closure.
    #[error("{0}")]
    Other(String),
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// Describes the end of a process for people.
pub fn describe(status: Status) -> String {
    match status {
        Status::Exited(code) => format!("ended with exit code {code}"),
        Status::Signaled(signal) => match SIGNALS.iter().find(|(number, _)| *number == signal) {
            Some((_, name)) => format!("was killed by {name}"),
            None => format!("was killed by signal {signal}"),
        },
    }
}

/// The signals that commonly end programs. All current Linux architectures give them the same numbers.
const SIGNALS: [(i32, &str); 15] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
];

fn quoted(said: &str) -> String {
    let said = said.trim_end();
    if said.is_empty() { String::new() } else { format!(". It said:\n{said}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_told_by_name() {
        assert_eq!(describe(Status::Signaled(9)), "was killed by SIGKILL");
        assert_eq!(describe(Status::Signaled(50)), "was killed by signal 50");
        let failure = Failure::Status {
            name: "a".into(),
            phase: Phase::Warmup(2),
            status: Status::Exited(3),
            expected: "exit code 0".into(),
            said: "oh\n".into(),
        };
        let text = failure.to_string();
        assert!(text.starts_with("'a' ended with exit code 3 in warm-up 2, where exit code 0"), "{text}");
        assert!(text.ends_with("It said:\noh"), "{text}");
    }
}
