//! Runs candidates interleaved and keeps the costs of each run.
//!
//! `session` decides the order of the runs and their number. A [`Candidate`] is anything that can run once: a command
//! ([`Process`]), or a caller's closure ([`FromFn`]).

mod candidate;
mod failure;
mod halt;
mod order;
mod output;
mod process;
mod sample;
mod session;

pub use candidate::{Candidate, FromFn};
pub use failure::{Failure, Phase, describe};
pub use halt::Halt;
pub use output::Digest;
pub use process::{Accepted, Hooks, Process, ProcessSettings, run_hook};
pub use sample::{Metric, Sample};
pub use session::{Amount, Observer, Plan, Progress, Runs, Series, Silent, measure};
