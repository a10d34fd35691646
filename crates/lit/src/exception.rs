//! Errors that are Python exceptions in lit and end a test: the test becomes UNRESOLVED, its text a traceback.
//!
//! hotstart reproduces only the last line of lit's traceback; the frames above it are lit's own code.

pub use hotstart_python::Exception;

/// Returns lit's output of a test that raised this exception.
pub fn test_output(error: &Exception) -> String {
    let place = error.place.as_ref().map(|place| format!("  {place}\n")).unwrap_or_default();
    format!("Exception during script execution:\nTraceback (most recent call last):\n{place}{error}\n\n")
}
