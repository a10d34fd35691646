//! What in lit is a Python exception that ends a test: the test becomes UNRESOLVED, its text a traceback.
//!
//! Only the last line of lit's traceback can be reproduced; the frames above it are lit's own code.

pub use hotstart_python::Exception;

/// The text that lit gives as the output of a test which raised it.
pub fn test_output(error: &Exception) -> String {
    let place = error.place.as_ref().map(|place| format!("  {place}\n")).unwrap_or_default();
    format!("Exception during script execution:\nTraceback (most recent call last):\n{place}{error}\n\n")
}
