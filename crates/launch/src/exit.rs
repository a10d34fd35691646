//! How a process ended, what it used, and how it had been started.

use std::fmt;
use std::time::Duration;

use hotstart_model::Status;

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Exit code or signal.
    pub status: Status,
    /// What the kernel accounted.
    pub usage: Usage,
    /// From the request to start it until it was waited for.
    pub wall: Duration,
    /// How it was started.
    pub via: Via,
}

/// The kernel's account of a process, as `wait4` gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Peak resident memory in KiB.
    pub max_rss_kib: u64,
    /// Page faults served without reading from disk.
    pub minor_faults: u64,
    /// Page faults that read from disk.
    pub major_faults: u64,
}

/// How a process was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// By exec, and why so.
    Cold(Reason),
}

/// Why a process was started cold. Cold is always right; the reason tells what it would take to be faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// This version knows no other way.
    OnlyWay,
    /// The process needs a limit or a file mode mask that is set on the way to exec.
    Limits,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::OnlyWay => "no warm start is built in",
            Reason::Limits => "limits or umask are set on the way to exec",
        })
    }
}
