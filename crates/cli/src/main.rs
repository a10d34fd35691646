//! The `hotstart` binary: glue only. What it goes by is decided in the library beside it.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // This binary is also started by itself, for work that needs a process of its own.
    if let Some(code) = hotstart_launch::enter_trampoline(&args) {
        return code.into();
    }
    if hotstart_launch::enter_guard(&args) {
        return ExitCode::SUCCESS;
    }
    if let Some(code) = hotstart_cli::exec::enter(&args) {
        return code;
    }
    hotstart_launch::signals::take_over();
    hotstart_cli::command::run(&args)
}
