//! The parts of the `hotstart` command that can be tested by themselves.
//!
//! The binary joins the stages; what it goes by is decided here.
#![forbid(unsafe_code)]

pub mod args;
