//! What Python's library does where lit relies on it: texts, paths, option parsing, error messages.
//!
//! Only the parts that users see through lit are here, and only for POSIX.

pub(crate) mod errors;
pub(crate) mod getopt;
pub(crate) mod path;
pub(crate) mod text;
