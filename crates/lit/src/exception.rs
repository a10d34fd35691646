//! What in lit is a Python exception that ends a test: the test becomes UNRESOLVED, its text a traceback.
//!
//! Only the last line of lit's traceback can be reproduced; the frames above it are lit's own code.

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

impl Exception {
    /// An exception of the given type.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Exception { kind: kind.into(), message: message.into(), place: None }
    }

    /// A `ValueError`.
    pub fn value(message: impl Into<String>) -> Self {
        Exception::new("ValueError", message)
    }

    /// Says what it is about.
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// The text that lit gives as the output of a test which raised it.
    pub fn test_output(&self) -> String {
        let place = self.place.as_ref().map(|place| format!("  {place}\n")).unwrap_or_default();
        format!("Exception during script execution:\nTraceback (most recent call last):\n{place}{self}\n\n")
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
