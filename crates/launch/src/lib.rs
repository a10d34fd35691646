//! Turns a [`Spec`] into an [`Exit`]: starts one process, waits for it, and accounts for it.
//!
//! This crate knows no shell, no test and no report. It is the only one with unsafe code, all of it below `sys`. The result
//! includes the way of the start: [`Via`] is warm, or cold with a [`Reason`]. So nobody has to guess why a run was slow, and
//! a cold start can confirm a verdict.

// Elsewhere every tool is cold, and much of what warm starts need has no use.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

pub mod allocator;
mod anchor;
mod cold;
mod confinement;
mod descendants;
pub mod descriptors;
mod env_block;
mod exit;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod group;
mod guard;
mod history;
mod launcher;
pub mod probe;
mod served;
pub mod signals;
mod slots;
mod spec;
mod sys;
mod terminal;
#[cfg(target_arch = "x86_64")]
pub mod tracing;
mod warm;

pub use allocator::{AllocatorChoice, AllocatorError, Allocators};
pub use cold::enter_trampoline;
pub use confinement::{confinement, has_filters_of_first};
pub use env_block::EnvBlock;
pub use exit::{Exit, Reason, Usage, Via};
pub use group::Group;
pub use guard::enter_guard;
pub use history::{Served, Visit};
pub use launcher::{Child, Launcher, StartError};
pub use spec::{IGNORABLE, Limit, ProcessGroup, Resource, Spec};
pub use sys::clock::of_files as time_of_files;
pub use sys::features::{glibc_version, has_locale, has_syscall_user_dispatch};
pub use sys::priority::io_priority;
pub use sys::settings::unusual_settings;
pub use sys::wait::Change;
pub use warm::{
    Ahead, Choice, Clones, CpuTime, Hold, Nested, OnDoubt, Policy, Retirement, StatCache, Statistics,
    Stopped, ToolStatistics, cache_directory, has_fixed_search, holds_files, is_missed_by_loader,
    is_read_by_libraries, leads_through_made_up, may_steer_loader, needed_glibc, reports_changes,
    stamps_accesses, stamps_changes,
};

/// Returns whether this process was started without a standard output.
pub fn stdout_was_closed() -> bool {
    sys::stdio::stdout_was_closed()
}
