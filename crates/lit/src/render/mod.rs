//! Renders a script's run in lit's words.
//!
//! People and lit's own tests read this text, so it equals lit's to the byte. `summary` makes hotstart's own text.

mod diagnosis;
mod summary;

use std::fmt::Write;
use std::time::Duration;

use hotstart_model::{Command, Dialect, Fault, Stage, Step, Transcript};
use hotstart_python::{shlex, text};

pub(crate) use self::diagnosis::Scene;
pub use self::summary::{Ending, FailedStage, FailureSummary, failure_summary, signal_name};

/// The data needed beside the transcript.
pub struct View<'a> {
    /// The script's commands.
    pub commands: &'a [Command],
    /// The lit whose words are used.
    pub dialect: Dialect,
    /// Whether an external shell ran it.
    pub external: bool,
    /// The script's limit.
    pub timeout: Option<Duration>,
    /// Characters shown of each stream (lit 23). If negative, all but so many at its end.
    pub output_limit: i64,
}

/// Returns a test's output.
pub fn output(view: &View<'_>, transcript: &Transcript) -> String {
    let mut out = String::new();
    let parse_error = match &transcript.fault {
        Some(Fault::Parse { command, .. }) => view.commands.get(*command),
        _ => None,
    };
    let code = if parse_error.is_some() { Some(1) } else { transcript.exit_code };
    let code = code.map_or("None".to_owned(), |code| code.to_string());
    push(&mut out, format_args!("Exit Code: {code}\n"));
    if let Some(timeout) = view.timeout.filter(|_| transcript.timed_out) {
        push(&mut out, format_args!("Timeout: Reached timeout of {} seconds\n", seconds(timeout)));
    }
    out.push('\n');
    let (stdout, stderr) = match parse_error {
        Some(command) => (shell_parser_error(command), ""),
        None if view.external => (transcript.stdout.clone(), transcript.stderr.as_str()),
        None => (trace(view, transcript), ""),
    };
    for (name, text) in [("stdout", stdout.as_str()), ("stderr", stderr)] {
        if !text.is_empty() {
            push(&mut out, format_args!("Command Output ({name}):\n--\n{text}\n--\n"));
        }
    }
    out
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string succeeds");
}

/// Formats seconds as Python does: whole numbers have no fraction.
pub(crate) fn seconds(timeout: Duration) -> String {
    match timeout.subsec_nanos() {
        0 => timeout.as_secs().to_string(),
        _ => timeout.as_secs_f64().to_string(),
    }
}

fn shell_parser_error(command: &Command) -> String {
    format!("# {}\n", text::split_lines(&parser_error(command)).join("\n# "))
}

/// Returns the message of lit's shell for a command that it cannot parse.
pub(crate) fn parser_error(command: &Command) -> String {
    format!("shell parser error on {}: {}\n", command.label, text::strip_start(&command.text))
}

/// Returns the execution trace of lit's internal shell.
pub(crate) fn trace(view: &View<'_>, transcript: &Transcript) -> String {
    let mut out = String::new();
    for step in &transcript.steps {
        match step {
            Step::Begin(index) => {
                let Some(command) = view.commands.get(*index) else { continue };
                push_command(&mut out, command, announced(transcript, *index, command));
            }
            Step::Stage(stage) => push_stage(&mut out, view, stage),
        }
    }
    out
}

/// Returns the text that announces a command, with the contents of files that it names; `None` if it is unknown.
fn announced<'t>(transcript: &'t Transcript, index: usize, command: &'t Command) -> Option<&'t str> {
    match transcript.announced.iter().find(|(announced, _)| *announced == index) {
        Some((_, text)) => text.as_deref(),
        None => Some(&command.text),
    }
}

fn push_command(out: &mut String, command: &Command, text: Option<&str>) {
    push(out, format_args!("# {}", command.label));
    match text {
        None => out.push('\n'),
        Some("") => out.push_str(" has no command after substitutions\n"),
        Some(text) => push(out, format_args!("\n{}\n", text::strip_start(text))),
    }
}

fn push_stage(out: &mut String, view: &View<'_>, stage: &Stage) {
    // The test uses lit's own command for such messages.
    if stage.args.first().is_some_and(|name| name == "@echo")
        && stage.status == 0
        && stage.stderr.is_empty()
        && stage.redirected.is_empty()
        && !stage.timed_out
    {
        out.push_str(&stage.stdout);
        return;
    }
    let bangs = stage.args.iter().take_while(|word| *word == "!").count();
    let words: Vec<_> = stage.args[bangs..].iter().map(|word| shlex::quote(word)).collect();
    push(out, format_args!("# executed command: {}{}\n", "! ".repeat(bangs), words.join(" ")));
    let blank = |text: &str| text::strip(text).is_empty();
    let silent = blank(&stage.stdout) && blank(&stage.stderr);
    if view.timeout.is_none() && stage.status == 0 && silent {
        return;
    }
    let (redirected_limit, limit) = match view.dialect {
        Dialect::V19 => (1024, i64::MAX),
        Dialect::V23 => (view.output_limit, view.output_limit),
    };
    for file in &stage.redirected {
        let text = String::from_utf8_lossy(&file.data);
        push_block(
            out,
            &format!("redirected output from '{}'", file.name),
            &text,
            redirected_limit,
            view.dialect,
        );
    }
    push_block(out, "command stdout", &stage.stdout, limit, view.dialect);
    push_block(out, "command stderr", &stage.stderr, limit, view.dialect);
    if silent {
        out.push_str("# note: command had no output on stdout or stderr\n");
    }
    if stage.status != 0 {
        push(out, format_args!("# error: command failed with exit status: {}\n", stage.status));
    }
    if view.timeout.is_some() && stage.timed_out {
        out.push_str("# error: command reached timeout: True\n");
    }
}

/// Width of the lines above and below a block, beyond their first characters.
const DASHES: usize = 26;

fn push_block(out: &mut String, title: &str, text: &str, limit: i64, dialect: Dialect) {
    if text::strip(text).is_empty() {
        return;
    }
    let len = text.chars().count() as i64;
    let mut message = String::new();
    let mut cut = String::new();
    if len > limit {
        message = match dialect {
            Dialect::V19 => "data was truncated".to_owned(),
            Dialect::V23 => {
                format!("data was truncated ({limit}/{len}) (change limit with -D output_limit=N)")
            }
        };
        let kept = if limit < 0 { (len + limit).max(0) } else { limit };
        cut.extend(text.chars().take(kept as usize));
        cut.push_str("\n...\n");
    }
    let shown = if cut.is_empty() { text } else { &cut };
    let dashes = |text: &str| "-".repeat(DASHES.saturating_sub(text.chars().count()));
    push(out, format_args!("# .---{title}{}\n", dashes(title)));
    match dialect {
        Dialect::V19 => {
            text::split_lines(shown).iter().for_each(|line| push(out, format_args!("# | {line}\n")))
        }
        Dialect::V23 => push_coloured(out, shown),
    }
    push(out, format_args!("# `---{message}{}\n", dashes(&message)));
}

/// Adds lines of text in which a colour may span line ends. The margin is not coloured.
fn push_coloured(out: &mut String, text: &str) {
    const RESET: &str = "\x1b[0m";
    let mut colour: Option<&str> = None;
    for line in text::split_lines(text) {
        match colour {
            Some(colour) => push(out, format_args!("{RESET}# | {colour}{line}\n")),
            None => push(out, format_args!("# | {line}\n")),
        }
        colour = last_colour(line, colour);
    }
    if colour.is_some() {
        out.push_str(RESET);
    }
}

fn last_colour<'a>(line: &'a str, current: Option<&'a str>) -> Option<&'a str> {
    let Some(start) = line.rfind("\x1b[") else { return current };
    let Some(end) = line[start + 2..].find('m') else { return current };
    match &line[start..start + 2 + end + 1] {
        "\x1b[m" | "\x1b[0m" => None,
        colour => Some(colour),
    }
}

#[cfg(test)]
mod tests;
