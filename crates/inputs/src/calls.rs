//! The lists of system calls: those that tell nothing new, those that tell what no key can hold, and those of our own shell.
//!
//! What is on no list here, and names no file (`watch`), is not known to be harmless.

#[cfg(target_arch = "x86_64")]
use hotstart_launch::tracing::AllowedWith;

/// Calls that change or tell only what belongs to the process itself, or to files that it has opened, or what is in the key: user, limits,
/// number of processors.
pub(crate) const HARMLESS: [i64; 77] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_lseek,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_brk,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_pipe,
    libc::SYS_pipe2,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_sched_yield,
    libc::SYS_dup,
    libc::SYS_dup2,
    libc::SYS_dup3,
    libc::SYS_pause,
    libc::SYS_nanosleep,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_copy_file_range,
    libc::SYS_socketpair,
    libc::SYS_vfork,
    libc::SYS_fork,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_getcwd,
    libc::SYS_umask,
    libc::SYS_getrlimit,
    libc::SYS_getuid,
    libc::SYS_getgid,
    libc::SYS_geteuid,
    libc::SYS_getegid,
    libc::SYS_getgroups,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_arch_prctl,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_memfd_create,
    libc::SYS_eventfd2,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_close_range,
    libc::SYS_getdents64,
    libc::SYS_getdents,
    libc::SYS_mlock,
    libc::SYS_munlock,
];

/// Calls that are harmless with some arguments. Others may name another process, or be a deadline by the clock.
#[cfg(target_arch = "x86_64")]
pub(crate) const HARMLESS_WITH: [AllowedWith; 4] = [
    AllowedWith { number: libc::SYS_fcntl as u32, argument: 1, mask: !0, values: &COMMANDS, or_zero: None },
    // 0 is the process itself.
    AllowedWith {
        number: libc::SYS_sched_getaffinity as u32,
        argument: 0,
        mask: !0,
        values: &[0],
        or_zero: None,
    },
    AllowedWith {
        number: libc::SYS_get_robust_list as u32,
        argument: 0,
        mask: !0,
        values: &[0],
        or_zero: None,
    },
    // All of them without a deadline, as glibc waits for conditions and threads.
    AllowedWith {
        number: libc::SYS_futex as u32,
        argument: 1,
        mask: !(libc::FUTEX_PRIVATE_FLAG as u32),
        values: &FUTEXES,
        or_zero: Some(3),
    },
];

/// Commands of `fcntl` that change or tell only the descriptor, or lock. F_GETLK and F_SETOWN would tell of other processes.
#[cfg(target_arch = "x86_64")]
const COMMANDS: [u32; 12] = [
    libc::F_DUPFD as u32,
    libc::F_DUPFD_CLOEXEC as u32,
    libc::F_GETFD as u32,
    libc::F_SETFD as u32,
    libc::F_GETFL as u32,
    libc::F_SETFL as u32,
    libc::F_SETLK as u32,
    libc::F_SETLKW as u32,
    libc::F_OFD_SETLK as u32,
    libc::F_OFD_SETLKW as u32,
    libc::F_ADD_SEALS as u32,
    libc::F_GET_SEALS as u32,
];

/// Operations of `futex` without a deadline: waits for a length of time, and those that wake.
#[cfg(target_arch = "x86_64")]
const FUTEXES: [u32; 6] = [
    libc::FUTEX_WAIT as u32,
    libc::FUTEX_WAKE as u32,
    libc::FUTEX_REQUEUE as u32,
    libc::FUTEX_CMP_REQUEUE as u32,
    libc::FUTEX_WAKE_OP as u32,
    libc::FUTEX_WAKE_BITSET as u32,
];

/// Calls that make, empty, change or remove files: it matters whether they succeed.
#[cfg(target_arch = "x86_64")]
pub(crate) const CHANGING: [i64; 18] = [
    libc::SYS_creat,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_chmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmod,
    libc::SYS_utimensat,
    libc::SYS_truncate,
];

/// The same of calls with some flags in this argument.
#[cfg(target_arch = "x86_64")]
pub(crate) const CHANGING_WITH: [(i64, u32, i32); 2] =
    [(libc::SYS_open, 1, FLAGS_OF_CHANGES), (libc::SYS_openat, 2, FLAGS_OF_CHANGES)];
#[cfg(target_arch = "x86_64")]
const FLAGS_OF_CHANGES: i32 =
    libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE & !libc::O_DIRECTORY;

/// Calls whose answers no key can hold, and what they tell.
pub(crate) const TELLING: [(i64, &str); 28] = [
    (libc::SYS_futex, "the time, by a deadline"),
    (libc::SYS_fcntl, "other processes, or for what is not known"),
    (libc::SYS_sched_getaffinity, "other processes"),
    (libc::SYS_get_robust_list, "other processes"),
    (libc::SYS_clock_gettime, "the time"),
    (libc::SYS_clock_getres, "the time"),
    (libc::SYS_gettimeofday, "the time"),
    (libc::SYS_time, "the time"),
    (libc::SYS_times, "the time"),
    (libc::SYS_getrusage, "the time that it took"),
    (libc::SYS_clock_nanosleep, "the time"),
    (libc::SYS_timerfd_create, "the time"),
    (libc::SYS_setitimer, "the time"),
    (libc::SYS_alarm, "the time"),
    (libc::SYS_timer_create, "the time"),
    (libc::SYS_sysinfo, "the state of the system"),
    (libc::SYS_getrandom, "random numbers"),
    (libc::SYS_getpid, "numbers of processes"),
    (libc::SYS_gettid, "numbers of processes"),
    (libc::SYS_getppid, "numbers of processes"),
    (libc::SYS_getpgrp, "numbers of processes"),
    (libc::SYS_getpgid, "numbers of processes"),
    (libc::SYS_getsid, "numbers of processes"),
    (libc::SYS_socket, "the network, or other programs"),
    (libc::SYS_ptrace, "other processes"),
    (libc::SYS_shmget, "memory of other processes"),
    (libc::SYS_statfs, "the state of a file system"),
    (libc::SYS_fstatfs, "the state of a file system"),
];

/// Calls whose answers do not matter to a program whose source is known: time, random numbers, numbers of processes, the size of memory.
pub(crate) const EXCUSED: [i64; 10] = [
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_getrusage,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
];

/// Flags of threads and processes without namespaces, and without a way out of the trace.
pub(crate) const FLAGS_OF_NEW_PROCESSES: u64 = 0xff
    | (libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_VFORK
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID
        | libc::CLONE_CHILD_SETTID
        | libc::CLONE_PIDFD
        | libc::CLONE_DETACHED) as u64
    | CLONE_CLEAR_SIGHAND;
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

/// Requests of `ioctl`. Questions of `isatty` and for the size of a terminal fail: a test has none. The others change a descriptor, or copy
/// an open file.
pub(crate) const REQUESTS: [u64; 6] =
    [libc::TCGETS, libc::TIOCGWINSZ, libc::FIOCLEX, libc::FIONCLEX, libc::FIONBIO, libc::FICLONE];

/// Returns whether our own code, which runs the lines of a test, may make this call.
pub(crate) fn is_our_own_affair(number: i64) -> bool {
    const OWN: [i64; 25] = [
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_getrandom,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getppid,
        libc::SYS_getpgid,
        libc::SYS_getpgrp,
        libc::SYS_getsid,
        libc::SYS_setpgid,
        libc::SYS_wait4,
        libc::SYS_waitid,
        libc::SYS_kill,
        libc::SYS_tgkill,
        libc::SYS_tkill,
        libc::SYS_pidfd_open,
        libc::SYS_pidfd_send_signal,
        libc::SYS_prctl,
        libc::SYS_prlimit64,
        libc::SYS_getrusage,
        libc::SYS_ioctl,
        libc::SYS_sched_getaffinity,
        libc::SYS_setrlimit,
        libc::SYS_clone,
        libc::SYS_clone3,
    ];
    OWN.contains(&number)
}
