//! The priority of a process's input and output, for which no library has a function.

/// This process's own, in the kernel's form.
pub fn io_priority() -> u32 {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: the call only asks.
    unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) as u32 }
}
