//! Runs a script in lit's internal shell: parses all of it, then command after command until one fails.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use hotstart_model::{Dialect, Fault, RunBy, Script, Step, Transcript};
use hotstart_python::errors;
use hotstart_python::repr;
use hotstart_python::text::decode_pipe;

use crate::Starts;
use crate::ast::{Ast, Operator, Word};
use crate::builtin::Done;
use crate::clock::Clock;
use crate::expand;
use crate::halt::{Halt, Halting};
use crate::native::program::Found;
use crate::parse::parse;
use crate::pipeline::{self, Context};
use crate::pump::Pipes;
use crate::state::Shell;

/// lit's status for an error of the shell itself.
const SHELL_ERROR: i32 = 127;

/// Runs one attempt.
pub(crate) fn run(script: &Script, starts: Starts<'_>) -> Transcript {
    let clock = Clock::start(script.timeout, starts.group);
    let shell = Shell::new(script.env.clone(), &script.cwd);
    match prepare(script) {
        Ok(commands) => run_prepared(script, false, &commands, shell, starts, clock),
        Err(fault) => Transcript { fault: Some(fault), ..Transcript::default() },
    }
}

/// Runs one attempt at a script for bash that means the same here. See [`crate::native`].
pub(crate) fn run_native(
    script: &Script,
    commands: Vec<Option<Ast>>,
    shell: Shell,
    starts: Starts<'_>,
) -> Transcript {
    let clock = Clock::start(script.timeout, starts.group);
    match make_dirs(script) {
        Ok(()) => run_prepared(script, true, &commands, shell, starts, clock),
        Err(fault) => Transcript { fault: Some(fault), run_by: RunBy::Native, ..Transcript::default() },
    }
}

fn run_prepared(
    script: &Script,
    is_native: bool,
    commands: &[Option<Ast>],
    shell: Shell,
    starts: Starts<'_>,
    clock: Clock<'_>,
) -> Transcript {
    let mut context = Context {
        script,
        is_native,
        doubt: None,
        found: Found::new(),
        pipes: None,
        launcher: starts.launcher,
        group: starts.group,
        filechecks: starts.filechecks,
        is_repeatable: starts.is_repeatable,
        matched: 0,
        natives: 0,
        is_outdated: false,
        has_late: false,
        clock,
        has_failed_in_time: false,
        steps: Vec::new(),
        announced: Vec::new(),
        captured: Vec::new(),
        pipelines: 0,
        again: None,
    };
    let result = match is_native {
        true => in_bashs_place(&mut context, shell, commands),
        false => run_commands(&mut context, shell, commands),
    };
    let is_late = context.clock.is_timed_out();
    let timed_out = is_late && !context.has_failed_in_time;
    let mut transcript = Transcript { timed_out, ..Transcript::default() };
    if is_native && matches!(result, Err(Halt::Shell { .. } | Halt::Exception { .. })) {
        // bash goes on after many of them, as after `a < missing || b`.
        context.doubt.get_or_insert("an error that each shell has in its own way");
    }
    match result {
        Ok(status) => transcript.exit_code = status,
        Err(Halt::Shell { .. }) => transcript.exit_code = Some(SHELL_ERROR),
        Err(Halt::Exception { kind, message }) => transcript.fault = Some(Fault::Exception { kind, message }),
        Err(Halt::Internal(what)) => transcript.fault = Some(Fault::Internal(what)),
        Err(Halt::Killed) => {}
    }
    if context.clock.is_killed() && !is_late {
        transcript.exit_code = None;
        transcript.fault = Some(Fault::Interrupted);
    }
    transcript.run_by = match context.doubt {
        Some(reason) => RunBy::Doubted(reason),
        None if is_native => RunBy::Native,
        None => RunBy::AsAsked,
    };
    transcript.steps = context.steps;
    transcript.announced = context.announced;
    transcript.captured = context.captured;
    transcript.again = context.again;
    transcript.matched = context.matched;
    transcript.natives = context.natives;
    // A failure is confirmed in any case.
    transcript.is_outdated = context.is_outdated || (context.has_late && transcript.exit_code == Some(0));
    transcript
}

/// The same with one set of standard streams for all commands, as in bash. Waits for who still holds them, as lit does.
fn in_bashs_place(context: &mut Context<'_>, shell: Shell, commands: &[Option<Ast>]) -> Halting<Option<i32>> {
    context.pipes = Some(Pipes::new()?);
    let status = run_commands(context, shell, commands)?;
    let Some(pipes) = context.pipes.take().filter(|_| status == Some(0)) else { return Ok(status) };
    let late = pipes.finish(&context.clock)?.map(decode_pipe);
    let last = context.steps.iter_mut().rev().find_map(|step| match step {
        Step::Stage(stage) => Some(stage),
        _ => None,
    });
    if let Some(last) = last {
        last.stdout.push_str(&late[0]);
        last.stderr.push_str(&late[1]);
    }
    Ok(status)
}

/// Makes the directories and parses the commands. An empty command becomes `None`.
fn prepare(script: &Script) -> Result<Vec<Option<Ast>>, Fault> {
    make_dirs(script)?;
    let parse_one = |(index, command): (usize, &hotstart_model::Command)| {
        if command.text.is_empty() {
            return Ok(None);
        }
        let parsed = parse(&command.text, script.dialect);
        parsed.map(Some).map_err(|error| Fault::Parse { command: index, message: error.to_string() })
    };
    script.commands.iter().enumerate().map(parse_one).collect()
}

/// Creates the directories that a script needs. In lit, a failure is an exception before anything runs.
pub(crate) fn make_dirs(script: &Script) -> Result<(), Fault> {
    let make = |dir: &Path| -> io::Result<()> { if dir.is_dir() { Ok(()) } else { fs::create_dir_all(dir) } };
    for dir in &script.make_dirs {
        make(dir).map_err(|error| Fault::Exception {
            kind: errors::kind(&error).to_owned(),
            message: errors::message(&error, Some(&repr(&dir.to_string_lossy()))),
        })?;
    }
    Ok(())
}

/// Runs each command if the one before succeeded. Returns `None` if time was up before there was a status.
fn run_commands(
    context: &mut Context<'_>,
    mut shell: Shell,
    commands: &[Option<Ast>],
) -> Halting<Option<i32>> {
    let mut status = Some(0);
    for (index, command) in commands.iter().enumerate() {
        if context.clock.is_killed() {
            return Ok(None);
        }
        if let Some(ast) = command {
            refuse_background(ast)?;
        }
        context.steps.push(Step::Begin(index));
        if let Some(ast) = command {
            announce(context, &shell, index)?;
            status = sequence(context, &mut shell, ast)?;
        }
        if status != Some(0) {
            break;
        }
    }
    Ok(status)
}

/// lit 23 prints the text of a command with an `@echo`, in which the shell also replaces `%{readfile:...}`.
fn announce(context: &mut Context<'_>, shell: &Shell, index: usize) -> Halting<()> {
    let text = context.script.commands[index].text.trim_start();
    if context.is_native || context.script.dialect != Dialect::V23 || !expand::names_file(text) {
        return Ok(());
    }
    let begun = Instant::now();
    let mut words = [Word::Text("@echo".to_owned()), Word::Text(text.to_owned())];
    let shown = words.each_ref().map(|word| word.text().to_owned());
    let expanded = expand::readfile(&mut words, shell.cwd());
    context.announced.push((index, expanded.is_ok().then(|| words[1].text().to_owned())));
    if let Err(Halt::Shell { message, .. }) = &expanded {
        context.pipelines += 1;
        let done = Done { stderr: message.clone(), status: SHELL_ERROR, ..Done::default() };
        context.push_plain(shown.into(), done, (0, 1), begun.elapsed());
    }
    expanded
}

/// Refuses `&` before anything of its command runs. lit then fails to report its own refusal.
fn refuse_background(ast: &Ast) -> Halting<()> {
    if ast.rest.iter().any(|(operator, _)| *operator == Operator::Background) {
        return Err(Halt::exception("AttributeError", "'Seq' object has no attribute 'args'"));
    }
    Ok(())
}

/// Runs pipelines from the left. All operators bind equally.
fn sequence(context: &mut Context<'_>, shell: &mut Shell, ast: &Ast) -> Halting<Option<i32>> {
    let mut status = Some(pipeline::run(context, shell, &ast.first)?);
    for (operator, pipeline) in &ast.rest {
        let goes_on = match operator {
            Operator::And => status == Some(0),
            Operator::Or => status != Some(0),
            Operator::Then | Operator::Background => true,
        };
        if goes_on {
            status = match context.clock.is_killed() {
                true => None,
                false => Some(pipeline::run(context, shell, pipeline)?),
            };
        }
    }
    Ok(status)
}
