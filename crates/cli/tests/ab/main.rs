//! `hotstart ab` from its users' point of view: the real binary on real processes.

mod bad_input;
mod measure;
mod run;
