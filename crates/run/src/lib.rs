//! Decides which job runs when, and ends those whose time is up.
//!
//! Workers are threads that take the next job of a [`JobSource`], let it be prepared, run its script, and let the
//! source judge what happened. This crate knows neither suites nor the syntax of scripts; it cannot tell a list of
//! tests from any other list of jobs.
#![forbid(unsafe_code)]

mod check;
mod crew;
mod delegated;
mod difference;
mod execute;
#[cfg(test)]
mod fake;
mod flaky;
mod gate;
mod interrupt;
mod own_files;
mod room;
mod schedule;
mod serial;
mod shells;
mod tool_times;
mod turns;
mod watch;
mod worker;

pub use check::{CheckCounts, Checks};
pub use interrupt::Interrupt;
pub use schedule::{Replay, RunSettings, run};
pub use serial::Serially;
pub use shells::{ShellCounts, Shells};
pub use tool_times::{ToolTime, ToolTimes};
pub use turns::Order;
