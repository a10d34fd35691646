//! Writes a report to the terminal and to files, and chooses the exit code.

use std::path::PathBuf;
use std::process::ExitCode;

use hotstart_bench::{Report, render};
use hotstart_report::Sink;

use super::stop::Stopper;
use crate::exit_code;

/// Writes the report in one format.
pub(crate) type Render = fn(&Report) -> String;

/// Writes the report everywhere. `success` is the exit code if everything was measured and written.
pub(crate) fn publish(
    program: &str,
    report: &Report,
    files: &[(PathBuf, Render)],
    stopper: &Stopper,
    success: u8,
) -> ExitCode {
    let mut out = Sink::stdout();
    if report.candidates.iter().any(|candidate| !candidate.runs.is_empty()) {
        out.put(&render::terminal::render(report));
        out.flush();
    }
    let mut code = success;
    for (path, render) in files {
        if let Err(error) = std::fs::write(path, render(report)) {
            code = warn(program, &format!("cannot write '{}': {error}", path.display()));
        }
    }
    if let Some(failure) = &report.failure {
        let rest =
            if failure == "interrupted" { "; the report is of what was measured until then" } else { "" };
        code = warn(program, &format!("{failure}{rest}"));
    }
    stopper.die_if_stopped();
    exit_code::written(&mut out, code)
}

/// Prints the error and returns the exit code for it.
pub(crate) fn warn(program: &str, text: &str) -> u8 {
    let mut err = Sink::stderr();
    err.line(&format!("{program}: {text}"));
    err.flush();
    exit_code::ERROR
}
