//! hotstart's exit codes. Stable; docs/guide/options.md lists the same.

use std::process::ExitCode;

use hotstart_report::Sink;

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

/// What remains of standard output is written; if any of it was lost, that is told and the code is [`ERROR`].
pub fn written(out: &mut Sink, code: u8) -> ExitCode {
    let Some(why) = lost(out) else { return exit(code) };
    let mut err = Sink::stderr();
    err.line(&why);
    err.flush();
    exit(ERROR)
}

/// What to tell if some of standard output was lost.
pub fn lost(out: &mut Sink) -> Option<String> {
    out.flush();
    let why = match out.failure() {
        Some(error) => error.to_string(),
        None if hotstart_launch::stdout_was_closed() => "it was closed from the start".to_owned(),
        None => return None,
    };
    Some(format!("hotstart: error: cannot write to standard output: {why}"))
}
