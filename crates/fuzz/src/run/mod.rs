//! Runs sequences: compiles the programs, starts each run cold, forked or reset, and records the observations.

mod observed;
mod place;
mod session;
pub mod sources;
mod workshop;

pub use observed::{Observed, Sight, TIMED_OUT};
pub use place::Place;
pub use session::{Again, Mode, Outcome, Session, Tally};
pub use workshop::{Program, Workshop};
