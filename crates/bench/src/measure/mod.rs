//! Runs candidates interleaved and keeps the costs of each run.
//!
//! `session` decides who runs when and until when; a [`Candidate`] is anything that can run once. That is a command
//! here ([`Process`]), and whatever a caller makes of two closures ([`FromFn`]).

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
