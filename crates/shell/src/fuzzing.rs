//! Entry points for fuzz/: parsers that are private otherwise.

/// Whether a command for bash may run natively, by its text alone.
pub fn is_native(text: &str) -> bool {
    crate::native::fuzz_command(text)
}
