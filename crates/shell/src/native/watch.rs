//! Checks each command of an accepted script right before it starts: what its paths mean depends on what has run before.
//!
//! A doubt ends the native run, and the requested shell runs the whole script again.

use std::path::Path;

use hotstart_python::path::join;

use super::{Refusal, place, program, stage};
use crate::ast::{Command, RedirectOp, Target, Word};
use crate::halt::{Halt, Halting};
use crate::state::Shell;

/// Checks the directory, and all paths that a stage makes the shell itself follow.
pub(crate) fn stage(
    doubt: &mut Option<Refusal>,
    found: &mut program::Found,
    shell: &Shell,
    command: &Command,
) -> Halting<()> {
    check_stage(found, shell, command).map_err(|reason| halt(doubt, reason))
}

/// Checks the file that is to be executed under this name.
pub(crate) fn program(
    doubt: &mut Option<Refusal>,
    found: &mut program::Found,
    name: &str,
    path: &str,
) -> Halting<()> {
    place::check(Path::new(path))
        .and_then(|()| program::note(found, name, path))
        .map_err(|reason| halt(doubt, reason))
}

/// Ends the script because `not` would say that its command has crashed or could not be run.
pub(crate) fn not_speaks(doubt: &mut Option<Refusal>) -> Halt {
    halt(doubt, "a command behind `not` that crashes or cannot be run")
}

fn halt(doubt: &mut Option<Refusal>, reason: Refusal) -> Halt {
    *doubt = Some(reason);
    Halt::shell(format!("left to the shell that the test asks for: {reason}\n"))
}

fn check_stage(found: &mut program::Found, shell: &Shell, command: &Command) -> Result<(), Refusal> {
    // bash stays in its directory, wherever that is moved to. This shell has the path only.
    if !shell.held.as_ref().is_some_and(|held| held.is_at(&shell.cwd_path())) {
        return Err("the working directory is no longer at its path");
    }
    let follow = |path: &str| place::check(Path::new(&join(shell.cwd(), path)));
    for redirect in &command.redirects {
        match &redirect.target {
            Target::Word(Word::Text(_))
                if matches!((redirect.op, redirect.fd), (RedirectOp::DupOut, Some(_))) => {}
            Target::Word(Word::Text(name)) => follow(name)?,
            _ => return Err("a redirection of another kind"),
        }
    }
    let path = shell.vars.get("PATH").map(|path| path.to_string_lossy()).unwrap_or_default();
    let (prefixes, words) = stage::prefixes(&command.words)?;
    for prefix in prefixes.iter().filter(|prefix| **prefix != "!") {
        let file = program::file_of_prefix(prefix, &path)?;
        program::note(found, prefix, &file)?;
    }
    let args = words.get(1..).unwrap_or_default();
    let name = words.first().and_then(Word::literal);
    // `env` and `not` start a program, whatever builtin bash has of its name.
    let of_shell = name.filter(|_| prefixes.iter().all(|prefix| *prefix == "!"));
    program::check_system(of_shell.unwrap_or_default(), &path)?;
    match of_shell {
        Some("test") => stage::tested_files(args).try_for_each(follow)?,
        Some("cd") => args.iter().filter_map(Word::literal).try_for_each(follow)?,
        _ => {}
    }
    for word in words {
        if let Word::Glob(pattern) = word {
            let (dir, _) = pattern.rsplit_once('/').unwrap_or_default();
            follow(dir)?;
            has_plain_names(dir)?;
        }
    }
    Ok(())
}

/// Accepts a directory that is listed if all names are ASCII: bash may match bytes, and the internal shell matches characters.
fn has_plain_names(dir: &str) -> Result<(), Refusal> {
    const REASON: Refusal = "a pattern where names are not ASCII";
    let entries = match std::fs::read_dir(if dir.is_empty() { "/" } else { dir }) {
        Ok(entries) => entries,
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok(());
        }
        Err(_) => return Err(REASON),
    };
    let is_plain =
        |entry: std::io::Result<std::fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name().is_ascii());
    entries.into_iter().all(is_plain).then_some(()).ok_or(REASON)
}
