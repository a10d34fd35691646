/* Bad addresses and wrong arguments: the kernel refuses them, and the process goes on. Each call is made by an instruction of the
 * program's own and by `syscall`; a fault in between shows as that. */
#include "act.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#undef FAMILY
#define FAMILY "pointers"

#define PAGE 4096ul
/* Stands for a bad address in a call's arguments. */
#define BAD ((long)0xbadbadbad)

struct bad_call {
    long number, arguments[6];
};

static struct bad_call bad_now;
static long bad_result;
static const long bad_constant[32];

static void by_instruction(void)
{
    const long *a = bad_now.arguments;
    bad_result = raw(bad_now.number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void by_libc(void)
{
    const long *a = bad_now.arguments;
    bad_result = syscall(bad_now.number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (bad_result == -1)
        bad_result = -errno;
}

static void say_both(const char *kind)
{
    long results[2] = {0, 0};
    int faults[2];
    void (*const ways[2])(void) = {by_instruction, by_libc};
    for (int i = 0; i < 2; i++) {
        faults[i] = probe_call(ways[i]);
        results[i] = faults[i] ? 0 : bad_result;
    }
    say("%s %ld %ld faults %d %d", kind, results[0], results[1], faults[0], faults[1]);
}

/* Low, of the kernel, without access, at the very end of a page, and one that cannot be written to. */
static void try_bad(struct bad_call call, int is_written)
{
    static char *block;
    if (!block) {
        block = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(block + PAGE, PAGE, PROT_NONE);
    }
    const struct {
        const char *kind;
        long at;
    } all[] = {{"low", 16},
               {"kernel", (long)0xffff888000000000},
               {"far", (long)0x8000000000000000},
               {"none", (long)block + (long)PAGE},
               {"edge", (long)block + (long)PAGE - 4},
               {"constant", (long)bad_constant}};
    for (size_t i = 0; i < CHECK_SIZE(all) - !is_written; i++) {
        bad_now = call;
        memset(block + PAGE - 8, 0, 8);
        for (int j = 0; j < 6; j++)
            if (call.arguments[j] == BAD)
                bad_now.arguments[j] = all[i].at;
        say_both(all[i].kind);
    }
}

#define READS(number, ...) try_bad((struct bad_call){number, {__VA_ARGS__}}, 0)
#define WRITES(number, ...) try_bad((struct bad_call){number, {__VA_ARGS__}}, 1)

/* Calls that are wrong otherwise: each result as it is. */
#define WRONG(number, ...) \
    do { \
        bad_now = (struct bad_call){number, {__VA_ARGS__}}; \
        say_both(#number); \
    } while (0)

static const struct timespec at_once;

MIXED(bad_mask)
{
    READS(SYS_rt_sigprocmask, SIG_BLOCK, BAD, 0, 8);
    WRITES(SYS_rt_sigprocmask, SIG_BLOCK, 0, BAD, 8);
}

/* The mask is set before the old one is handed out. */
MIXED(bad_mask_after_change)
{
    sigset_t set, was, now;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, NULL, &was);
    WRITES(SYS_rt_sigprocmask, SIG_BLOCK, (long)&set, BAD, 8);
    sigprocmask(SIG_SETMASK, &was, &now);
    say("blocked %d", sigismember(&now, SIGUSR1));
}

MIXED(wrong_mask)
{
    const unsigned long set = 0;
    WRONG(SYS_rt_sigprocmask, 77, (long)&set, 0, 8);
    WRONG(SYS_rt_sigprocmask, 77, 0, 0, 8);
    WRONG(SYS_rt_sigprocmask, SIG_BLOCK, (long)&set, 0, 4);
    WRONG(SYS_rt_sigpending, (long)&bad_result, 16);
}

MIXED(bad_action)
{
    READS(SYS_rt_sigaction, SIGUSR1, BAD, 0, 8);
    WRITES(SYS_rt_sigaction, SIGUSR1, 0, BAD, 8);
}

MIXED(bad_action_of_sigsys)
{
    READS(SYS_rt_sigaction, SIGSYS, BAD, 0, 8);
    WRITES(SYS_rt_sigaction, SIGSYS, 0, BAD, 8);
}

MIXED(wrong_action)
{
    static const long none[4];
    WRONG(SYS_rt_sigaction, 0, (long)none, 0, 8);
    WRONG(SYS_rt_sigaction, 65, (long)none, 0, 8);
    WRONG(SYS_rt_sigaction, SIGKILL, (long)none, 0, 8);
    WRONG(SYS_rt_sigaction, SIGKILL, 0, (long)&bad_now, 8);
    WRONG(SYS_rt_sigaction, SIGSYS, (long)none, 0, 4);
    WRONG(SYS_rt_sigaction, SIGSYS, (long)none, 0, 16);
    WRONG(SYS_rt_sigaction, -1, 0, 0, 8);
}

MIXED(bad_poll)
{
    READS(SYS_ppoll, 0, 0, (long)&at_once, BAD, 8);
    READS(SYS_ppoll, 0, 0, BAD, 0, 8);
    READS(SYS_ppoll, BAD, 1, (long)&at_once, 0, 8);
    READS(SYS_poll, BAD, 1, 0);
}

MIXED(bad_select)
{
    const struct {
        long mask;
        size_t size;
    } inner = {16, 8};
    READS(SYS_pselect6, 0, 0, 0, 0, (long)&at_once, BAD);
    WRONG(SYS_pselect6, 0, 0, 0, 0, (long)&at_once, (long)&inner);
    READS(SYS_pselect6, 1, BAD, 0, 0, (long)&at_once, 0);
}

MIXED(bad_suspend)
{
    READS(SYS_rt_sigsuspend, BAD, 8);
    WRONG(SYS_rt_sigsuspend, 0, 8);
    WRONG(SYS_rt_sigsuspend, (long)bad_constant, 4);
}

MIXED(bad_epoll)
{
    struct epoll_event event;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    READS(SYS_epoll_pwait, fd, (long)&event, 1, 0, BAD, 8);
    READS(441, fd, (long)&event, 1, (long)&at_once, BAD, 8); /* epoll_pwait2 */
    READS(SYS_epoll_ctl, fd, EPOLL_CTL_ADD, 0, BAD);
    WRONG(SYS_epoll_pwait, fd, (long)&event, 1, 0, (long)bad_constant, 4);
    close(fd);
}

MIXED(bad_wait_for_signal)
{
    const unsigned long set = 1ul << (SIGUSR2 - 1);
    READS(SYS_rt_sigtimedwait, BAD, 0, (long)&at_once, 8);
    READS(SYS_rt_sigtimedwait, (long)&set, 0, BAD, 8);
    WRITES(SYS_rt_sigpending, BAD, 8);
}

MIXED(bad_limit)
{
    READS(SYS_prlimit64, 0, RLIMIT_CPU, BAD, 0);
    READS(SYS_prlimit64, 0, RLIMIT_NOFILE, BAD, 0);
    READS(SYS_setrlimit, RLIMIT_CPU, BAD);
}

MIXED(bad_limit_asked)
{
    WRITES(SYS_prlimit64, 0, RLIMIT_CPU, 0, BAD);
    WRITES(SYS_prlimit64, 0, RLIMIT_STACK, 0, BAD);
    WRITES(SYS_getrlimit, RLIMIT_CPU, BAD);
}

MIXED(wrong_limit)
{
    static const struct rlimit crossed = {9, 5};
    WRONG(SYS_prlimit64, 0, 99, 0, (long)&bad_now);
    WRONG(SYS_prlimit64, 0, RLIMIT_CPU, (long)&crossed, 0);
    WRONG(SYS_setrlimit, RLIMIT_CPU, (long)&crossed);
    WRONG(SYS_prlimit64, -5, RLIMIT_CPU, 0, 0);
    WRONG(SYS_prlimit64, 0, RLIMIT_CPU, 0, 0);
}

MIXED(bad_clone)
{
    READS(SYS_clone3, BAD, 88);
    READS(SYS_clone3, BAD, 64);
    WRONG(SYS_clone3, (long)bad_constant, 8);
    WRONG(SYS_clone3, 0, 0);
    WRONG(SYS_clone3, (long)bad_constant, 1 << 20);
    WRONG(SYS_clone, 0x10000 /* CLONE_THREAD alone */, 0, 0, 0, 0);
}

MIXED(bad_options)
{
    WRITES(SYS_prctl, PR_GET_PDEATHSIG, BAD);
    WRITES(SYS_prctl, PR_GET_NAME, BAD);
    WRITES(SYS_prctl, PR_GET_CHILD_SUBREAPER, BAD);
    WRITES(SYS_prctl, PR_GET_TSC, BAD);
    READS(SYS_prctl, PR_SET_NAME, BAD);
}

MIXED(wrong_options)
{
    WRONG(SYS_prctl, PR_GET_PDEATHSIG, 0);
    WRONG(SYS_prctl, PR_SET_PDEATHSIG, 99);
    WRONG(SYS_prctl, 9999, 0);
    WRONG(SYS_prctl, PR_GET_NO_NEW_PRIVS, 1, 1, 1, 1);
    WRONG(SYS_prctl, PR_GET_THP_DISABLE, 1, 1, 1, 1);
    WRONG(SYS_prctl, 59, 7, 0, 0, 0);
    WRONG(SYS_prctl, 59, 1, 0, 0, 0xffff888000000000);
}

MIXED(bad_usage)
{
    WRITES(SYS_getrusage, RUSAGE_SELF, BAD);
    WRITES(SYS_getrusage, RUSAGE_CHILDREN, BAD);
    WRITES(SYS_getrusage, RUSAGE_THREAD, BAD);
    WRONG(SYS_getrusage, 5, (long)bad_constant);
    WRONG(SYS_getrusage, RUSAGE_SELF, 0);
}

/* What it returns is a time. */
MIXED(bad_times)
{
    const long addresses[] = {16, (long)0xffff888000000000, (long)bad_constant};
    for (size_t i = 0; i < CHECK_SIZE(addresses); i++) {
        bad_now = (struct bad_call){SYS_times, {addresses[i]}};
        int fault = probe_call(by_instruction);
        say("fault %d result %ld", fault, fault || bad_result > 0 ? 0 : bad_result);
    }
    say("none %d", RAW(SYS_times, 0) > 0);
}

MIXED(bad_clock)
{
    WRITES(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, BAD);
    WRITES(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, BAD);
    WRITES(SYS_clock_gettime, CLOCK_MONOTONIC, BAD);
    WRITES(SYS_clock_gettime, ~7l | 2, BAD);
    WRITES(SYS_clock_getres, CLOCK_PROCESS_CPUTIME_ID, BAD);
}

MIXED(bad_sleep)
{
    READS(SYS_clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, BAD, 0);
    READS(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, BAD, 0);
    READS(SYS_nanosleep, BAD, 0);
}

MIXED(wrong_clock)
{
    const struct timespec wrong = {0, 2000000000};
    WRONG(SYS_clock_gettime, 99, (long)&bad_now);
    WRONG(SYS_clock_gettime, ~7l | 3, (long)&bad_now);
    WRONG(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, (long)&at_once, 0);
    WRONG(SYS_clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, (long)&wrong, 0);
    WRONG(SYS_clock_nanosleep, 99, 0, (long)&at_once, 0);
}

MIXED(bad_link_name)
{
    static char room[64];
    READS(SYS_readlink, BAD, (long)room, sizeof room);
    READS(SYS_readlinkat, AT_FDCWD, BAD, (long)room, sizeof room);
}

MIXED(bad_link_text)
{
    WRITES(SYS_readlink, (long)"/proc/self/exe", BAD, 100);
    WRITES(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", BAD, 100);
    WRONG(SYS_readlink, (long)"/proc/self/exe", (long)&bad_now, 0);
    WRONG(SYS_readlink, (long)"/etc/passwd", (long)&bad_now, 8);
}

MIXED(bad_open)
{
    READS(SYS_open, BAD, O_RDONLY, 0);
    READS(SYS_openat, AT_FDCWD, BAD, O_RDONLY, 0);
    READS(SYS_creat, BAD, 0600);
    WRONG(SYS_open, 0, O_RDONLY, 0);
    WRONG(SYS_open, (long)"", O_RDONLY, 0);
    WRONG(SYS_openat, -7, (long)"relative", O_RDONLY, 0);
}

MIXED(bad_open_how)
{
    static const uint64_t how[3];
    READS(SYS_openat2, AT_FDCWD, BAD, (long)how, sizeof how);
    READS(SYS_openat2, AT_FDCWD, (long)"/proc/self/status", BAD, sizeof how);
    WRONG(SYS_openat2, AT_FDCWD, (long)"/proc/self/status", (long)how, 8);
}

/* A name that ends where its page does, and one that goes on. */
MIXED(edge_of_name)
{
    char *block = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static const char name[] = "/proc/self/status";
    munmap(block + PAGE, PAGE);
    char *fits = block + PAGE - sizeof name, *cut = block + PAGE - 5;
    memcpy(fits, name, sizeof name);
    int fd = open(fits, O_RDONLY | O_CLOEXEC);
    say("fits %d", fd >= 0);
    close(fd);
    memcpy(cut, "/proc", 5);
    WRONG(SYS_open, (long)cut, O_RDONLY, 0);
    WRONG(SYS_readlink, (long)cut, (long)&bad_now, 8);
    WRONG(SYS_openat, AT_FDCWD, (long)cut, O_RDONLY, 0);
    munmap(block, PAGE);
}

MIXED(bad_signal_stack)
{
    READS(SYS_sigaltstack, BAD, 0);
    WRITES(SYS_sigaltstack, 0, BAD);
}

MIXED(wrong_signal_stack)
{
    const stack_t small = {.ss_sp = (void *)bad_constant, .ss_size = 64};
    const stack_t flagged = {.ss_sp = (void *)bad_constant, .ss_size = 65536, .ss_flags = 99};
    WRONG(SYS_sigaltstack, (long)&small, 0);
    WRONG(SYS_sigaltstack, (long)&flagged, 0);
}

MIXED(bad_queued)
{
    READS(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, BAD);
    READS(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGUSR1, BAD);
    WRONG(SYS_kill, getpid(), 65);
    WRONG(SYS_tgkill, getpid(), getpid(), 99);
    WRONG(SYS_tgkill, -1, getpid(), SIGUSR1);
    WRONG(SYS_tkill, 0, SIGSYS);
}

MIXED(bad_timer)
{
    READS(SYS_setitimer, ITIMER_REAL, BAD, 0);
    WRITES(SYS_getitimer, ITIMER_REAL, BAD);
    WRITES(SYS_timer_create, CLOCK_MONOTONIC, 0, BAD);
    WRONG(SYS_setitimer, 9, 0, 0);
}

MIXED(bad_executed)
{
    READS(SYS_execve, BAD, 0, 0);
    READS(SYS_execve, (long)"/bin/true", BAD, 0);
    READS(SYS_execveat, AT_FDCWD, BAD, 0, 0, 0);
    WRONG(SYS_execve, (long)"/absent", 0, 0);
}

MIXED(bad_filter)
{
    READS(SYS_prctl, PR_SET_SECCOMP, 2, BAD);
    READS(SYS_seccomp, 1, 0, BAD);
    WRONG(SYS_seccomp, 99, 0, 0);
    WRONG(SYS_prctl, PR_SET_SECCOMP, 99, 0);
}

MIXED(bad_thread_base)
{
    WRITES(SYS_arch_prctl, 0x1003 /* ARCH_GET_FS */, BAD);
    WRONG(SYS_arch_prctl, 99, 0);
}

MIXED(bad_futex)
{
    READS(SYS_futex, BAD, 129 /* wake, private */, 1, 0);
    READS(SYS_futex, (long)&bad_constant, 0, 0, BAD);
    WRONG(SYS_futex, 3, 1, 1, 0);
    WRONG(SYS_set_robust_list, 0, 1);
    WRITES(SYS_get_robust_list, 0, BAD, (long)&bad_result);
}

/* Memory calls with addresses that are none, or not aligned. */
MIXED(wrong_mappings)
{
    WRONG(SYS_munmap, 16, PAGE);
    WRONG(SYS_munmap, PAGE, 0);
    WRONG(SYS_munmap, (long)0xffff888000000000, PAGE);
    WRONG(SYS_mprotect, 16, PAGE, PROT_READ);
    WRONG(SYS_mprotect, PAGE, PAGE, PROT_READ);
    WRONG(SYS_mremap, 16, PAGE, PAGE, 0, 0);
    WRONG(SYS_mremap, PAGE, PAGE, 2 * PAGE, 1, 0);
    WRONG(SYS_madvise, 16, PAGE, MADV_DONTNEED);
    WRONG(SYS_madvise, PAGE, PAGE, MADV_DONTNEED);
    WRONG(SYS_mmap, 0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    WRONG(SYS_mmap, 0, PAGE, PROT_READ, MAP_PRIVATE, -1, 0);
    WRONG(SYS_mmap, 16, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    WRONG(SYS_mmap, 0, (long)0x7fffffffffffff00, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    WRITES(SYS_mincore, (long)bad_constant & -4096l, PAGE, BAD);
}

MIXED(wrong_break)
{
    sbrk(0);
    const long now = RAW(SYS_brk, 0);
    SAY3("zero %ld low %ld kernel %ld", RAW(SYS_brk, 0) == now, RAW(SYS_brk, 16) == now, RAW(SYS_brk, 0xffff888000000000) == now);
    SAY2("far %ld same %ld", RAW(SYS_brk, now + (1l << 46)) == now, RAW(SYS_brk, 0) == now);
}

MIXED(bad_children)
{
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    say_result("usage", RAW(SYS_wait4, child, 0, WNOHANG, 16));
    say_result("reaped", waitpid(child, NULL, WNOHANG) == child ? 1 : -1);
    WRONG(SYS_wait4, -99999, 0, WNOHANG, 0);
    WRONG(SYS_waitid, 77, 0, 0, WEXITED, 0);
}

/* The same by libc's functions, as far as they hand addresses on. */
static void *volatile bad_pointer = (void *)16;
static volatile int libc_way;

static void call_libc(void)
{
    long got = 0;
    errno = 0;
    switch (libc_way) {
    case 0: got = getrusage(RUSAGE_SELF, bad_pointer); break;
    case 1: got = times(bad_pointer) == (clock_t)-1 ? -1 : 0; break;
    case 2: got = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, bad_pointer); break;
    case 3: got = clock_gettime(CLOCK_THREAD_CPUTIME_ID, bad_pointer); break;
    case 4: got = readlink(bad_pointer, (char *)&bad_now, 8); break;
    case 5: got = readlink("/proc/self/exe", bad_pointer, 8); break;
    case 6: got = open(bad_pointer, O_RDONLY); break;
    case 7: got = sigaltstack(bad_pointer, NULL); break;
    case 8: got = sigaltstack(NULL, bad_pointer); break;
    case 9: got = setrlimit(RLIMIT_CPU, bad_pointer); break;
    case 10: got = getrlimit(RLIMIT_CPU, bad_pointer); break;
    case 11: got = sigsuspend(bad_pointer); break;
    case 12: got = ppoll(NULL, 0, &at_once, bad_pointer); break;
    case 13: got = pselect(0, NULL, NULL, NULL, &at_once, bad_pointer); break;
    case 14: got = sigprocmask(SIG_BLOCK, bad_pointer, NULL); break;
    case 15: got = sigprocmask(SIG_BLOCK, NULL, bad_pointer); break;
    case 16: got = sigaction(SIGUSR1, bad_pointer, NULL); break;
    case 17: got = sigaction(SIGSYS, NULL, bad_pointer); break;
    case 18: got = prctl(PR_GET_PDEATHSIG, bad_pointer); break;
    case 19: got = epoll_pwait(epoll_create1(EPOLL_CLOEXEC), (void *)&bad_now, 1, 0, bad_pointer); break;
    case 20: got = clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, bad_pointer, NULL); break;
    case 21: got = sigpending(bad_pointer); break;
    case 22: got = pthread_sigmask(SIG_BLOCK, NULL, bad_pointer); break;
    }
    bad_result = got == -1 ? -errno : got;
}

MIXED(bad_by_libc)
{
    for (libc_way = 0; libc_way < 23; libc_way++) {
        int fault = probe_call(call_libc);
        say("%d: fault %d result %ld", libc_way, fault, fault ? 0 : bad_result);
    }
}
