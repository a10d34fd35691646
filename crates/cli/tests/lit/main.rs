//! `hotstart lit` from its users' point of view: the real binary on real files and processes.

mod ab;
mod asked;
mod bad_input;
mod children;
mod ci;
mod config_cache;
mod failure;
mod flaky;
mod groups;
mod left_files;
mod limits;
mod live;
mod native;
mod page;
mod python;
mod remember;
mod remote;
mod sly;
mod stop;
mod suite;
mod verbosity;
mod warm;
mod wishes;
