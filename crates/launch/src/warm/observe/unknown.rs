//! Names the system calls that are not on the list of `calls`, for the report of a tool that stays cold.

use super::calls::{Entry, is_standard};
use super::{Refusal, old};
use crate::Reason;

/// Returns the reason for a call that is not on the list.
pub(super) fn unknown(call: Entry) -> Refusal {
    let fd = call.args[0] as i32;
    let (reason, name) = match call.number {
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 if !is_standard(fd) => {
            (Reason::WritesFiles, "write")
        }
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 => (Reason::Stdio, "write"),
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_lseek if is_standard(fd) => (Reason::Stdio, "read"),
        libc::SYS_ioctl => (Reason::Stdio, "ioctl"),
        number => named(number),
    };
    let detail = if name.is_empty() { format!("system call {}", call.number) } else { name.to_owned() };
    Refusal { reason, detail }
}

fn named(number: i64) -> (Reason, &'static str) {
    match number {
        libc::SYS_getpid => (Reason::ReadsIdentity, "getpid"),
        libc::SYS_gettid => (Reason::ReadsIdentity, "gettid"),
        libc::SYS_getppid => (Reason::ReadsIdentity, "getppid"),
        old::SYS_getpgrp | libc::SYS_getpgid => (Reason::ReadsIdentity, "getpgrp"),
        libc::SYS_getsid => (Reason::ReadsIdentity, "getsid"),
        libc::SYS_clock_gettime => (Reason::ReadsClock, "clock_gettime"),
        libc::SYS_gettimeofday => (Reason::ReadsClock, "gettimeofday"),
        old::SYS_time => (Reason::ReadsClock, "time"),
        libc::SYS_times => (Reason::ReadsClock, "times"),
        libc::SYS_getrusage => (Reason::ReadsClock, "getrusage"),
        libc::SYS_getcwd => (Reason::ReadsDirectory, "getcwd"),
        libc::SYS_chdir | libc::SYS_fchdir => (Reason::ReadsDirectory, "chdir"),
        libc::SYS_umask => (Reason::ConstructorCall, "umask"),
        libc::SYS_getcpu => (Reason::ReadsSystem, "getcpu"),
        libc::SYS_sysinfo => (Reason::ReadsSystem, "sysinfo"),
        libc::SYS_clone | libc::SYS_clone3 => (Reason::Threads, "clone"),
        old::SYS_fork | old::SYS_vfork => (Reason::Children, "fork"),
        libc::SYS_kill | libc::SYS_tgkill | libc::SYS_tkill => (Reason::Signals, "kill"),
        libc::SYS_setitimer | libc::SYS_timer_create | old::SYS_alarm => (Reason::Timers, "setitimer"),
        libc::SYS_timerfd_create => (Reason::Timers, "timerfd_create"),
        libc::SYS_shmat | libc::SYS_shmget => (Reason::SharedMemory, "shmat"),
        libc::SYS_socket | libc::SYS_socketpair => (Reason::Descriptors, "socket"),
        old::SYS_pipe | libc::SYS_pipe2 => (Reason::Descriptors, "pipe"),
        old::SYS_epoll_create | libc::SYS_epoll_create1 => (Reason::Descriptors, "epoll_create"),
        libc::SYS_eventfd2 | libc::SYS_memfd_create => (Reason::Descriptors, "eventfd"),
        libc::SYS_dup | old::SYS_dup2 | libc::SYS_dup3 => (Reason::Descriptors, "dup"),
        old::SYS_creat => (Reason::WritesFiles, "creat"),
        old::SYS_mkdir | libc::SYS_mkdirat => (Reason::WritesFiles, "mkdir"),
        old::SYS_unlink | libc::SYS_unlinkat => (Reason::WritesFiles, "unlink"),
        old::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 => (Reason::WritesFiles, "rename"),
        libc::SYS_execve | libc::SYS_execveat => (Reason::NotStopped, "execve"),
        libc::SYS_exit | libc::SYS_exit_group => (Reason::NotStopped, "exit"),
        libc::SYS_futex => (Reason::Threads, "futex"),
        libc::SYS_prctl => (Reason::ConstructorCall, "prctl"),
        _ => (Reason::ConstructorCall, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_has_a_name() {
        let call = |number, fd: u64| unknown(Entry { number, args: [fd, 0, 0, 0, 0, 0], ip: 0 });
        assert_eq!(call(libc::SYS_write, 1).reason, Reason::Stdio);
        assert_eq!(call(libc::SYS_write, 7).reason, Reason::WritesFiles);
        assert_eq!(call(libc::SYS_getpid, 0).detail, "getpid");
        assert_eq!(call(libc::SYS_swapon, 0).detail, format!("system call {}", libc::SYS_swapon));
    }
}
