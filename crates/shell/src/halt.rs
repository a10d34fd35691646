//! Reasons why a script cannot continue.

use std::io;
use std::path::Path;

use hotstart_python::errors;
use hotstart_python::repr;
use rustix::io::Errno;

/// A reason to end a script before its last command.
#[derive(Debug)]
pub(crate) enum Halt {
    /// An error that lit's shell reports as a failed stage of status 127.
    Shell {
        /// The words to show. `None`: those of the stage.
        words: Option<Vec<String>>,
        message: String,
    },
    /// An error that is a Python exception in lit.
    Exception { kind: String, message: String },
    /// The job was ended from outside.
    Killed,
    /// Our own resources failed.
    Internal(String),
}

pub(crate) type Halting<T> = Result<T, Halt>;

impl Halt {
    /// Returns an error of the shell that shows the stage's own words.
    pub fn shell(message: impl Into<String>) -> Self {
        Halt::Shell { words: None, message: message.into() }
    }

    /// Returns a Python exception.
    pub fn exception(kind: &str, message: impl Into<String>) -> Self {
        Halt::Exception { kind: kind.to_owned(), message: message.into() }
    }

    /// Returns Python's exception for a failed operation on a file, or an internal fault if the runner lacks resources.
    pub fn os_error(error: &io::Error, shown_path: &str) -> Self {
        if is_lack(error) {
            return Halt::internal(shown_path, error);
        }
        Halt::exception(errors::kind(error), errors::message(error, Some(shown_path)))
    }

    /// Does the same as [`Halt::os_error`] for a path that is a `str` in Python.
    pub fn file(error: &io::Error, path: impl AsRef<Path>) -> Self {
        Halt::os_error(error, &repr(&path.as_ref().to_string_lossy()))
    }

    /// Returns a failed operation of our own, for example on a pipe.
    pub fn internal(what: &str, error: impl std::fmt::Display) -> Self {
        Halt::Internal(format!("{what}: {error}"))
    }

    /// Shows `words` if the error does not say what to show.
    pub fn showing(self, shown: impl FnOnce() -> Vec<String>) -> Self {
        match self {
            Halt::Shell { words: None, message } => Halt::Shell { words: Some(shown()), message },
            other => other,
        }
    }
}

/// Whether the runner itself lacks descriptors or memory. That says nothing about the test.
pub(crate) fn is_lack(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}
