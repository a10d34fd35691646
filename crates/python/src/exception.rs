//! A Python exception as a value.

use std::fmt;

/// A Python exception as a user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Python's name of the type.
    pub kind: String,
    /// Its text; may be empty.
    pub message: String,
    /// What it is about, in the place of Python's frames.
    pub place: Option<String>,
}

/// The kind of an exception that Python does not raise: this crate cannot do what Python does here.
const UNSUPPORTED: &str = "hotstart";

impl Exception {
    /// An exception of the given type.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Exception { kind: kind.into(), message: message.into(), place: None }
    }

    /// A `ValueError`.
    pub fn value(message: impl Into<String>) -> Self {
        Exception::new("ValueError", message)
    }

    /// A limit of this crate, not of Python.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Exception::new(UNSUPPORTED, message)
    }

    /// Whether Python would not raise it.
    pub fn is_unsupported(&self) -> bool {
        self.kind == UNSUPPORTED
    }

    /// Says what it is about.
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
