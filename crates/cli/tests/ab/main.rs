//! `hotstart ab` as its users meet it: the real binary on real processes.

mod bad_input;
mod measure;
mod run;
