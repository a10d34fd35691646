//! `rm [-frR] PATHS`, with lit's surprises: a directory without `-r` is an error *and* is removed.

use std::fs;
use std::io;
use std::path::Path;

use hotstart_model::Dialect;
use hotstart_python::errors;
use hotstart_python::getopt::gnu_getopt;
use hotstart_python::path::{into_text, join, realpath};
use hotstart_python::{repr, repr_bytes};
use rustix::fs::{Access, Mode};
use rustix::io::Errno;

use super::{Call, Done};
use crate::expand;
use crate::halt::{Halt, Halting};

/// A failed removal, in Python's words.
struct Failure(String);

struct Removal {
    force: bool,
    recursive: bool,
    dialect: Dialect,
}

pub(super) fn rm(call: Call<'_>) -> Halting<Done> {
    let cwd = call.shell.cwd();
    let args = expand::arguments(call.words, cwd);
    let (options, operands) = gnu_getopt(&args[1..], "frR", &["--recursive"])
        .map_err(|error| Halt::shell(format!("Unsupported: 'rm':  {error}")))?;
    if options.iter().any(|(option, _)| option.starts_with("--")) {
        // lit declares the option with two dashes too many; used that way, it fails lit's own assertion.
        return Err(Halt::exception("AssertionError", "unhandled option"));
    }
    if operands.is_empty() {
        return Err(Halt::shell("Error: 'rm' is missing an operand"));
    }
    let removal = Removal {
        force: options.iter().any(|(option, _)| option == "-f"),
        recursive: options.iter().any(|(option, _)| option != "-f"),
        dialect: call.dialect,
    };
    let mut done = Done::default();
    for operand in &operands {
        let absolute = operand.starts_with('/');
        let path = if absolute { operand.clone() } else { into_text(realpath(join(cwd, operand))) };
        if removal.force && !Path::new(&path).exists() {
            continue;
        }
        if let Err(Failure(message)) = removal.remove(&path, &mut done) {
            done.stderr.push_str(&format!("Error: 'rm' command failed, {message}"));
            done.status = 1;
        }
    }
    Ok(done)
}

impl Removal {
    fn remove(&self, path: &str, done: &mut Done) -> Result<(), Failure> {
        let is_link = Path::new(path).is_symlink();
        if is_link && self.dialect == Dialect::V23 {
            return fs::remove_file(path).map_err(|error| self.failure(&error, path));
        }
        if Path::new(path).is_dir() {
            if !self.recursive {
                let shown =
                    if self.dialect == Dialect::V19 { repr_bytes(path.as_bytes()) } else { path.to_owned() };
                done.stderr.push_str(&format!("Error: {shown} is a directory\n"));
                done.status = 1;
            }
            return match (is_link, self.force) {
                (true, true) => self.retry(path),
                (true, false) => Err(Failure("Cannot call rmtree on a symbolic link".to_owned())),
                (false, _) => self.remove_tree(path),
            };
        }
        if self.force && rustix::fs::access(path, Access::WRITE_OK).is_err() {
            self.make_writable(path)?;
        }
        fs::remove_file(path).map_err(|error| self.failure(&error, path))
    }

    /// Removes a directory and its content. With `-f`, each failed removal is tried once more.
    fn remove_tree(&self, path: &str) -> Result<(), Failure> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => {
                self.recover(&error, path, path)?;
                return Ok(());
            }
        };
        for entry in entries.flatten() {
            let (full, name) = (entry.path(), entry.file_name());
            let (full, name) = (full.to_string_lossy(), name.to_string_lossy());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.remove_tree(&full)?;
            } else if let Err(error) = fs::remove_file(entry.path()) {
                self.recover(&error, &full, &name)?;
            }
        }
        match fs::remove_dir(path) {
            Ok(()) => Ok(()),
            Err(error) => self.recover(&error, path, path),
        }
    }

    fn recover(&self, error: &io::Error, path: &str, shown: &str) -> Result<(), Failure> {
        if self.force { self.retry(path) } else { Err(self.failure(error, shown)) }
    }

    fn retry(&self, path: &str) -> Result<(), Failure> {
        self.make_writable(path)?;
        fs::remove_file(path).map_err(|error| self.failure(&error, path))
    }

    fn make_writable(&self, path: &str) -> Result<(), Failure> {
        let change = || -> Result<(), Errno> {
            let mode = rustix::fs::stat(path)?.st_mode & 0o7777;
            rustix::fs::chmod(path, Mode::from_raw_mode(mode | 0o200))
        };
        change().map_err(|errno| self.failure(&errors::io_error(errno), path))
    }

    fn failure(&self, error: &io::Error, path: &str) -> Failure {
        let shown = if self.dialect == Dialect::V19 { repr_bytes(path.as_bytes()) } else { repr(path) };
        Failure(errors::message(error, Some(&shown)))
    }
}
