//! The preload runtime as a file that ld.so can open without there being a path to it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};

const IMAGE: &[u8] = include_bytes!(env!("HOTSTART_RUNTIME"));

/// A sealed memfd, or a nameless file where the kernel refuses executable memfds; `None` where neither is possible.
pub(crate) fn open() -> Option<OwnedFd> {
    sealed_memory().or_else(|| nameless_files().find_map(fill))
}

fn sealed_memory() -> Option<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 know no EXEC and refuse it; there it is not needed.
    let memory = rustix::fs::memfd_create("hotstart-runtime", flags | MemfdFlags::EXEC)
        .or_else(|error| match error {
            rustix::io::Errno::INVAL => rustix::fs::memfd_create("hotstart-runtime", flags),
            other => Err(other),
        })
        .ok()?;
    let memory = fill(memory)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&memory, seals).ok()?;
    Some(memory)
}

/// Files without a name vanish with their last descriptor, however the runner ends.
fn nameless_files() -> impl Iterator<Item = OwnedFd> {
    let named = ["XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    named.chain([PathBuf::from("/tmp"), PathBuf::from("/var/tmp")]).filter_map(|dir| {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        rustix::fs::open(&dir, flags, Mode::RUSR | Mode::WUSR | Mode::XUSR).ok()
    })
}

fn fill(file: OwnedFd) -> Option<OwnedFd> {
    let mut rest = IMAGE;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest).ok()?;
        rest = &rest[written..];
    }
    Some(file)
}
