//! The commands of the `hotstart` binary, and how they combine the other crates.
//!
//! `args` parses lit's command line, `lit` connects the stages of a run, and `command` chooses between hotstart's commands.
//! The work of each stage is done in other crates.
#![forbid(unsafe_code)]

pub mod ab;
pub mod args;
pub mod cache;
pub mod command;
pub mod compdb;
pub mod doctor;
pub mod exec;
pub mod exit_code;
pub mod filecheck;
pub mod lit;
mod misspelt;
pub mod version;
