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

/// Prints `text`. Returns `code`, or [`ERROR`] if it could not be written.
pub fn said(text: &str, code: u8) -> ExitCode {
    let mut out = Sink::stdout();
    out.put(text);
    written(&mut out, code)
}

/// Prints why a command was not done, and returns [`ERROR`].
pub fn refused(text: &str) -> ExitCode {
    let mut err = Sink::stderr();
    err.put(text);
    err.flush();
    exit(ERROR)
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
