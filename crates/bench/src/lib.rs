//! Measures commands against each other, and what starting processes costs on a machine.
//!
//! `measure` runs, `stats` calculates, `compare` draws conclusions, `render` writes them down; `doctor` measures the
//! machine and single tools. Nothing here prints: renderers return text. All processes are started by
//! `hotstart_launch`, and what needs unsafe code (faults, forks) is its `probe` module's business.
#![forbid(unsafe_code)]

pub mod command;
pub mod compare;
pub mod doctor;
pub mod machine;
pub mod measure;
pub mod render;
pub mod stats;

pub use compare::{Options, Report, ab, report};
