//! Entry points for fuzz/: parsers that are private otherwise.

/// Reads a line of the Python helper as each of its messages, and does with it what a run would do.
pub fn helper_line(line: &[u8]) {
    crate::probe::fuzz_line(line);
}
