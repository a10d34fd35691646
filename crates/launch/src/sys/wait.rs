//! Waiting for children and ending them.

use std::mem::MaybeUninit;
use std::time::Duration;

use hotstart_model::Status;

use crate::Usage;

/// Blocks until the child has ended, but does not reap it.
pub(crate) fn await_end(pid: i32) {
    let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
    loop {
        // SAFETY: the pointer is valid for writes of a siginfo_t.
        let result = unsafe {
            libc::waitid(libc::P_PID, pid as libc::id_t, info.as_mut_ptr(), libc::WEXITED | libc::WNOWAIT)
        };
        if result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return;
        }
    }
}

/// Returns whether the child has ended, but does not reap it.
pub(crate) fn has_ended(pid: i32) -> bool {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
    // SAFETY: the pointer is valid for writes of a siginfo_t.
    let result = unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, info.as_mut_ptr(), flags) };
    // SAFETY: a zeroed siginfo_t is a valid one, which waitid leaves alone or fills.
    result != 0 || unsafe { info.assume_init().si_pid() } == pid
}

/// Returns whether this is the number of a child that has not been reaped.
pub(crate) fn is_child(pid: i32) -> bool {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
    // SAFETY: the pointer is valid for writes of a siginfo_t.
    unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, info.as_mut_ptr(), flags) == 0 }
}

/// Returns a descriptor that becomes readable when the child has ended.
pub(crate) fn pidfd(pid: i32) -> std::io::Result<std::os::fd::OwnedFd> {
    let pid = rustix::process::Pid::from_raw(pid).ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?)
}

/// Reaps a child that has ended.
pub(crate) fn reap(pid: i32) -> (Status, Usage) {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are valid for writes.
    let result = unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) };
    // SAFETY: a zeroed rusage is a valid one, and wait4 writes only valid values.
    let usage = unsafe { usage.assume_init() };
    assert_eq!(result, pid, "a child is reaped by nobody else");
    let status = if libc::WIFSIGNALED(status) {
        Status::Signaled(libc::WTERMSIG(status))
    } else {
        Status::Exited(libc::WEXITSTATUS(status))
    };
    (status, account(&usage))
}

fn account(usage: &libc::rusage) -> Usage {
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    Usage {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        max_rss_kib: usage.ru_maxrss as u64,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}

/// The signal for [`signal`] that cannot be caught.
pub(crate) const SIGKILL: i32 = libc::SIGKILL;

/// Sends SIGKILL to one process, which must be a child that has not been reaped.
pub(crate) fn kill(pid: i32) {
    // SAFETY: kill has no memory precondition; the caller holds the lock that keeps the number ours.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Sends SIGKILL to a process group that has a member which has not been reaped.
pub(crate) fn kill_group(pgid: i32) {
    // SAFETY: as above.
    unsafe { libc::kill(-pgid, libc::SIGKILL) };
}

/// Sends a signal to a process, or to a group by its negated number, that has a member which has not been reaped.
pub(crate) fn signal(target: i32, signal: i32) {
    // SAFETY: as above.
    unsafe { libc::kill(target, signal) };
}

/// Returns whether a process is in this process group.
pub(crate) fn is_in_group(pid: i32, pgid: i32) -> bool {
    // SAFETY: getpgid changes nothing.
    unsafe { libc::getpgid(pid) == pgid }
}

/// Returns whether no process has this number.
pub(crate) fn is_gone(pid: i32) -> bool {
    // SAFETY: signal 0 is only a test.
    unsafe { libc::kill(pid, 0) != 0 }
}
