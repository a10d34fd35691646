//! The description of a start.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::EnvBlock;

/// A process to start. It gets exactly the descriptors, environment and directory that are named here. Everything else is
/// inherited from the runner.
#[derive(Clone, Debug)]
pub struct Spec<'fd> {
    /// The file to execute. PATH is not searched. A relative path is taken from `cwd`.
    pub program: PathBuf,
    /// Arguments, the invoked name first.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: EnvBlock,
    /// Working directory. Absolute.
    pub cwd: Arc<Path>,
    /// Standard input, output and error.
    pub stdio: [BorrowedFd<'fd>; 3],
    /// Further descriptors, with their numbers in the process (3 or above).
    pub extra_fds: Vec<(i32, BorrowedFd<'fd>)>,
    /// File creation mask, if it differs from the runner's.
    pub umask: Option<u32>,
    /// Resource limits that differ from the runner's.
    pub limits: Vec<Limit>,
    /// Signals that the process finds ignored, if they are not the runner's: bit n - 1 for signal n.
    pub ignored: Option<u64>,
    /// Whether the start is cold, whatever the launcher's policy.
    pub keep_cold: bool,
    /// Process group to put it in.
    pub process_group: ProcessGroup,
}

impl<'fd> Spec<'fd> {
    /// Returns a minimal spec for an internal process: no arguments, cwd `/`, stdio on `null`.
    pub fn plain(program: &Path, name: OsString, env: EnvBlock, null: &'fd impl AsFd) -> Self {
        Spec {
            program: program.to_owned(),
            argv: vec![name],
            env,
            cwd: Path::new("/").into(),
            stdio: [null.as_fd(); 3],
            extra_fds: Vec::new(),
            umask: None,
            limits: Vec::new(),
            ignored: None,
            keep_cold: false,
            process_group: ProcessGroup::Inherit,
        }
    }
}

/// Signals that a warm start may find ignored: those that come from outside. Signals of faults are not among them.
pub const IGNORABLE: u64 = {
    const NUMBERS: [i32; 19] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGPIPE,
        libc::SIGALRM,
        libc::SIGTERM,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
        libc::SIGURG,
        libc::SIGXCPU,
        libc::SIGXFSZ,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGWINCH,
        libc::SIGIO,
        libc::SIGPWR,
    ];
    let mut set = 0;
    let mut at = 0;
    while at < NUMBERS.len() {
        set |= 1 << (NUMBERS[at] - 1);
        at += 1;
    }
    set
};

/// Soft and hard value of one resource limit; `None` means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limited resource.
    pub resource: Resource,
    /// In the kernel's unit: bytes, or a count.
    pub soft: Option<u64>,
    /// The most to which the process may raise the soft value.
    pub hard: Option<u64>,
}

/// The resources that lit's `ulimit` names, and those that builds limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Virtual memory, in bytes.
    AddressSpace,
    /// Open files.
    OpenFiles,
    /// Stack, in bytes.
    Stack,
    /// Size of files written, in bytes.
    FileSize,
    /// Size of a core file, in bytes.
    Core,
}

impl Resource {
    /// Returns the kernel's number, `RLIMIT_*`.
    pub(crate) fn number(self) -> u32 {
        match self {
            Resource::AddressSpace => libc::RLIMIT_AS,
            Resource::OpenFiles => libc::RLIMIT_NOFILE,
            Resource::Stack => libc::RLIMIT_STACK,
            Resource::FileSize => libc::RLIMIT_FSIZE,
            Resource::Core => libc::RLIMIT_CORE,
        }
    }

    /// Returns whether a zygote gets this limit at its own exec, because the memory layout depends on it and libc reads it
    /// before `main`. The other limits are set in each fork.
    pub(crate) fn is_of_zygote(self) -> bool {
        matches!(self, Resource::Stack | Resource::Core)
    }
}

/// The process group for a new process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessGroup {
    /// The runner's own.
    Inherit,
    /// A new one, named by the new process.
    New,
    /// That of an earlier stage of the pipeline.
    Join(i32),
}

impl ProcessGroup {
    /// Returns the number of the group in which the process `pid` is started; 0 for the runner's own, to which no signal may go.
    pub(crate) fn number(self, pid: i32) -> i32 {
        match self {
            ProcessGroup::Inherit => 0,
            ProcessGroup::New => pid,
            ProcessGroup::Join(pgid) => pgid,
        }
    }
}
