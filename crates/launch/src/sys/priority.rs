//! The input and output priority of a process, for which no library has a function.

/// Returns this process's own priority, in the kernel's form.
pub fn io_priority() -> u32 {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: the call changes nothing.
    unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) as u32 }
}
