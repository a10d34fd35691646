//! hotstart's exit codes. Stable; the table in README.md lists the same.

use std::process::ExitCode;

/// Every selected test has a result that is no failure.
pub const SUCCESS: u8 = 0;
/// A test failed.
pub const FAILURE: u8 = 1;
/// Something was wrong with the command line, a path or a config; other tests ran as far as possible.
pub const ERROR: u8 = 2;

/// The code as `main` returns it.
pub fn exit(code: u8) -> ExitCode {
    ExitCode::from(code)
}
