//! The `hotstart` binary: only glue. The library beside it makes all decisions.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // hotstart also starts this binary itself, for work that needs a separate process.
    if let Some(code) = hotstart_launch::enter_trampoline(&args) {
        return code.into();
    }
    if hotstart_launch::enter_guard(&args) {
        return ExitCode::SUCCESS;
    }
    if let Some(code) = hotstart_run::enter_trace(&args) {
        return code.into();
    }
    if let Some(code) = hotstart_batch::enter(&args) {
        return code.into();
    }
    if let Some(code) = hotstart_cli::exec::enter(&args) {
        return code;
    }
    hotstart_launch::signals::take_over();
    hotstart_cli::command::run(&args)
}
