//! The parts of the `hotstart` command, and how they are joined.
//!
//! `args` reads lit's command line, `lit` joins the stages of a run, `command` chooses between hotstart's commands.
//! No stage's work is done here.
#![forbid(unsafe_code)]

pub mod ab;
pub mod args;
pub mod command;
pub mod compdb;
pub mod doctor;
pub mod exec;
pub mod exit_code;
pub mod filecheck;
pub mod lit;
pub mod version;
