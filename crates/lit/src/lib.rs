//! Turns lit's test suites into jobs, and the transcripts of their scripts into verdicts.
//!
//! Python evaluates the configs, which are Python (`probe`); everything else is done here. This crate starts only
//! Python helpers and, to list their tests, googletest executables: a test becomes a `model::Script`, and its
//! `model::Transcript` comes back.
#![forbid(unsafe_code)]

pub mod ahead;
pub mod boolexpr;
pub mod build_tree;
pub mod config;
mod delegate;
pub mod directives;
pub mod discover;
pub mod exception;
mod executable;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod googletest;
pub mod judge;
mod line_times;
pub mod load;
pub mod order;
pub mod plan;
pub mod probe;
mod read_ahead;
pub mod render;
pub mod script;
pub mod select;
pub mod settings;
pub mod subst;
pub mod suite;
pub mod times;
mod tmp_dir;
