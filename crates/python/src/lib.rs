//! The parts of Python's standard library on which lit's behaviour depends: one function for each of Python's rules.
//!
//! lit is a Python program, so its verdicts and its output depend on what Python takes for white space, how `repr`
//! writes a string and which patterns `re` accepts. Rust's libraries differ in many of these points.
//! `tests/against_python` compares every module with a real Python. This crate knows neither lit nor tests, and
//! supports only POSIX.
#![forbid(unsafe_code)]

pub mod argfile;
pub mod errors;
mod exception;
pub mod getopt;
pub mod glob;
pub mod json;
pub mod locale;
pub mod number;
pub mod path;
pub mod re;
mod repr;
pub mod shlex;
pub mod tempfile;
pub mod text;
pub mod which;

pub use exception::Exception;
pub use repr::{repr, repr_bytes};
