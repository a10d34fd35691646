//! `mkdir [-p] DIRS`: an existing directory is no error, even without `-p`.

use std::fs;
use std::io;
use std::path::Path;

use hotstart_model::Dialect;
use hotstart_python::errors;
use hotstart_python::getopt::gnu_getopt;
use hotstart_python::path::{into_text, join, normpath, realpath, split};
use hotstart_python::{repr, repr_bytes};

use super::{Call, Done};
use crate::expand;
use crate::halt::{Halt, Halting};

pub(super) fn mkdir(call: Call<'_>) -> Halting<Done> {
    let cwd = call.shell.cwd();
    let args = expand::arguments(call.words, cwd);
    let (options, operands) = gnu_getopt(&args[1..], "p", &[])
        .map_err(|error| Halt::shell(format!("Unsupported: 'mkdir':  {error}")))?;
    if operands.is_empty() {
        return Err(Halt::shell("Error: 'mkdir' is missing an operand"));
    }
    let mut done = Done::default();
    for operand in &operands {
        let dir = absolute(operand, cwd, call.dialect);
        let made = if options.is_empty() { make(&dir, call.dialect) } else { make_all(&dir, call.dialect) };
        let Err((error, path)) = made else { continue };
        let shown = if call.dialect == Dialect::V19 { repr_bytes(path.as_bytes()) } else { repr(&path) };
        if !options.is_empty() {
            return Err(Halt::os_error(&error, &shown));
        }
        let message = errors::message(&error, Some(&shown));
        done.stderr.push_str(&format!("Error: 'mkdir' command failed, {message}\n"));
        done.status = 1;
    }
    Ok(done)
}

fn absolute(operand: &str, cwd: &str, dialect: Dialect) -> String {
    if !operand.starts_with('/') {
        return into_text(realpath(join(cwd, operand)));
    }
    // lit 23 uses pathlib, which drops doubled slashes and dots, but not what follows `..`.
    match dialect {
        Dialect::V19 => operand.to_owned(),
        Dialect::V23 if operand.contains("..") => operand.to_owned(),
        Dialect::V23 => into_text(normpath(operand)),
    }
}

type Made = Result<(), (io::Error, String)>;

fn make(dir: &str, dialect: Dialect) -> Made {
    match fs::create_dir(dir) {
        Err(error) if tolerated(&error, dir, dialect) => Ok(()),
        made => made.map_err(|error| (error, dir.to_owned())),
    }
}

fn tolerated(error: &io::Error, dir: &str, dialect: Dialect) -> bool {
    match dialect {
        Dialect::V19 => error.kind() == io::ErrorKind::AlreadyExists,
        Dialect::V23 => Path::new(dir).is_dir(),
    }
}

fn make_all(dir: &str, dialect: Dialect) -> Made {
    if dialect == Dialect::V19 && Path::new(dir).exists() {
        return Ok(());
    }
    let (parent, _) = split(dir);
    match make(dir, dialect) {
        Err((error, _)) if error.kind() == io::ErrorKind::NotFound && parent != dir => {
            make_all(parent, dialect)?;
            make(dir, dialect)
        }
        // lit 19 makes the parents first, so its error names the first that cannot be made.
        Err((error, _)) if dialect == Dialect::V19 && parent != dir => {
            make_all(parent, dialect)?;
            Err((error, dir.to_owned()))
        }
        made => made,
    }
}
