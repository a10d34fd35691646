//! The fence around unsafe code: thin wrappers of C interfaces that no safe library offers.
#![allow(unsafe_code)]

pub(crate) mod anchor;
pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod features;
pub(crate) mod limits;
pub(crate) mod priority;
pub(crate) mod probe;
pub(crate) mod registers;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod signal;
pub(crate) mod spawn;
pub(crate) mod stdio;
pub(crate) mod trace;
#[cfg(target_arch = "x86_64")]
pub(crate) mod tracer;
pub(crate) mod vdso;
pub(crate) mod wait;
