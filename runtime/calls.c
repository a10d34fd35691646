/* What becomes of each system call that a run of main makes (gate.c).
 *
 * A list of what is allowed: calls that leave nothing in the process but descriptors, which are closed after the run, or what
 * state.c and mappings.c put back. Whatever is not on it is made as well, and the worker is not used again: the kernel may keep
 * something of it that nobody here knows. The same holds for a process number that the tool has looked at, as the next run would
 * have the same one.
 *
 * Signals are followed so that SIGSYS is never blocked, which the gate needs; to the tool it is as it has set it. CPU time is
 * told without that of earlier runs.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/times.h>
#include <sys/vfs.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"

#if HS_REWIND

/* linux/fs.h and newer headers have them. */
#define COPY_ALL 0x40049409ul   /* FICLONE */
#define COPY_RANGE 0x4020940dul /* FICLONERANGE */
#define FLAGS_GET 0x80086601ul  /* FS_IOC_GETFLAGS */
/* asm/termbits.h, which does not go with termios.h, has them: glibc 2.43 asks so whether a descriptor is a terminal. */
#define TERMINAL_GET 0x802c542aul    /* TCGETS2 */
#define TERMINAL_SET 0x402c542bul    /* TCSETS2 */
#define TERMINAL_SET_W 0x402c542cul  /* TCSETSW2 */
#define TERMINAL_SET_F 0x402c542dul  /* TCSETSF2 */
/* linux/prctl.h has it since 5.11. */
#define SYSCALL_USER_DISPATCH 59
#define SIGSYS_BIT (1ull << (SIGSYS - 1))

static struct {
    uint32_t seen;     /* enum hs_call_seen, since it was last taken */
    uint64_t actions;  /* signals whose action may have been set: bit n-1 for signal n */
    int blocks_sigsys; /* as the main thread has it */
    int process;
    struct rusage own, children, thread; /* what earlier runs used */
    uint64_t used_ns, thread_ns;
} calls;

/* Calls that leave nothing behind. */
static const unsigned char plain[512] = {
#define P(name) [SYS_##name] = 1
    P(read), P(write), P(close), P(stat), P(fstat), P(lstat), P(poll), P(lseek), P(pread64), P(pwrite64), P(readv),
    P(writev), P(preadv), P(pwritev), P(preadv2), P(pwritev2), P(access), P(faccessat), P(faccessat2), P(pipe), P(pipe2),
    P(select), P(sched_yield), P(dup), P(dup2), P(dup3), P(nanosleep), P(clock_nanosleep), P(pause), P(sendfile), P(socket),
    P(connect), P(accept), P(accept4), P(sendto), P(recvfrom), P(sendmsg), P(recvmsg), P(sendmmsg), P(recvmmsg), P(shutdown),
    P(bind), P(listen), P(getsockname), P(getpeername), P(socketpair), P(setsockopt), P(getsockopt),     P(exit), P(wait4), P(waitid), P(uname), P(flock), P(fsync), P(fdatasync), P(sync), P(syncfs), P(sync_file_range),
    P(truncate), P(ftruncate), P(fallocate), P(getdents64), P(getdents), P(getcwd), P(chdir), P(fchdir), P(rename),
    P(renameat), P(renameat2), P(mkdir), P(mkdirat), P(rmdir), P(link), P(linkat), P(unlink), P(unlinkat), P(symlink),
    P(symlinkat), P(chmod), P(fchmod), P(fchmodat), P(chown), P(fchown), P(lchown), P(fchownat), P(umask), P(mknod),
    P(mknodat), P(utime), P(utimes), P(utimensat), P(futimesat), P(statfs), P(fstatfs), P(newfstatat), P(statx),
    P(gettimeofday), P(time), P(clock_getres), P(sysinfo), P(getuid), P(getgid), P(geteuid), P(getegid), P(getgroups),
    P(getresuid), P(getresgid), P(getpgrp), P(getpgid), P(getsid), P(getpriority), P(sched_getparam),
    P(sched_getscheduler), P(sched_getaffinity), P(sched_get_priority_max), P(sched_get_priority_min), P(getcpu),
    P(getrandom), P(memfd_create), P(eventfd), P(eventfd2), P(epoll_create), P(epoll_create1), P(epoll_ctl), P(epoll_wait),
    P(timerfd_create), P(timerfd_settime), P(timerfd_gettime), P(inotify_init), P(inotify_init1), P(inotify_add_watch),
    P(inotify_rm_watch), P(copy_file_range), P(splice), P(tee), P(fadvise64), P(readahead), P(mincore), P(msync),
    P(getxattr), P(lgetxattr), P(fgetxattr), P(listxattr), P(llistxattr), P(flistxattr), P(setxattr), P(lsetxattr),
    P(fsetxattr), P(removexattr), P(lremovexattr), P(fremovexattr), P(rt_sigpending), P(rt_sigtimedwait), P(sigaltstack),
    P(restart_syscall), P(close_range), P(pidfd_open), P(get_robust_list), P(getitimer), P(capget),
    P(pidfd_getfd), P(kcmp),
#undef P
};

/* A patched site is asked without a signal. Calls that raise one are left where they are, so that a backtrace is as ever. */
int hs_call_may_be_patched(long number)
{
    switch (number) {
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_pidfd_send_signal:
    case SYS_rt_sigreturn:
        return 0;
    default:
        return number >= 0 && number < 0xffff;
    }
}

static void see(uint32_t what)
{
    __atomic_or_fetch(&calls.seen, what, __ATOMIC_RELAXED);
}

void hs_call_mark(void)
{
    see(HS_SEEN_UNKNOWN);
}

uint32_t hs_call_seen(void)
{
    return calls.seen;
}

uint64_t hs_call_actions(void)
{
    const uint64_t was = calls.actions;
    calls.actions = 0;
    return was;
}

/* The action of a signal may be another now. */
void hs_call_note_action(long number)
{
    __atomic_or_fetch(&calls.actions, 1ull << (number - 1), __ATOMIC_RELAXED);
}

static enum hs_call_outcome done(struct hs_system_call *call, long result)
{
    call->number = result;
    return HS_CALL_DONE;
}

static enum hs_call_outcome unknown(void)
{
#ifndef HS_WITHOUT_UNKNOWN
    hs_call_mark();
#endif
    return HS_CALL_NATIVE;
}

static enum hs_call_outcome known_if(int harmless)
{
#ifdef HS_WITHOUT_ARGUMENTS
    return HS_CALL_NATIVE;
#endif
    return harmless ? HS_CALL_NATIVE : unknown();
}

static int equal(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static int is_descriptor(const char *path)
{
    static const char directory[] = "/proc/self/fd";
    for (size_t i = 0; i < sizeof directory - 1; i++)
        if (path[i] != directory[i])
            return 0;
    path += sizeof directory - 1;
    if (*path == '/')
        path++;
    while (*path >= '0' && *path <= '9')
        path++;
    return !*path;
}

/* Files of /proc of which reading tells nothing of this process that another would not be told. */
static int is_common(const char *path)
{
    static const char *const files[] = {"/proc/self/exe", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
                                        "/proc/filesystems", "/proc/self/maps", "/proc/self/statm", "/proc/mounts", "/proc/self/mounts",
                                        "/proc/self/mountinfo", "/proc/self/cgroup", "/proc/loadavg", "/proc/uptime",
                                        "/proc/version", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/osrelease",
                                        "/proc/sys/kernel/ngroups_max", "/proc/sys/kernel/core_pattern"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (equal(path, files[i]))
            return 1;
    return is_descriptor(path);
}

/* File systems in which nothing is the process's own. */
static int holds_files(long magic)
{
    switch (magic) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case NFS_SUPER_MAGIC:
    case FUSE_SUPER_MAGIC:
    case V9FS_MAGIC:
    case SQUASHFS_MAGIC:
    case EROFS_SUPER_MAGIC_V1:
    case MSDOS_SUPER_MAGIC:
    case ISOFS_SUPER_MAGIC:
    case ECRYPTFS_SUPER_MAGIC:
    case REISERFS_SUPER_MAGIC:
    case DEVPTS_SUPER_MAGIC:
    case 0x2fc12fc1: /* ZFS */
    case 0xca451a4e: /* bcachefs */
    case 0xff534d42: /* CIFS */
    case 0xfe534d42: /* SMB2 */
    case 0x50495045: /* pipes */
        return 1;
    default:
        return 0;
    }
}

/* What was opened under this name may be read; whether it may be written to as well. */
static void look_at(long fd, const char *path, int writes)
{
    struct statfs system;
    if (fd < 0)
        return;
    if (HS_SYS(SYS_fstatfs, fd, &system) != 0)
        hs_call_mark();
    else if (!holds_files((long)system.f_type) && (writes || (system.f_type == PROC_SUPER_MAGIC && !is_common(path))))
        /* /proc/self/status tells which signals have handlers. */
        hs_gate_reveal();
}

static enum hs_call_outcome open_file(struct hs_system_call *call, const char *path, long flags)
{
    const int writes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_TRUNC | O_CREAT);
    const long fd = HS_SYS(call->number, call->a, call->b, call->c, call->d, call->e, call->f);
    look_at(fd, path, writes);
    return done(call, fd);
}

/* A link in /proc tells the process number, whatever path leads to it. */
static enum hs_call_outcome read_link(struct hs_system_call *call, long directory, const char *path)
{
    const long result = HS_SYS(call->number, call->a, call->b, call->c, call->d, call->e, call->f);
    if (result > 0) {
        const long fd = HS_SYS(SYS_openat, directory, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
        if (fd < 0)
            hs_call_mark();
        look_at(fd, path, 0);
        HS_SYS(SYS_close, fd);
    }
    return done(call, result);
}

static int fcntl_is_known(long command)
{
    switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
    case F_GETFD:
    case F_SETFD:
    case F_GETFL:
    case F_SETFL:
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
    case F_GETPIPE_SZ:
    case F_SETPIPE_SZ:
    case F_ADD_SEALS:
    case F_GET_SEALS:
        return 1;
    default:
        return 0;
    }
}

static int ioctl_is_known(unsigned long request)
{
    switch (request) {
    case TCGETS:
    case TCSETS:
    case TCSETSW:
    case TCSETSF:
    case TCGETA:
    case TERMINAL_GET:
    case TERMINAL_SET:
    case TERMINAL_SET_W:
    case TERMINAL_SET_F:
    case TIOCGWINSZ:
    case TIOCGPGRP:
    case FIONREAD:
    case FIONBIO:
    case FIOCLEX:
    case FIONCLEX:
    case COPY_ALL:
    case COPY_RANGE:
    case FLAGS_GET:
        return 1;
    default:
        return 0;
    }
}

static int prctl_is_known(long option)
{
    switch (option) {
    case PR_SET_NAME:
    case PR_GET_NAME:
    case PR_GET_DUMPABLE:
    case PR_GET_PDEATHSIG:
    case PR_GET_SECCOMP:
    case PR_GET_NO_NEW_PRIVS:
    case PR_GET_TIMERSLACK:
    case PR_GET_KEEPCAPS:
    case PR_GET_CHILD_SUBREAPER:
    case PR_GET_THP_DISABLE:
    case PR_GET_SECUREBITS:
    case PR_CAPBSET_READ:
        return 1;
    default:
        return 0;
    }
}

static int futex_is_known(long operation)
{
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAKE:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAKE_BITSET:
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_WAKE_OP:
        return 1;
    default:
        return 0;
    }
}

/* A vfork's child shares this memory, but has its own process. */
static int is_own_process(void)
{
    return HS_SYS(SYS_getpid) == calls.process;
}

static enum hs_call_outcome set_action(struct hs_system_call *call)
{
    const long number = call->a;
    struct hs_action changed;
    const struct hs_action *action = (const struct hs_action *)call->b;
    if (call->d != HS_SET_BYTES || number < 1 || number > 64)
        return HS_CALL_NATIVE;
    if (action)
        hs_call_note_action(number);
    if (number == SIGSYS && is_own_process()) {
        hs_gate_action(action, (struct hs_action *)call->c);
        return done(call, 0);
    }
    if (!action || !(action->mask & SIGSYS_BIT))
        return HS_CALL_NATIVE;
    changed = *action;
    changed.mask &= ~SIGSYS_BIT;
    return done(call, HS_SYS(SYS_rt_sigaction, number, &changed, call->c, HS_SET_BYTES));
}

/* The mask as the tool is to see it. */
static uint64_t shown(uint64_t mask)
{
    return mask | (calls.blocks_sigsys ? SIGSYS_BIT : 0);
}

static int next_mask(long how, uint64_t given, uint64_t *mask)
{
    switch (how) {
    case SIG_BLOCK: *mask |= given; return 1;
    case SIG_UNBLOCK: *mask &= ~given; return 1;
    case SIG_SETMASK: *mask = given; return 1;
    default: return 0;
    }
}

/* From a handler the mask is changed in the frame that it returns by. */
static enum hs_call_outcome set_mask(struct hs_system_call *call, ucontext_t *context)
{
    const uint64_t *given = (const uint64_t *)call->b;
    uint64_t mask = 0, real;
    if (call->d != HS_SET_BYTES)
        return HS_CALL_NATIVE;
    if (context)
        mask = *(const uint64_t *)&context->uc_sigmask;
    else
        HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, 0, &mask, HS_SET_BYTES);
    mask = shown(mask);
    if (call->c)
        *(uint64_t *)call->c = mask;
    if (!given)
        return done(call, 0);
    if (!next_mask(call->a, *given, &mask))
        return done(call, -EINVAL);
    if (HS_SYS(SYS_gettid) == calls.process)
        calls.blocks_sigsys = (mask & SIGSYS_BIT) != 0;
    real = mask & ~(SIGSYS_BIT | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1));
    if (context)
        *(uint64_t *)&context->uc_sigmask = real;
    else
        HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &real, 0, HS_SET_BYTES);
    return done(call, 0);
}

/* A handler may have changed the mask that it returns to. */
static enum hs_call_outcome return_from_handler(ucontext_t *context)
{
    uint64_t *mask = (uint64_t *)&context->uc_sigmask;
    if (*mask & SIGSYS_BIT && HS_SYS(SYS_gettid) == calls.process)
        calls.blocks_sigsys = 1;
    *mask &= ~SIGSYS_BIT;
    return HS_CALL_LEAVES;
}

/* A call that waits under a mask of its own; `mask` is the argument that points to it. */
static enum hs_call_outcome wait_under(struct hs_system_call *call, const uint64_t *mask)
{
    uint64_t changed;
    if (!mask || !(*mask & SIGSYS_BIT))
        return HS_CALL_NATIVE;
    changed = *mask & ~SIGSYS_BIT;
    const struct {
        const uint64_t *mask;
        size_t size;
    } both = {&changed, HS_SET_BYTES};
    switch (call->number) {
    case SYS_rt_sigsuspend:
        return done(call, HS_SYS(SYS_rt_sigsuspend, &changed, HS_SET_BYTES));
    case SYS_ppoll:
        return done(call, HS_SYS(SYS_ppoll, call->a, call->b, call->c, &changed, HS_SET_BYTES));
    case SYS_pselect6:
        return done(call, HS_SYS(SYS_pselect6, call->a, call->b, call->c, call->d, call->e, &both));
    default:
        return done(call, HS_SYS(call->number, call->a, call->b, call->c, call->d, &changed, HS_SET_BYTES));
    }
}

static struct timeval less(struct timeval now, struct timeval before)
{
    struct timeval left = {now.tv_sec - before.tv_sec, now.tv_usec - before.tv_usec};
    if (left.tv_usec < 0) {
        left.tv_usec += 1000000;
        left.tv_sec--;
    }
    return left;
}

static enum hs_call_outcome tell_usage(struct hs_system_call *call)
{
    struct rusage *usage = (struct rusage *)call->b;
    const struct rusage *before = call->a == RUSAGE_CHILDREN ? &calls.children : &calls.own;
    /* What a thread used is its own, but for the first one. */
    if (call->a == RUSAGE_THREAD && HS_SYS(SYS_gettid) != calls.process)
        return HS_CALL_NATIVE;
    if (call->a == RUSAGE_THREAD)
        before = &calls.thread;
    const long result = HS_SYS(SYS_getrusage, call->a, usage);
    if (result != 0)
        return done(call, result);
    usage->ru_utime = less(usage->ru_utime, before->ru_utime);
    usage->ru_stime = less(usage->ru_stime, before->ru_stime);
    usage->ru_minflt -= before->ru_minflt;
    usage->ru_majflt -= before->ru_majflt;
    usage->ru_inblock -= before->ru_inblock;
    usage->ru_oublock -= before->ru_oublock;
    usage->ru_nvcsw -= before->ru_nvcsw;
    usage->ru_nivcsw -= before->ru_nivcsw;
    return done(call, 0);
}

static long ticks(struct timeval time)
{
    return time.tv_sec * 100 + time.tv_usec / 10000;
}

static enum hs_call_outcome tell_times(struct hs_system_call *call)
{
    struct tms *out = (struct tms *)call->a;
    const long result = HS_SYS(SYS_times, out);
    if (out && result >= 0) {
        out->tms_utime -= ticks(calls.own.ru_utime);
        out->tms_stime -= ticks(calls.own.ru_stime);
        out->tms_cutime -= ticks(calls.children.ru_utime);
        out->tms_cstime -= ticks(calls.children.ru_stime);
    }
    return done(call, result);
}

/* The clocks of this process and thread; those of others are told by numbers that contain a process number. */
static enum hs_call_outcome tell_clock(struct hs_system_call *call)
{
    struct timespec *out = (struct timespec *)call->b;
    if (call->a >= 0 && call->a != CLOCK_PROCESS_CPUTIME_ID && call->a != CLOCK_THREAD_CPUTIME_ID)
        return HS_CALL_NATIVE;
    if (call->a < 0)
        return unknown();
    const long result = HS_SYS(SYS_clock_gettime, call->a, out);
    if (result == 0 && (call->a == CLOCK_PROCESS_CPUTIME_ID || HS_SYS(SYS_gettid) == calls.process)) {
        const uint64_t all = (uint64_t)out->tv_sec * 1000000000u + (uint64_t)out->tv_nsec;
        const uint64_t before = call->a == CLOCK_PROCESS_CPUTIME_ID ? calls.used_ns : calls.thread_ns;
        const uint64_t own = all > before ? all - before : 0;
        *out = (struct timespec){(time_t)(own / 1000000000u), (long)(own % 1000000000u)};
    }
    return done(call, result);
}

/* The kernel counts the CPU time of all runs for the limit on it. Workers have none of their own (hs_state_limits_fit). */
static void shift(struct rlimit *limit, int64_t seconds)
{
    if (limit->rlim_cur != RLIM_INFINITY)
        limit->rlim_cur += (rlim_t)seconds;
    if (limit->rlim_max != RLIM_INFINITY)
        limit->rlim_max += (rlim_t)seconds;
}

static long limit_time(const struct rlimit *given, struct rlimit *old)
{
    const int64_t used = (int64_t)(calls.used_ns / 1000000000u);
    struct rlimit changed = given ? *given : (struct rlimit){0, 0};
    shift(&changed, used);
    const long result = HS_SYS(SYS_prlimit64, 0, RLIMIT_CPU, given ? &changed : NULL, old);
    if (result == 0 && old)
        shift(old, -used);
    return result;
}

static enum hs_call_outcome limit(struct hs_system_call *call)
{
    const int is_old = call->number != SYS_prlimit64;
    const long whose = is_old ? 0 : call->a, resource = is_old ? call->a : call->b;
    const long given = call->number == SYS_setrlimit ? call->b : is_old ? 0 : call->c;
    const long old = call->number == SYS_getrlimit ? call->b : is_old ? 0 : call->d;
    if (given)
        see(HS_SEEN_LIMITS);
    /* The kernel counts pages that are kept, and does not ask where a break grows that it has already. */
    if (given && whose == 0 && (resource == RLIMIT_DATA || resource == RLIMIT_AS))
        hs_mappings_make_real(1);
    if (whose == 0 && resource == RLIMIT_CPU)
        return done(call, limit_time((const struct rlimit *)given, (struct rlimit *)old));
    return known_if(whose == 0);
}

static enum hs_call_outcome map(struct hs_system_call *call)
{
    return done(call, hs_mappings_call(call));
}

/* Another program gets the signal mask, and what is ignored, as the tool believes to have them. Should it fail to start, this
 * run goes on without the gate. */
static enum hs_call_outcome execute(ucontext_t *context)
{
    struct hs_action action;
    hs_gate_action(NULL, &action);
    if (!is_own_process() || (!calls.blocks_sigsys && action.handler != (void *)SIG_IGN))
        return HS_CALL_NATIVE;
    hs_gate_reveal();
    if (calls.blocks_sigsys && context)
        *(uint64_t *)&context->uc_sigmask |= SIGSYS_BIT;
    else if (calls.blocks_sigsys)
        HS_SYS(SYS_rt_sigprocmask, SIG_BLOCK, &(const uint64_t){SIGSYS_BIT}, 0, HS_SET_BYTES);
    return HS_CALL_NATIVE;
}

/* A new process or thread: by libc's fork, vfork, posix_spawn or pthread_create, or in a way that is not known. */
static enum hs_call_outcome clone_process(unsigned long flags)
{
    const unsigned long ids = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID | 0xff;
    const unsigned long thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                                 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    see(HS_SEEN_CHILDREN);
    hs_strings_show();
    if (flags & CLONE_THREAD) {
        if ((flags & ~(0xfful)) != thread || !hs_threads_creates())
            hs_call_mark();
    } else if (flags & ~(ids | CLONE_VM | CLONE_VFORK | 0x100000000ul /* CLONE_CLEAR_SIGHAND */)) {
        hs_call_mark();
    }
    if (!(flags & CLONE_VM))
        hs_mappings_make_real(0);
    return HS_CALL_BRANCHES;
}

/* A signal for this process. One that tells of a crash is raised where the tool does, so that a backtrace is as ever. */
static enum hs_call_outcome send(const struct hs_system_call *call)
{
    const long number = call->number == SYS_tgkill || call->number == SYS_rt_tgsigqueueinfo ? call->c : call->b;
    const uint64_t crashes = 1ull << (SIGABRT - 1) | 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGILL - 1) |
                             1ull << (SIGFPE - 1) | 1ull << (SIGTRAP - 1) | 1ull << (SIGQUIT - 1) | 1ull << (SIGSYS - 1);
    const int is_crash = number >= 1 && number <= 64 && crashes >> (number - 1) & 1;
    const int is_own = call->number == SYS_tkill || call->number == SYS_pidfd_send_signal || call->a <= 0 ||
                       call->a == calls.process;
    return is_crash && is_own ? HS_CALL_AT_SITE : HS_CALL_NATIVE;
}

enum hs_call_outcome hs_call_decide(struct hs_system_call *call, const struct hs_call_place *place)
{
    void *context = place->context;
    const long number = call->number;
    if (!hs_gate_is_worker())
        return number == SYS_brk ? map(call) : HS_CALL_NATIVE;
    switch (hs_watch_look(call)) {
    case HS_WATCH_ANSWERS: return HS_CALL_DONE;
    case HS_WATCH_ARRIVES: return HS_CALL_ARRIVES;
    case HS_WATCH_PASSES: break;
    }
    if (number >= 0 && number < (long)sizeof plain && plain[number])
        return HS_CALL_NATIVE;
    switch (number) {
    case SYS_exit_group:
        hs_worker_ended((int)call->a);
        return HS_CALL_NATIVE;
    case SYS_brk:
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mremap:
    case SYS_mprotect:
    case SYS_madvise:
        return map(call);
    case SYS_open: return open_file(call, (const char *)call->a, call->b);
    case SYS_openat: return open_file(call, (const char *)call->b, call->c);
    case SYS_creat: return open_file(call, (const char *)call->a, O_WRONLY | O_CREAT | O_TRUNC);
    case SYS_readlink: return read_link(call, AT_FDCWD, (const char *)call->a);
    case SYS_readlinkat: return read_link(call, call->a, (const char *)call->b);
    /* A thread's number is its own. */
    case SYS_gettid: return known_if(HS_SYS(SYS_gettid) != calls.process || hs_gate_raises(place));
    case SYS_getpid: return known_if(hs_gate_raises(place));
    case SYS_fcntl: return known_if(fcntl_is_known(call->b));
    case SYS_ioctl: return known_if(ioctl_is_known((unsigned long)call->b));
    case SYS_execve:
    case SYS_execveat: return execute(context);
    /* Other commands register the process. */
    case SYS_membarrier: return known_if(call->a == 0 || call->a == 1);
    /* A filter may forbid what the runtime itself calls. */
    case SYS_seccomp: return HS_CALL_AT_SITE;
    case SYS_prctl:
        if (call->a == PR_SET_SECCOMP || call->a == SYSCALL_USER_DISPATCH)
            return HS_CALL_AT_SITE;
        /* The worker's own, which the tool has not asked for. */
        if (call->a == PR_GET_PDEATHSIG && call->b) {
            *(int *)call->b = 0;
            return done(call, 0);
        }
        return known_if(prctl_is_known(call->a));
    case SYS_futex: return known_if(futex_is_known(call->b));
    case SYS_arch_prctl: return known_if(call->a == ARCH_GET_FS || call->a == ARCH_GET_GS);
    case SYS_personality: return known_if(call->a == 0xffffffff);
    case SYS_rt_sigaction: return set_action(call);
    case SYS_rt_sigprocmask: return set_mask(call, context);
    case SYS_rt_sigsuspend: return wait_under(call, (const uint64_t *)call->a);
    case SYS_ppoll: return wait_under(call, (const uint64_t *)call->d);
    case SYS_pselect6: return wait_under(call, call->f ? *(const uint64_t *const *)call->f : NULL);
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return wait_under(call, (const uint64_t *)call->e);
    case SYS_rt_sigreturn: return return_from_handler((ucontext_t *)place->stack);
    case SYS_getrusage: return tell_usage(call);
    case SYS_times: return tell_times(call);
    case SYS_clock_gettime: return tell_clock(call);
    case SYS_getrlimit:
    case SYS_setrlimit:
    case SYS_prlimit64: return limit(call);
    case SYS_setitimer:
    case SYS_alarm:
        see(HS_SEEN_TIMERS);
        return HS_CALL_NATIVE;
    case SYS_fork: return clone_process(SIGCHLD);
    case SYS_vfork: return clone_process(CLONE_VM | CLONE_VFORK | SIGCHLD);
    case SYS_clone: return clone_process((unsigned long)call->a);
    case SYS_clone3: return clone_process((unsigned long)*(const uint64_t *)call->a | (((const uint64_t *)call->a)[4] & 0xff));
    case SYS_set_robust_list:
    case SYS_rseq: return known_if(HS_SYS(SYS_gettid) != calls.process);
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_pidfd_send_signal: return send(call);
    default: return unknown();
    }
}

/* Before each run: what was used until now is none of it. */
void hs_call_begin(void)
{
    struct timespec used;
    calls.seen = 0;
    calls.blocks_sigsys = 0;
    calls.process = (int)HS_SYS(SYS_getpid);
#ifdef HS_WITHOUT_USAGE
    return;
#endif
    HS_SYS(SYS_getrusage, RUSAGE_SELF, &calls.own);
    HS_SYS(SYS_getrusage, RUSAGE_CHILDREN, &calls.children);
    HS_SYS(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &used);
    calls.used_ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    HS_SYS(SYS_getrusage, RUSAGE_THREAD, &calls.thread);
    HS_SYS(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &used);
    calls.thread_ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* What earlier runs used, as the run began. */
const struct rusage *hs_call_used(void)
{
    return &calls.own;
}

#endif
