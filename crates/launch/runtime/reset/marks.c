/* Interposes functions that change the process in a way that a reset does not restore: the worker is not used again then.
 *
 * Each function calls the next definition. Other ways to the kernel, such as libc's own calls and instructions of the tool's, are left to
 * the gate.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"

/* Any thread may set these, and none clears them in a run: `was_called` is taken between two runs. `timers_made` stays, since each fork
 * would lack a timer of the zygote. */
static struct {
    int was_called, timers_made;
} marks;

/* Whether anything was called since it was last asked. */
int hs_marks_take(void)
{
    int was = marks.was_called;
    marks.was_called = 0;
    return was;
}

/* Whether anything was marked. The mark stays. */
int hs_marks_seen(void)
{
    return marks.was_called;
}

void hs_marks_set(void)
{
    marks.was_called = 1;
}

/* Whether there may be timers, which a fork would lack; not every kernel lists them in /proc. */
int hs_marks_timers(void)
{
    return marks.timers_made;
}

/* name, result, parameters, arguments. (vmsplice lets a pipe have pages that are read when they would have been restored.) */
#define FORWARDS(X) \
    X(unshare, int, (int flags), (flags)) \
    X(setns, int, (int fd, int type), (fd, type)) \
    X(chroot, int, (const char *path), (path)) \
    X(setuid, int, (uid_t user), (user)) \
    X(seteuid, int, (uid_t user), (user)) \
    X(setreuid, int, (uid_t real, uid_t effective), (real, effective)) \
    X(setresuid, int, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved)) \
    X(setgid, int, (gid_t group), (group)) \
    X(setegid, int, (gid_t group), (group)) \
    X(setregid, int, (gid_t real, gid_t effective), (real, effective)) \
    X(setresgid, int, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved)) \
    X(setfsuid, int, (uid_t user), (user)) \
    X(setfsgid, int, (gid_t group), (group)) \
    X(capset, int, (void *whose, const void *given), (whose, given)) \
    X(setgroups, int, (size_t count, const gid_t *groups), (count, groups)) \
    X(initgroups, int, (const char *user, gid_t group), (user, group)) \
    X(setsid, pid_t, (void), ()) \
    X(setpgid, int, (pid_t process, pid_t group), (process, group)) \
    X(setpgrp, int, (void), ()) \
    X(nice, int, (int by), (by)) \
    X(setpriority, int, (__priority_which_t which, id_t who, int priority), (which, who, priority)) \
    X(sched_setaffinity, int, (pid_t process, size_t size, const cpu_set_t *set), (process, size, set)) \
    X(sched_setscheduler, int, (pid_t process, int policy, const struct sched_param *param), \
      (process, policy, param)) \
    X(sched_setparam, int, (pid_t process, const struct sched_param *param), (process, param)) \
    X(pthread_setaffinity_np, int, (pthread_t thread, size_t size, const cpu_set_t *set), (thread, size, set)) \
    X(pthread_setschedparam, int, (pthread_t thread, int policy, const struct sched_param *param), \
      (thread, policy, param)) \
    X(mlock, int, (const void *from, size_t size), (from, size)) \
    X(mlock2, int, (const void *from, size_t size, unsigned flags), (from, size, flags)) \
    X(mlockall, int, (int flags), (flags)) \
    X(semop, int, (int id, struct sembuf *ops, size_t count), (id, ops, count)) \
    X(semtimedop, int, (int id, struct sembuf *ops, size_t count, const struct timespec *limit), \
      (id, ops, count, limit)) \
    X(shmat, void *, (int id, const void *at, int flags), (id, at, flags)) \
    X(vmsplice, ssize_t, (int fd, const struct iovec *parts, size_t count, unsigned flags), (fd, parts, count, flags)) \
    X(pkey_alloc, int, (unsigned flags, unsigned access), (flags, access)) \
    X(pkey_mprotect, int, (void *from, size_t size, int access, int key), (from, size, access, key))

/* Not every libc's headers have it. */
int capset(void *whose, const void *given);

#define DECLARE(name, result, params, ...) result(*name) params;
static struct {
    FORWARDS(DECLARE)
    int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
    long (*syscall)(long, long, long, long, long, long, long);
    int (*timer_create)(clockid_t, struct sigevent *, timer_t *);
    int (*personality)(unsigned long);
} next;

#if HS_RESETS
__attribute__((used)) static void *next_makecontext;
#endif

#define RESOLVE(name, ...) next.name = (__typeof__(next.name))dlsym(RTLD_NEXT, #name);

/* Looks all of them up before the snapshot, so that no fork has to. */
void hs_marks_resolve(void)
{
    if (next.syscall)
        return;
    FORWARDS(RESOLVE)
#if HS_RESETS
    next_makecontext = dlsym(RTLD_NEXT, "makecontext");
#endif
    RESOLVE(prctl)
    RESOLVE(timer_create)
    RESOLVE(personality)
    RESOLVE(syscall)
}

#define DEFINE(name, result, params, args) \
    HS_EXPORT result name params \
    { \
        hs_marks_resolve(); \
        hs_watch_touch(); \
        marks.was_called = 1; \
        return next.name args; \
    }
FORWARDS(DEFINE)

#if HS_RESETS
/* The gate needs more of a stack than a system call does, and nobody knows what lies below that of a coroutine (gate/stacks.c). */
__attribute__((used)) static void note_coroutine(void)
{
    hs_marks_resolve();
    hs_watch_touch();
    if (hs_gate_is_worker())
        hs_call_mark();
}

/* Its arguments are as many as the third one says. */
__attribute__((naked)) HS_EXPORT void makecontext(ucontext_t *context __attribute__((unused)),
                                                            void (*function)(void) __attribute__((unused)),
                                                            int count __attribute__((unused)), ...)
{
    __asm__("push %rdi\n\tpush %rsi\n\tpush %rdx\n\tpush %rcx\n\tpush %r8\n\tpush %r9\n\tpush %rax\n\tcall note_coroutine\n\t"
            "pop %rax\n\tpop %r9\n\tpop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n\tjmp *next_makecontext(%rip)");
}
#endif

HS_EXPORT int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer)
{
    hs_marks_resolve();
    hs_watch_touch();
    marks.was_called = marks.timers_made = 1;
    return next.timer_create(clock, event, timer);
}

HS_EXPORT int personality(unsigned long persona)
{
    hs_marks_resolve();
    hs_watch_touch();
    if (persona != 0xffffffff)
        marks.was_called = 1;
    return next.personality(persona);
}

/* Names are restored, and reading changes nothing. */
static int prctl_is_harmless(int option)
{
    switch (option) {
    case PR_SET_NAME:
    case PR_GET_NAME:
    case PR_GET_DUMPABLE:
    case PR_GET_PDEATHSIG:
    case PR_GET_SECCOMP:
    case PR_GET_NO_NEW_PRIVS:
    case PR_GET_TIMERSLACK:
    case PR_GET_TID_ADDRESS:
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

#if HS_RESETS
/* The gate sees these calls, wherever they come from. */
__attribute__((used)) static unsigned char is_gated;
#define FORWARD(name) HS_INTERPOSE(name, "cmpb $0, is_gated(%rip)\n\tje own_" #name)
FORWARD(prctl)
FORWARD(syscall)

/* In a process that has the gate. */
void hs_marks_leave_to_gate(void)
{
    hs_marks_resolve();
    direct_prctl = (void *)next.prctl;
    direct_syscall = (void *)next.syscall;
    is_gated = 1;
}
#endif

HS_OWN int HS_OWN_NAME(prctl)(int option, ...)
{
    va_list more;
    va_start(more, option);
    unsigned long a = va_arg(more, unsigned long), b = va_arg(more, unsigned long);
    unsigned long c = va_arg(more, unsigned long), d = va_arg(more, unsigned long);
    va_end(more);
    hs_marks_resolve();
    hs_watch_touch();
    if (!prctl_is_harmless(option))
        marks.was_called = 1;
    return next.prctl(option, a, b, c, d);
}

/* Calls that leave only descriptors behind, which are closed. */
static int call_is_harmless(long number)
{
    switch (number) {
    case SYS_gettid:
    case SYS_getpid:
    case SYS_getppid:
    case SYS_get_robust_list:
    case SYS_sched_getaffinity:
    case SYS_clock_gettime:
    case SYS_futex:
    case SYS_getrandom:
    case SYS_getcpu:
    case SYS_sched_yield:
    case SYS_memfd_create:
    case SYS_statx:
    case SYS_copy_file_range:
    case SYS_renameat2:
    case SYS_close_range:
    case SYS_getdents64:
    case SYS_pidfd_open:
    case SYS_perf_event_open:
    case SYS_tgkill:
        return 1;
    default:
        return 0;
    }
}

HS_OWN long HS_OWN_NAME(syscall)(long number, ...)
{
    va_list more;
    long a[6];
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    hs_marks_resolve();
    if (!call_is_harmless(number)) {
        hs_watch_touch();
        marks.was_called = 1;
    }
    return next.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Some of these are deprecated, and yet called. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* The function to bind in place of one of libc's: the interposed one, if there is one, or else itself. */
#define INTERPOSED(name, ...) \
    if (function == (void *)next.name) \
        return (void *)name;

void *hs_marks_interposed(void *function)
{
    /* What libc lacks is not to be taken for one of those that it lacks, too. */
    if (!function)
        return NULL;
    FORWARDS(INTERPOSED)
#if HS_RESETS
    if (function == next_makecontext)
        return (void *)makecontext;
#endif
    INTERPOSED(prctl)
    INTERPOSED(syscall)
    INTERPOSED(timer_create)
    INTERPOSED(personality)
    return function;
}
