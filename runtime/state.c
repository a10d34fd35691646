/* What the kernel keeps of a process, as far as a run of main can change it and it can be put back.
 *
 * Working directory and file mode mask are not here: each request sets them.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime.h"

#if HS_REWIND

#define SIGNALS 64
/* Of signals 32 and 33, libc's own, for ending threads and changing the user in all of them; of 64, see threads.c. */
#define UNNOTICED (3ull << 31 | 1ull << 63)

static struct kept {
    struct hs_action actions[SIGNALS + 1];
    stack_t stack;
    char name[16];
} kept[HS_LEVELS];
static const struct kept *now = &kept[HS_AT_MAIN];
static struct rlimit limits[RLIM_NLIMITS];
/* What to put back: of the run that has just ended, or all after a change of the level. */
static struct hs_touched touched = {~0ull, HS_TOUCHED_ALL};
static long faults_of_children;
/* Whether unshare tells if there is one thread only; where it is forbidden, /proc does. */
static int can_unshare;

static int several_threads(void)
{
    unsigned long total;
    if (can_unshare)
        return HS_SYS(SYS_unshare, CLONE_THREAD) != 0;
    return hs_count_entries("/proc/self/task", &total) != 1;
}

static void save(struct kept *to)
{
    for (int number = 1; number <= SIGNALS; number++)
        HS_SYS(SYS_rt_sigaction, number, 0, &to->actions[number], HS_SET_BYTES);
    HS_SYS(SYS_sigaltstack, 0, &to->stack);
    HS_SYS(SYS_prctl, PR_GET_NAME, to->name);
}

int hs_state_save(void)
{
    can_unshare = HS_SYS(SYS_unshare, CLONE_THREAD) == 0;
    save(&kept[HS_AT_MAIN]);
    for (int which = 0; which < RLIM_NLIMITS; which++)
        if (HS_SYS(SYS_prlimit64, 0, which, 0, &limits[which]) != 0)
            return -1;
    return several_threads() ? -1 : 0;
}

/* Saves it again, later in main. */
void hs_state_save_point(void)
{
    save(&kept[HS_AT_POINT]);
}

/* Says which is meant from now on. */
void hs_state_choose(enum hs_level level)
{
    if (now != &kept[level])
        touched = (struct hs_touched){~0ull, HS_TOUCHED_ALL};
    now = &kept[level];
}

static int timers_armed(void)
{
    struct itimerval timer;
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
        if (HS_SYS(SYS_getitimer, which, &timer) == 0 && (timer.it_value.tv_sec || timer.it_value.tv_usec))
            return 1;
    return 0;
}

static int children_left(void)
{
    siginfo_t info;
    return HS_SYS(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, 0) == 0;
}

/* Puts limits back; whether that failed. */
static int limits_lost(void)
{
    struct rlimit limit;
    for (int which = 0; which < RLIM_NLIMITS; which++) {
        HS_SYS(SYS_prlimit64, 0, which, 0, &limit);
        if (memcmp(&limit, &limits[which], sizeof limit) != 0 &&
            HS_SYS(SYS_prlimit64, 0, which, &limits[which], 0) != 0)
            return 1;
    }
    return 0;
}

/* Takes what is pending, which would be lost with the process; whether more comes all the time. */
static int signals_left(void)
{
    const uint64_t all = ~0ull;
    const struct timespec at_once = {0, 0};
    for (int i = 0; i < 2 * SIGNALS; i++) {
        uint64_t pending = 0;
        HS_SYS(SYS_rt_sigpending, &pending, HS_SET_BYTES);
        if (!pending)
            return 0;
        HS_SYS(SYS_rt_sigtimedwait, &all, 0, &at_once, HS_SET_BYTES);
    }
    return 1;
}

/* Whether this run had child processes: another process can set our limits. If they are to leave no trace, the action of
 * SIGCHLD is set. */
static int had_children(void)
{
    struct rusage usage;
    const long before = faults_of_children;
    HS_SYS(SYS_getrusage, RUSAGE_CHILDREN, &usage);
    faults_of_children = usage.ru_minflt;
    return faults_of_children != before || touched.actions & 1ull << (SIGCHLD - 1);
}

/* What was noticed of this run, and what cannot be. */
static void note_touched(void)
{
    const struct hs_touched seen = hs_marks_touched();
    touched.actions |= seen.actions | UNNOTICED;
    touched.kinds |= seen.kinds;
    if (had_children())
        touched.kinds |= HS_TOUCHED_LIMITS;
}

/* enum hs_retirement: what keeps the process from being used again. Blocks all signals meanwhile and after. */
uint32_t hs_state_doubts(void)
{
    const uint64_t all = ~0ull;
    uint32_t found = 0;
    note_touched();
    if (several_threads())
        return HS_RETIRED_THREADS;
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, HS_SET_BYTES);
    if (signals_left())
        found |= HS_RETIRED_SIGNALS;
    if (children_left())
        found |= HS_RETIRED_CHILDREN;
    if (touched.kinds & HS_TOUCHED_TIMERS && timers_armed())
        found |= HS_RETIRED_TIMERS;
    if (touched.kinds & HS_TOUCHED_LIMITS && limits_lost())
        found |= HS_RETIRED_LIMITS;
    return found;
}

/* Signals are unblocked last, when nothing of the tool's can be called any more. */
void hs_state_restore(void)
{
    const uint64_t nothing = 0;
    for (int number = 1; number <= SIGNALS; number++)
        if (touched.actions & 1ull << (number - 1) && number != SIGKILL && number != SIGSTOP)
            HS_SYS(SYS_rt_sigaction, number, &now->actions[number], 0, HS_SET_BYTES);
    if (touched.kinds & HS_TOUCHED_STACK)
        HS_SYS(SYS_sigaltstack, &now->stack, 0);
    HS_SYS(SYS_prctl, PR_SET_NAME, now->name);
    touched = (struct hs_touched){0, 0};
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &nothing, 0, HS_SET_BYTES);
}

static int signals_differ(void)
{
    struct hs_action action;
    uint64_t mask = 0;
    stack_t stack;
    for (int number = 1; number <= SIGNALS; number++) {
        memset(&action, 0, sizeof action);
        HS_SYS(SYS_rt_sigaction, number, 0, &action, HS_SET_BYTES);
        if (memcmp(&action, &now->actions[number], sizeof action) != 0)
            return 1;
    }
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, 0, &mask, HS_SET_BYTES);
    HS_SYS(SYS_sigaltstack, 0, &stack);
    return mask != 0 || stack.ss_flags != now->stack.ss_flags || stack.ss_sp != now->stack.ss_sp ||
           stack.ss_size != now->stack.ss_size;
}

/* enum hs_difference, but for memory and mappings. */
uint32_t hs_state_differs(void)
{
    uint32_t found = 0;
    unsigned long total = 0;
    struct rlimit limit;
    char called[16];
    if (hs_count_entries("/proc/self/fd", &total) != 1 || total != HS_CONTROL_FD)
        found |= HS_DIFFERS_DESCRIPTORS;
    if (signals_differ())
        found |= HS_DIFFERS_SIGNALS;
    for (int which = 0; which < RLIM_NLIMITS; which++)
        if (HS_SYS(SYS_prlimit64, 0, which, 0, &limit) != 0 || memcmp(&limit, &limits[which], sizeof limit) != 0)
            found |= HS_DIFFERS_LIMITS;
    HS_SYS(SYS_prctl, PR_GET_NAME, called);
    if (strcmp(called, now->name) != 0)
        found |= HS_DIFFERS_NAME;
    return found;
}

#endif
