//! hotstart's exit codes. They are stable; docs/guide/options.md lists them too.

use std::process::ExitCode;

use hotstart_report::Sink;

/// No selected test has failed.
pub const SUCCESS: u8 = 0;
/// A test failed.
pub const FAILURE: u8 = 1;
/// The command line, a path or a config was wrong; other tests ran as far as possible.
pub const ERROR: u8 = 2;

/// Converts the code for `main`.
pub fn exit(code: u8) -> ExitCode {
    ExitCode::from(code)
}

/// Flushes standard output. If any of it was lost, reports that and returns [`ERROR`].
pub fn written(out: &mut Sink, code: u8) -> ExitCode {
    let Some(why) = lost(out) else { return exit(code) };
    let mut err = Sink::stderr();
    err.line(&why);
    err.flush();
    exit(ERROR)
}

/// Returns the message that some of standard output was lost, if so.
pub fn lost(out: &mut Sink) -> Option<String> {
    out.flush();
    let why = match out.failure() {
        Some(error) => error.to_string(),
        None if hotstart_launch::stdout_was_closed() => "it was closed from the start".to_owned(),
        None => return None,
    };
    Some(format!("hotstart: error: cannot write to standard output: {why}"))
}
