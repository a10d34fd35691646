//! Entry points for fuzz/: parsers that are otherwise private.

/// Parses a line of the Python helper as each of its messages, and processes it as a run would.
pub fn helper_line(line: &[u8]) {
    crate::probe::fuzz_line(line);
}
