//! Compares the costs of commands, and measures the cost of starting processes on a machine.
//!
//! `measure` runs commands, `stats` calculates, `compare` draws conclusions, and `render` writes them down; `doctor`
//! measures the machine and single tools. Nothing here prints: renderers return text. `hotstart_launch` starts all
//! processes, and its `probe` module contains the unsafe code (faults, forks).
#![forbid(unsafe_code)]

pub mod command;
pub mod compare;
pub mod doctor;
pub mod machine;
pub mod measure;
pub mod render;
pub mod stats;

pub use compare::{Options, Report, ab, report};
