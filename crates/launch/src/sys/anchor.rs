//! Children that end at once, and lead a process group until they are reaped.

use std::io;
use std::ptr;

/// Makes a child that has ended and leads a new process group.
pub(crate) fn make() -> io::Result<i32> {
    extern "C" fn end(_: *mut libc::c_void) -> libc::c_int {
        0
    }
    // No signal reports its end: if the runner was started with SIGCHLD ignored, the kernel would reap a child that sends it.
    // SAFETY: the child returns at once, and is given nothing.
    let made = unsafe { super::spawn::clone_stopped(0, end, ptr::null_mut()) };
    let pid = made.map_err(io::Error::from_raw_os_error)?;
    if set_group(pid, pid) {
        return Ok(pid);
    }
    let error = io::Error::last_os_error();
    reap(pid);
    Err(error)
}

/// Returns whether an anchor is the only process of its group. The anchor leaves its group for the test, and then leads it
/// again if it was alone.
pub(crate) fn is_alone(pid: i32) -> bool {
    // SAFETY: these calls have no memory precondition; the number is that of a child not reaped.
    unsafe {
        set_group(pid, libc::getpgrp())
            && libc::kill(-pid, 0) == -1
            && *libc::__errno_location() == libc::ESRCH
            && set_group(pid, pid)
    }
}

/// Reaps an anchor. Its number stays taken while its group has processes.
pub(crate) fn reap(pid: i32) {
    // SAFETY: the status is not requested; __WCLONE is for children whose end no SIGCHLD reports.
    unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WCLONE) };
}

/// Moves a child that has not called exec to a process group. Returns whether it could.
pub(crate) fn set_group(pid: i32, pgid: i32) -> bool {
    // SAFETY: setpgid has no memory precondition.
    unsafe { libc::setpgid(pid, pgid) == 0 }
}
