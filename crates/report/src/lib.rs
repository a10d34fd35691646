//! Turns events into output and reports for people and programs.
//!
//! During a run, [`Reporter`] receives events from all workers and writes the lines that lit would write. Afterwards
//! [`summary`], [`histogram`] and [`files`] show the whole run. Every string here that lit has too is byte-identical to
//! lit's, as other programs parse them.
//!
//! This crate deliberately does not know what a suite or a config is, nor which processes were started: a test is a
//! name ([`Catalog`], [`TestRecord`]) and an [`hotstart_model::Outcome`]. It decides no exit code.
#![forbid(unsafe_code)]

mod catalog;
pub mod colors;
mod console;
mod diagnostics;
mod display;
mod filecheck;
pub mod files;
pub mod github;
pub mod histogram;
pub mod listing;
pub mod messages;
mod reporter;
mod result_lines;
mod sink;
pub mod summary;
pub mod time_by;

pub use catalog::{Catalog, SuiteName, TestRecord};
pub use console::{DiagnosticLevel, Levels, Shown};
pub use diagnostics::{DiagnosticCounts, Diagnostics};
pub use display::{Bar, Terminal};
pub use reporter::{KeepOutput, Reporter, Results, Settings};
pub use sink::Sink;
