//! A start, as the caller wants it.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::EnvBlock;

/// A process to start. Nothing is inherited but what is named here: the process gets these descriptors, this
/// environment, this directory; SIGINT's disposition and everything else is the runner's own.
#[derive(Clone, Debug)]
pub struct Spec<'fd> {
    /// The file to execute; found already, no search along PATH is made. A relative path is taken from `cwd`.
    pub program: PathBuf,
    /// Arguments, the invoked name first.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: EnvBlock,
    /// Working directory. Absolute.
    pub cwd: Arc<Path>,
    /// Standard input, output and error.
    pub stdio: [BorrowedFd<'fd>; 3],
    /// Further descriptors, with the number each shall have (3 or above).
    pub extra_fds: Vec<(i32, BorrowedFd<'fd>)>,
    /// File creation mask, where it is not the runner's.
    pub umask: Option<u32>,
    /// Resource limits that are not the runner's.
    pub limits: Vec<Limit>,
    /// Whether a cold start was asked for, whatever the launcher's policy.
    pub keep_cold: bool,
    /// Process group to put it in.
    pub process_group: ProcessGroup,
}

impl<'fd> Spec<'fd> {
    /// A start without arguments in the root directory, with `null` for its input and output: a process that nobody uses.
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
            keep_cold: false,
            process_group: ProcessGroup::Inherit,
        }
    }
}

/// Soft and hard value of one resource limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Which.
    pub resource: Resource,
    /// In the kernel's unit: bytes, or a count.
    pub soft: Option<u64>,
    /// The most to which the process may raise it.
    pub hard: Option<u64>,
}

/// The resources that lit's `ulimit` names.
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
}

impl Resource {
    /// Its number, `RLIMIT_*`.
    pub(crate) fn number(self) -> u32 {
        match self {
            Resource::AddressSpace => libc::RLIMIT_AS,
            Resource::OpenFiles => libc::RLIMIT_NOFILE,
            Resource::Stack => libc::RLIMIT_STACK,
            Resource::FileSize => libc::RLIMIT_FSIZE,
        }
    }
}

/// Which process group a process is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessGroup {
    /// The runner's own.
    Inherit,
    /// A new one, named by the new process.
    New,
    /// That of an earlier stage of the pipeline.
    Join(i32),
}
