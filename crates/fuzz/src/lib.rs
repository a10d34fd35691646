//! A differential fuzzer of warm starts.
//!
//! `generate` draws sequences of runs of a C program made of small acts (`acts/`). `run` compiles that program and runs
//! a sequence cold, forked or reset. `find` compares the observations, shrinks what differs and writes it to a
//! directory. See docs/design/fuzzing.md.
#![forbid(unsafe_code)]

pub mod find;
pub mod generate;
pub mod options;
pub mod run;
