//! A Python exception as a value.

use std::fmt;

/// A Python exception as a user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Python's name of the type.
    pub kind: String,
    /// Its text. It may be empty.
    pub message: String,
    /// The place that it concerns, instead of Python's frames.
    pub place: Option<String>,
}

/// The kind of an exception that Python does not raise: this crate does not support what Python does here.
const UNSUPPORTED: &str = "hotstart";

impl Exception {
    /// Returns an exception of the given type.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Exception { kind: kind.into(), message: message.into(), place: None }
    }

    /// Returns a `ValueError`.
    pub fn value(message: impl Into<String>) -> Self {
        Exception::new("ValueError", message)
    }

    /// Returns the error for a limit of this crate, not of Python.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Exception::new(UNSUPPORTED, message)
    }

    /// Whether it is a limit of this crate, which Python would not raise.
    pub fn is_unsupported(&self) -> bool {
        self.kind == UNSUPPORTED
    }

    /// Sets the place that it concerns.
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => f.write_str(&self.kind),
            message => write!(f, "{}: {message}", self.kind),
        }
    }
}

impl std::error::Error for Exception {}
