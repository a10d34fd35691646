//! Runs actions on a service of the Remote Execution API, v2.0 or newer.
//!
//! Asynchronous code exists only here, on one thread of its own. Callers submit actions and take results; both calls are
//! plain functions. This crate knows commands, trees of files and outputs. It knows neither tests nor shells.
#![forbid(unsafe_code)]

mod api;
mod channel;
mod client;
mod digest;
mod service;
mod shelf;
mod tree;

pub use channel::{Endpoint, Tls};
pub use client::{Client, Counts, Ended, Settings};
pub use digest::Digest;
pub use shelf::Shelf;
pub use tree::{Blobs, Content, Tree};

use std::time::Duration;

/// A command with its inputs.
#[derive(Clone, Debug)]
pub struct Action {
    /// The program and its arguments. The program is a path below the input root.
    pub arguments: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// All files that it needs.
    pub inputs: Tree,
    /// The file that it writes, below the input root.
    pub output: String,
    /// Limit of its run time.
    pub timeout: Duration,
    /// Whether a stored result may be used, and this one stored.
    pub is_cached: bool,
}
