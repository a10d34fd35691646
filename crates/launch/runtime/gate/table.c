/* The system calls that calls.c knows, and which of their arguments are descriptors.
 *
 * One place asks for all of them whether a call names the descriptor of the runner's connection, which the tool does not have. A call that
 * is not in the table is not known: it cannot be treated in calls.c and be forgotten here. Descriptors in memory (poll, messages) are asked
 * for in calls.c.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <linux/futex.h>
#include <sys/mman.h>

#include "runtime.h"

#if HS_RESETS

/* Arguments that are descriptors. */
enum { A = 1, B = 2, C = 4, D = 8, E = 16, F = 32, NONE = 0 };
#define FICLONE_REQUEST 0x40049409l

#define PLAIN(name, fds) [SYS_##name] = HS_TABLE_PLAIN | HS_TABLE_KNOWN | (fds)
#define KNOWN(name, fds) [SYS_##name] = HS_TABLE_KNOWN | (fds)
/* Not known, but it is asked as well: it could wait for the runner. */
#define OTHER(number, fds) [number] = (fds)
static const unsigned char table[512] = {
    /* Calls that leave nothing behind. */
    PLAIN(read, A), PLAIN(write, A), PLAIN(close, A), PLAIN(lseek, A), PLAIN(pread64, A), PLAIN(pwrite64, A), PLAIN(readv, A),
    PLAIN(writev, A), PLAIN(preadv, A), PLAIN(pwritev, A), PLAIN(preadv2, A), PLAIN(pwritev2, A), PLAIN(sched_yield, NONE),
    PLAIN(nanosleep, NONE), PLAIN(pause, NONE), PLAIN(sendfile, A | B), PLAIN(recvfrom, A),
    PLAIN(shutdown, A), PLAIN(getsockname, A), PLAIN(getpeername, A),
    PLAIN(wait4, NONE), PLAIN(waitid, NONE), PLAIN(uname, NONE), KNOWN(flock, A), PLAIN(fsync, A), PLAIN(fdatasync, A),
    PLAIN(sync, NONE), PLAIN(syncfs, A), PLAIN(sync_file_range, A), PLAIN(ftruncate, A), PLAIN(fallocate, A), PLAIN(getdents64, A),
    PLAIN(getdents, A), PLAIN(getcwd, NONE), PLAIN(fchdir, A), PLAIN(fchmod, A), KNOWN(fchown, A), PLAIN(umask, NONE),
    PLAIN(fstatfs, A), PLAIN(gettimeofday, NONE), PLAIN(time, NONE), KNOWN(sysinfo, NONE),
    PLAIN(getuid, NONE), PLAIN(getgid, NONE), PLAIN(geteuid, NONE), PLAIN(getegid, NONE), PLAIN(getgroups, NONE),
    PLAIN(getresuid, NONE), PLAIN(getresgid, NONE), PLAIN(getppid, NONE), PLAIN(getpgrp, NONE),
    PLAIN(sched_get_priority_max, NONE), PLAIN(sched_get_priority_min, NONE), PLAIN(getcpu, NONE),
    PLAIN(getrandom, NONE), PLAIN(epoll_wait, A), PLAIN(timerfd_settime, A), PLAIN(timerfd_gettime, A), PLAIN(inotify_rm_watch, A),
    PLAIN(copy_file_range, A | C), PLAIN(splice, A | C), PLAIN(tee, A | B), PLAIN(fadvise64, A), PLAIN(readahead, A),
    PLAIN(msync, NONE), PLAIN(fgetxattr, A), PLAIN(flistxattr, A), PLAIN(fsetxattr, A), PLAIN(fremovexattr, A),
    PLAIN(rt_sigpending, NONE), KNOWN(sigaltstack, NONE),
    PLAIN(getitimer, NONE),
    /* Calls with a treatment of their own. */
    KNOWN(exit_group, NONE), KNOWN(brk, NONE), KNOWN(mmap, E), KNOWN(munmap, NONE), KNOWN(mremap, NONE), KNOWN(mprotect, NONE),
    KNOWN(madvise, NONE), KNOWN(open, NONE), KNOWN(openat, A), KNOWN(creat, NONE), KNOWN(access, NONE), KNOWN(statfs, NONE),
    KNOWN(faccessat, A), KNOWN(faccessat2, A), KNOWN(chdir, NONE), KNOWN(stat, NONE), KNOWN(lstat, NONE), KNOWN(fstat, A),
    KNOWN(newfstatat, A), KNOWN(statx, A), KNOWN(readlink, NONE), KNOWN(readlinkat, A), KNOWN(gettid, NONE), KNOWN(getpid, NONE),
    KNOWN(truncate, NONE), KNOWN(chmod, NONE), KNOWN(fchmodat, A), KNOWN(chown, NONE), KNOWN(lchown, NONE), KNOWN(fchownat, A),
    KNOWN(utime, NONE), KNOWN(utimes, NONE), KNOWN(utimensat, A), KNOWN(futimesat, A), KNOWN(getxattr, NONE),
    KNOWN(lgetxattr, NONE), KNOWN(listxattr, NONE), KNOWN(llistxattr, NONE), KNOWN(setxattr, NONE), KNOWN(lsetxattr, NONE),
    KNOWN(removexattr, NONE), KNOWN(lremovexattr, NONE), KNOWN(inotify_add_watch, A), KNOWN(rename, NONE), KNOWN(renameat, A | C),
    KNOWN(renameat2, A | C), KNOWN(mkdir, NONE), KNOWN(mkdirat, A), KNOWN(rmdir, NONE), KNOWN(link, NONE), KNOWN(linkat, A | C),
    KNOWN(unlink, NONE), KNOWN(unlinkat, A), KNOWN(symlink, NONE), KNOWN(symlinkat, B), KNOWN(mknod, NONE), KNOWN(mknodat, A),
    KNOWN(dup, A), KNOWN(dup2, A), KNOWN(dup3, A), KNOWN(accept, A), KNOWN(accept4, A), KNOWN(socket, NONE), KNOWN(getsockopt, A),
    KNOWN(rt_sigtimedwait, NONE), KNOWN(memfd_create, NONE), KNOWN(eventfd, NONE), KNOWN(eventfd2, NONE), KNOWN(epoll_create, NONE),
    KNOWN(epoll_create1, NONE), KNOWN(timerfd_create, NONE), KNOWN(inotify_init, NONE), KNOWN(inotify_init1, NONE),
    KNOWN(pipe, NONE), KNOWN(pipe2, NONE), KNOWN(socketpair, NONE), KNOWN(close_range, NONE), KNOWN(sendmsg, A), KNOWN(recvmsg, A),
    KNOWN(epoll_ctl, A | C), KNOWN(select, NONE), KNOWN(poll, NONE), KNOWN(fcntl, A), KNOWN(ioctl, A), KNOWN(execve, NONE),
    KNOWN(execveat, A), KNOWN(membarrier, NONE), KNOWN(seccomp, NONE), KNOWN(ptrace, NONE), KNOWN(prctl, NONE),
    KNOWN(futex, NONE),
    KNOWN(arch_prctl, NONE), KNOWN(personality, NONE), KNOWN(rt_sigaction, NONE), KNOWN(rt_sigprocmask, NONE),
    KNOWN(rt_sigsuspend, NONE), KNOWN(ppoll, NONE), KNOWN(pselect6, NONE), KNOWN(epoll_pwait, A), KNOWN(epoll_pwait2, A),
    KNOWN(rt_sigreturn, NONE), KNOWN(getrusage, NONE), KNOWN(times, NONE), KNOWN(clock_gettime, NONE), KNOWN(clock_nanosleep, NONE),
    KNOWN(getrlimit, NONE), KNOWN(setrlimit, NONE), KNOWN(prlimit64, NONE), KNOWN(setitimer, NONE), KNOWN(alarm, NONE),
    KNOWN(fork, NONE), KNOWN(vfork, NONE), KNOWN(clone, NONE), KNOWN(clone3, NONE), KNOWN(exit, NONE), KNOWN(set_robust_list, NONE),
    KNOWN(rseq, NONE), KNOWN(kill, NONE), KNOWN(tkill, NONE), KNOWN(tgkill, NONE), KNOWN(rt_sigqueueinfo, NONE),
    KNOWN(rt_tgsigqueueinfo, NONE), KNOWN(pidfd_send_signal, A), KNOWN(connect, A), KNOWN(bind, A), KNOWN(sendto, A),
    KNOWN(listen, A), KNOWN(setsockopt, A), KNOWN(clock_getres, NONE), KNOWN(getpgid, NONE), KNOWN(getsid, NONE), KNOWN(getpriority, NONE),
    KNOWN(sched_getparam, NONE), KNOWN(sched_getscheduler, NONE), KNOWN(sched_getaffinity, NONE), KNOWN(get_robust_list, NONE),
    KNOWN(capget, NONE),
    /* Others; the last ones by number, since headers may be older: fchmodat2, and those of xattrat. */
    OTHER(SYS_mq_timedsend, A), OTHER(SYS_mq_timedreceive, A), OTHER(SYS_mq_notify, A), OTHER(SYS_mq_getsetattr, A),
    OTHER(SYS_vmsplice, A), OTHER(SYS_signalfd, A), OTHER(SYS_signalfd4, A), OTHER(SYS_perf_event_open, D), OTHER(SYS_recvmmsg, A),
    OTHER(SYS_sendmmsg, A), OTHER(SYS_fanotify_mark, A | D), OTHER(SYS_name_to_handle_at, A), OTHER(SYS_open_by_handle_at, A),
    OTHER(SYS_setns, A), OTHER(SYS_finit_module, A), OTHER(SYS_io_uring_enter, A), OTHER(SYS_io_uring_register, A),
    OTHER(SYS_open_tree, A), OTHER(SYS_move_mount, A | C), OTHER(SYS_fsconfig, A), OTHER(SYS_fsmount, A), OTHER(SYS_fspick, A),
    OTHER(SYS_openat2, A), OTHER(SYS_pidfd_getfd, A), OTHER(440 /* process_madvise */, A), OTHER(442 /* mount_setattr */, A),
    OTHER(443 /* quotactl_fd */, A), OTHER(445 /* landlock_add_rule */, A), OTHER(446 /* landlock_restrict_self */, A),
    OTHER(448 /* process_mrelease */, A), OTHER(451 /* cachestat */, A), OTHER(452, A), OTHER(463, A), OTHER(464, A), OTHER(465, A),
    OTHER(466, A),
};

/* The arguments of known calls that are addresses. Calls that change mappings are not here, except madvise: calls.c checks them. */
static const unsigned char pointers[512] = {
    [SYS_open] = A, [SYS_creat] = A, [SYS_access] = A, [SYS_truncate] = A, [SYS_chmod] = A, [SYS_chown] = A, [SYS_lchown] = A,
    [SYS_mkdir] = A, [SYS_rmdir] = A, [SYS_mknod] = A, [SYS_unlink] = A, [SYS_chdir] = A, [SYS_uname] = A, [SYS_sysinfo] = A,
    [SYS_times] = A, [SYS_time] = A, [SYS_pipe] = A, [SYS_pipe2] = A, [SYS_getcwd] = A, [SYS_getrandom] = A, [SYS_poll] = A,
    [SYS_msync] = A, [SYS_memfd_create] = A, [SYS_set_robust_list] = A, [SYS_rseq] = A, [SYS_clone3] = A, [SYS_rt_sigpending] = A,
    [SYS_rt_sigsuspend] = A, [SYS_madvise] = A,
    [SYS_nanosleep] = A | B, [SYS_gettimeofday] = A | B, [SYS_stat] = A | B, [SYS_lstat] = A | B, [SYS_statfs] = A | B,
    [SYS_readlink] = A | B, [SYS_rename] = A | B, [SYS_link] = A | B, [SYS_symlink] = A | B, [SYS_listxattr] = A | B,
    [SYS_llistxattr] = A | B, [SYS_removexattr] = A | B, [SYS_lremovexattr] = A | B, [SYS_utime] = A | B, [SYS_utimes] = A | B,
    [SYS_sigaltstack] = A | B, [SYS_capget] = A | B,
    [SYS_execve] = A | B | C, [SYS_getxattr] = A | B | C, [SYS_lgetxattr] = A | B | C, [SYS_setxattr] = A | B | C,
    [SYS_lsetxattr] = A | B | C, [SYS_rt_sigtimedwait] = A | B | C, [SYS_getresuid] = A | B | C, [SYS_getresgid] = A | B | C,
    [SYS_getcpu] = A | B | C,
    [SYS_symlinkat] = A | C,
    [SYS_ppoll] = A | C | D,
    [SYS_futex] = A | E,
    [SYS_read] = B, [SYS_write] = B, [SYS_pread64] = B, [SYS_pwrite64] = B, [SYS_readv] = B, [SYS_writev] = B, [SYS_preadv] = B,
    [SYS_pwritev] = B, [SYS_preadv2] = B, [SYS_pwritev2] = B, [SYS_getdents] = B, [SYS_getdents64] = B, [SYS_fstat] = B,
    [SYS_fstatfs] = B, [SYS_getitimer] = B, [SYS_sendmsg] = B, [SYS_recvmsg] = B, [SYS_bind] = B, [SYS_connect] = B, [SYS_openat] = B,
    [SYS_mkdirat] = B, [SYS_unlinkat] = B, [SYS_mknodat] = B, [SYS_fchmodat] = B, [SYS_fchownat] = B, [SYS_faccessat] = B,
    [SYS_faccessat2] = B, [SYS_getrusage] = B, [SYS_getgroups] = B, [SYS_clock_gettime] = B, [SYS_clock_getres] = B, [SYS_getrlimit] = B,
    [SYS_setrlimit] = B, [SYS_sched_getparam] = B, [SYS_flistxattr] = B, [SYS_fremovexattr] = B, [SYS_inotify_add_watch] = B,
    [SYS_timerfd_gettime] = B, [SYS_arch_prctl] = B, [SYS_prctl] = B,
    [SYS_getsockname] = B | C, [SYS_getpeername] = B | C, [SYS_accept] = B | C, [SYS_accept4] = B | C, [SYS_utimensat] = B | C,
    [SYS_futimesat] = B | C, [SYS_newfstatat] = B | C, [SYS_readlinkat] = B | C, [SYS_get_robust_list] = B | C, [SYS_fgetxattr] = B | C,
    [SYS_fsetxattr] = B | C, [SYS_rt_sigaction] = B | C, [SYS_rt_sigprocmask] = B | C, [SYS_setitimer] = B | C,
    [SYS_renameat] = B | D, [SYS_renameat2] = B | D, [SYS_linkat] = B | D, [SYS_copy_file_range] = B | D, [SYS_splice] = B | D,
    [SYS_wait4] = B | D,
    [SYS_sendto] = B | E, [SYS_statx] = B | E, [SYS_epoll_wait] = B | E, [SYS_epoll_pwait] = B | E,
    [SYS_recvfrom] = B | E | F,
    [SYS_execveat] = B | C | D,
    [SYS_select] = B | C | D | E, [SYS_clone] = B | C | D | E,
    [SYS_pselect6] = B | C | D | E | F,
    [SYS_epoll_pwait2] = B | D | E,
    [SYS_sched_getaffinity] = C, [SYS_sendfile] = C, [SYS_ioctl] = C, [SYS_fcntl] = C, [SYS_rt_sigqueueinfo] = C,
    [SYS_pidfd_send_signal] = C,
    [SYS_prlimit64] = C | D, [SYS_clock_nanosleep] = C | D, [SYS_timerfd_settime] = C | D,
    [SYS_waitid] = C | E,
    [SYS_socketpair] = D, [SYS_epoll_ctl] = D, [SYS_setsockopt] = D, [SYS_rt_tgsigqueueinfo] = D,
    [SYS_getsockopt] = D | E,
};

static unsigned entry(long number)
{
    return number >= 0 && number < (long)sizeof table ? table[number] : 0;
}

unsigned hs_table_kind(long number)
{
    return entry(number) & (HS_TABLE_PLAIN | HS_TABLE_KNOWN);
}

/* The arguments of a call that are addresses: bit n for argument n. */
unsigned hs_table_pointers(const struct hs_system_call *call)
{
    if (call->number == SYS_futex)
        switch (call->b & FUTEX_CMD_MASK) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET: return A | D;
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET: return A;
        }
    return call->number >= 0 && call->number < (long)sizeof pointers ? pointers[call->number] : 0;
}

/* The kernel looks at the lower half of a descriptor. */
static int is_connection(long fd)
{
    return (int)fd == HS_CONTROL_FD;
}

/* Whether an argument of the call is the descriptor of the runner's connection. */
int hs_table_names_connection(const struct hs_system_call *call)
{
    unsigned fds = entry(call->number);
    if (call->number == SYS_mmap && call->d & MAP_ANONYMOUS)
        return 0;
    if (call->number == SYS_ioctl && call->b == FICLONE_REQUEST)
        fds |= C;
    return (fds & A && is_connection(call->a)) || (fds & B && is_connection(call->b)) || (fds & C && is_connection(call->c)) ||
           (fds & D && is_connection(call->d)) || (fds & E && is_connection(call->e));
}

#endif
