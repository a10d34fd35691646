//! A table of numbers in memory that two processes share, and descriptors that are known only by number.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicI64;

/// Slots mapped from a shared file, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Table {
    base: NonNull<AtomicI64>,
    slots: usize,
}

// SAFETY: the mapping is reached only through shared references to atomics.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// Returns the size of a file for `slots` slots.
    pub(crate) fn bytes(slots: usize) -> usize {
        slots * size_of::<AtomicI64>()
    }

    /// Maps a file of at least [`Table::bytes`] bytes.
    pub(crate) fn map(file: &impl AsFd, slots: usize) -> io::Result<Table> {
        let (length, fd) = (Self::bytes(slots), file.as_fd().as_raw_fd());
        if rustix::fs::fstat(file)?.st_size < length as i64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory; the file was
        // checked to be long enough, and neither side shortens it.
        let base = unsafe { libc::mmap(ptr::null_mut(), length, prot, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(Table { base, slots })
    }

    /// Returns the slots.
    pub(crate) fn slots(&self) -> &[AtomicI64] {
        // SAFETY: `map` made a mapping of this many aligned slots, which lives as long as `self`; every bit
        // pattern is a valid AtomicI64.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.slots) }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length; no reference outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), Self::bytes(self.slots)) };
    }
}

/// Takes a descriptor that the parent left open under this number; `None` if there is none.
pub(crate) fn inherited(number: i32) -> Option<OwnedFd> {
    // SAFETY: fcntl with F_GETFD changes nothing.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } == -1 {
        return None;
    }
    // SAFETY: the descriptor is open, and in this freshly started process nobody else knows of it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}
