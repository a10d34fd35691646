//! Runs scripts for an external shell in the internal one where both behave the same (`--shell=native`).
//!
//! A script is accepted only if every command has the same meaning in bash and in this shell. The rules refuse in case
//! of doubt: `text` checks the characters, `stage` the parsed commands, and this module the shell and its environment.
//! The requested shell runs a refused script, and the reason is recorded. An accepted script differs from one for lit's
//! internal shell in a few places, each marked by [`Context::is_native`](crate::pipeline::Context): programs are the
//! system's own (`cat`, `rm`, `mkdir`, `diff`), `not` treats crashes as the program of this name does, `cd` checks
//! whether the directory exists, and processes see the variables that bash sets (`PWD`, `OLDPWD`, `SHLVL`).
//!
//! docs/design/native-shell.md lists the rules. A caller may rely only on success: a script that fails natively must
//! run again in its own shell.

mod names;
pub(crate) mod place;
pub(crate) mod program;
mod stage;
mod text;
pub(crate) mod watch;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use hotstart_model::{Environment, ExternalShell, RunBy, Script, Transcript};

use crate::ast::{Ast, Operator};
use crate::parse::parse;
use crate::state::Shell;
use crate::{Starts, external, interp};
use place::Held;

/// Bytes of an environment, with a pointer for each variable. Linux gives all arguments 128 KiB at least.
const ENVIRONMENT_MAX: usize = 64 << 10;
/// Bytes of all commands: they may set variables.
const TEXT_MAX: usize = 48 << 10;
/// bash follows a chain of commands recursively, and 40,000 of them end it.
const COMMANDS_MAX: usize = 2000;

/// The reason why a script is not accepted.
pub(crate) type Refusal = &'static str;

/// Runs one attempt: natively if the script is accepted, otherwise in its own shell.
pub(crate) fn run(script: &Script, shell: &ExternalShell, starts: Starts<'_>) -> Transcript {
    match accept(script, shell) {
        Ok((commands, state)) => interp::run_native(script, commands, state, starts),
        Err(reason) => {
            let transcript = external::run(script, shell, starts.launcher, starts.group);
            Transcript { run_by: RunBy::Refused(reason), ..transcript }
        }
    }
}

/// Returns the commands and the state in which bash would begin, or the reason for a refusal.
fn accept(script: &Script, shell: &ExternalShell) -> Result<(Vec<Option<Ast>>, Shell), Refusal> {
    let path = accept_surroundings(script, shell)?;
    let scope = Scope {
        has_not: program::file_of_prefix("not", path).is_ok(),
        sorts_bytes: sorts_bytes(&script.env),
        pipefail: script.pipefail,
    };
    let one = |command: &hotstart_model::Command| match command.text.as_str() {
        "" => Ok(None),
        text => accept_command(text, script, &scope).map(Some),
    };
    let commands = script.commands.iter().map(one).collect::<Result<_, _>>()?;
    Ok((commands, initial_state(script)?))
}

/// The context of the rules for stages.
pub(crate) struct Scope {
    /// Whether there is a program `not`.
    pub has_not: bool,
    /// Whether bash sorts file names byte by byte.
    pub sorts_bytes: bool,
    /// Whether a pipeline fails when any stage does.
    pub pipefail: bool,
}

/// Checks the shell and its environment. Returns PATH.
fn accept_surroundings<'s>(script: &'s Script, shell: &ExternalShell) -> Result<&'s str, Refusal> {
    if shell.shell.file_name() != Some(OsStr::new("bash")) || !program::is_of_system(&shell.shell) {
        return Err("the shell is not the system's bash");
    }
    if !shell.prefix.is_empty() {
        return Err("the shell runs under another program");
    }
    if !script.env.iter().all(|(name, _)| name.to_str().is_some_and(names::may_be_imported)) {
        return Err("a variable that bash treats in its own way");
    }
    // bash itself has to start with them. Linux allows much more, but less where the stack's limit is low.
    let texts = script.commands.iter().map(|command| command.text.len());
    let size = script.env.iter().map(|(name, value)| name.len() + value.len() + 10).sum::<usize>();
    if size > ENVIRONMENT_MAX || texts.sum::<usize>() > TEXT_MAX || script.commands.len() > COMMANDS_MAX {
        return Err("a large script or environment");
    }
    let path = script.env.get("PATH").and_then(OsStr::to_str).unwrap_or_default();
    // Programs see how their own path is made of it: bash and `env` do that each in its own way.
    if !path.split(':').all(|dir| dir != "/" && is_plain_absolute(dir)) {
        return Err("PATH has directories that are not absolute and plain");
    }
    if !has_known_characters(&script.env) {
        return Err("a locale whose characters are not UTF-8");
    }
    Ok(path)
}

fn accept_command(text: &str, script: &Script, scope: &Scope) -> Result<Ast, Refusal> {
    text::accept(text)?;
    let ast = parse(text, script.dialect).map_err(|_| "not in the internal shell's language")?;
    let mut pipelines = std::iter::once(&ast.first).chain(ast.rest.iter().map(|(_, pipeline)| pipeline));
    pipelines.try_for_each(|pipeline| stage::accept(pipeline, scope))?;
    match ast.rest.iter().any(|(operator, _)| *operator == Operator::Background) {
        true => Err("a command in the background"),
        false => Ok(ast),
    }
}

#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz_command(text: &str) -> bool {
    let scope = Scope { has_not: true, sorts_bytes: true, pipefail: true };
    let Ok(ast) = text::accept(text).and_then(|()| {
        parse(text, hotstart_model::Dialect::V23).map_err(|_| "not in the internal shell's language")
    }) else {
        return false;
    };
    std::iter::once(&ast.first)
        .chain(ast.rest.iter().map(|(_, pipeline)| pipeline))
        .all(|pipeline| stage::accept(pipeline, &scope).is_ok())
}

/// Whether bash and lit sort file names alike. bash follows the locale; lit does not.
fn sorts_bytes(env: &Environment) -> bool {
    let set = |name| env.get(name).filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_COLLATE")).or_else(|| set("LANG"));
    locale.is_none_or(|name| ["C", "POSIX", "C.UTF-8", "C.utf8"].iter().any(|plain| name == *plain))
}

/// Whether bash takes each byte of ASCII for a character. In some locales it may be the second half of one.
fn has_known_characters(env: &Environment) -> bool {
    let is_known = |value: &OsStr| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        matches!(&*value, "" | "c" | "posix") || value.ends_with(".utf-8") || value.ends_with(".utf8")
    };
    ["LC_ALL", "LC_CTYPE", "LANG"].iter().all(|name| env.get(name).is_none_or(is_known))
}

/// Returns the state of a bash that has just begun. It exports its directory and the nesting depth of shells.
fn initial_state(script: &Script) -> Result<Shell, Refusal> {
    let mut env = Environment::clone(&script.env);
    for dir in &script.make_dirs {
        // If this fails, the run reports it.
        let _ = fs::create_dir_all(dir);
    }
    let here = fs::canonicalize(&script.cwd).map_err(|_| "the directory cannot be found")?;
    // Mostly that of the test's own files, for which `watch` would only find a reason when the script is half done.
    let of_files = script.tmp_base.parent().unwrap_or(Path::new("/"));
    for dir in [&*script.cwd, of_files] {
        place::check(dir)?;
    }
    env.set("PWD", here);
    env.set("SHLVL", depth(script.env.get("SHLVL"))?.to_string());
    let mut shell = Shell::new(Arc::new(env), &script.cwd);
    shell.held = Some(Held::of(&script.cwd).map_err(|_| "the directory cannot be identified")?);
    Ok(shell)
}

/// Returns the nesting depth of a shell in one with this depth. bash has its own rules for what is no such number, or a high one.
fn depth(outer: Option<&OsStr>) -> Result<u32, Refusal> {
    let Some(outer) = outer else { return Ok(1) };
    let depth = outer.to_str().filter(|text| text.len() < 3).and_then(|text| text.parse::<u32>().ok());
    depth.map(|depth| depth + 1).ok_or("a nesting depth that is no small number")
}

/// Whether this is an absolute path that bash's `cd` leaves unchanged.
fn is_plain_absolute(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("")
        && (path == "/" || parts.all(|part| !matches!(part, "" | "." | "..")))
        && Path::new(path).is_absolute()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
