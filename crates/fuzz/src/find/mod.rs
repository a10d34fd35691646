//! Finds differences: compares runs, shrinks what differs, and writes it to a directory.

mod calibrate;
mod campaign;
mod check;
mod reproduce;
mod shrink;
mod statistics;

pub use campaign::run;
pub use check::{Difference, Verdict, check, compare, run_against};
pub use reproduce::replay;
pub use shrink::shrink;
pub use statistics::Statistics;
