//! `hotstart exec`: runs one command through a per-user server of warm tools.
//!
//! A tiny client (`client/`, C without libc) takes the command's place. It sends the command to the server over a socket,
//! passes signals on and ends as the command did. Whenever anything is in doubt, it execs the command itself. The server
//! starts tools by [`hotstart_launch`], warm or not at all: only the client is the process that the build started, so only
//! the client can start the command cold. See docs/guide/builds.md.
#![forbid(unsafe_code)]

mod ask;
mod batch;
mod context;
mod counts;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod image;
mod job;
mod refusal;
mod repeat;
mod request;
mod serve;
mod server;
mod socket_dir;
mod tools;
mod warm_up;
mod wire;
mod workers;

pub use ask::{Answer, status, stop};
pub use batch::{Batch, Command, Outcome};
pub use image::{become_client, install, uninstall};
pub use serve::{ServeError, Settings, serve};
pub use socket_dir::{SocketDir, SocketDirError};
pub use warm_up::{Met, warm_up};
