//! hotstart in lit's place, as other programs put it there: CMake, wrappers, a path to lit, an installation by pip.
//!
//! Needs CMake, ninja and LLVM's CMake files (`make setup`), and a Python with the lit package (`make venv`).

#[path = "../lit/suite.rs"]
#[allow(dead_code, reason = "shared with the other end-to-end tests")]
mod suite;

mod cmake;
mod install;
mod wrappers;

use std::path::{Path, PathBuf};
use std::process::Command;

use suite::{Run, lit_python};

/// The program under test.
pub const HOTSTART: &str = env!("CARGO_BIN_EXE_hotstart");

/// Returns a path in the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
        .canonicalize()
        .expect("it is in the repository")
}

/// Returns a command whose environment lacks the caller's relevant settings.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    suite::prepare(&mut command);
    for name in ["HOTSTART_LIT_PYTHON", "PYTHONPATH", "DROP_IN_LIT", "LLVM_BIN"] {
        command.env_remove(name);
    }
    command.env("HOTSTART", HOTSTART).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Returns `python ARGUMENTS`, with the Python that has lit.
pub fn python(arguments: &[&str]) -> Command {
    let mut python = command(lit_python());
    python.args(arguments);
    python
}

/// Returns the directory that replaces lit's main function by hotstart's.
pub fn shim() -> PathBuf {
    repository("python/hotstart_lit/shim")
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Run {
    Run::from(command.output().unwrap_or_else(|error| panic!("{command:?}: {error}")))
}

/// Returns whether hotstart ran, and not lit: only hotstart counts how it started processes.
pub fn was_hotstart(run: &Run) -> bool {
    run.err.lines().any(|line| line.starts_with("hotstart: ") && line.contains(" started warm, "))
}

/// Returns the lines that lit and hotstart both print.
pub fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with("Testing Time: ")).collect()
}
