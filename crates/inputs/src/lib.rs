//! The inputs of a test: every file that its processes opened, looked for or listed, and the state in which they found it.
//!
//! They are learned from one cold run, in which all processes are traced (`watch`, `walk`). A run whose system calls are not all known
//! teaches nothing. Afterwards [`Verdicts`] tells whether all inputs still are as they were. This crate knows no tests, shells or
//! verdicts: a key stands for everything that the caller knows by itself.
#![forbid(unsafe_code)]
// Elsewhere nothing is traced.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

#[cfg(target_arch = "x86_64")]
mod calls;
mod content;
mod handlers;
mod input;
mod merge;
#[cfg(target_arch = "x86_64")]
mod program;
mod subject;
mod surroundings;
mod verdicts;
#[cfg(target_arch = "x86_64")]
mod walk;
#[cfg(target_arch = "x86_64")]
mod watch;

pub use content::{Contents, Hash};
pub use input::{Input, Looks, Place, Stamp, State};
pub use merge::add_inputs;
pub use subject::Subject;
pub use surroundings::surroundings;
pub use verdicts::{Known, Record, Running, Shared, Verdicts, VerdictsReport, verdicts_report};
#[cfg(target_arch = "x86_64")]
pub use watch::{Traced, trace};
