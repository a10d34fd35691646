//! Decides which job runs when, and ends jobs at their deadline.
//!
//! Workers are threads. Each takes the next job of a [`JobSource`], has it prepared, runs its script, and has the source
//! judge the result. This crate knows neither suites nor the syntax of scripts; to it, tests are jobs like any others.
#![forbid(unsafe_code)]

mod batches;
mod check;
mod crew;
mod delegated;
mod difference;
mod execute;
#[cfg(test)]
mod fake;
mod flaky;
mod foresight;
mod gate;
mod interrupt;
mod kept;
mod memory;
mod outputs;
mod own_files;
mod remote;
mod room;
mod schedule;
mod serial;
mod shells;
mod testing;
mod tool_times;
mod traced;
mod tracer;
mod turns;
mod watch;
mod worker;

pub use check::{CheckCounts, Checks};
pub use interrupt::Interrupt;
pub use memory::{Memory, MemoryCounts};
pub use remote::{Answer, Farm, Ran as RanElsewhere, RemoteCounts, Sent};
pub use schedule::{Replay, RunSettings, run};
pub use serial::Serially;
pub use shells::{ShellCounts, Shells};
pub use testing::while_testing;
pub use tool_times::{ToolTime, ToolTimes};
pub use traced::{TraceError, Traced, inputs_of_program, trace};
pub use tracer::enter_trace;
pub use turns::Order;
