/* Saves and restores the state that the kernel keeps of a process, as far as a run of main can change it.
 *
 * Working directory and file mode mask are not here, since each request sets them.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "runtime.h"

#if HS_RESETS

#define SIGNALS 64
struct kept {
    struct hs_action actions[SIGNALS + 1];
    /* Those that the kernel sets to the default when they come. */
    uint64_t resets;
    stack_t stack;
    char name[16];
};

/* The state at each level, once it was saved there. The action of a signal that is not in `touched` is that of the level. */
static struct {
    struct kept kept[HS_LEVELS];
    const struct kept *now;
    struct rlimit limits[RLIM_NLIMITS];
    uint64_t touched; /* bit n-1 for signal n; all after a change of the level */
    int keeps_signals; /* that wait: they are for the run that follows */
    int can_unshare;  /* unshare tells if there is one thread only; where it is forbidden, /proc does */
} state = {.now = &state.kept[HS_AT_MAIN], .touched = ~0ull};

int hs_state_has_threads(void)
{
    unsigned long total;
    if (state.can_unshare)
        return HS_SYS(SYS_unshare, CLONE_THREAD) != 0;
    return hs_count_entries("/proc/self/task", &total) != 1;
}

static void save(struct kept *to)
{
    to->resets = 0;
    for (int number = 1; number <= SIGNALS; number++) {
        hs_signals_tell(number, &to->actions[number]);
        if (number == SIGSYS && hs_gate_is_worker())
            hs_gate_action(NULL, &to->actions[number]);
        if (to->actions[number].flags & SA_RESETHAND)
            to->resets |= 1ull << (number - 1);
    }
    HS_SYS(SYS_sigaltstack, 0, &to->stack);
    HS_SYS(SYS_prctl, PR_GET_NAME, to->name);
}

/* The kernel counts the CPU time of all runs for the limit on it: where there is one, each start is a process of its own. */
int hs_state_limits_fit(void)
{
    struct rlimit limit;
    return HS_SYS(SYS_prlimit64, 0, RLIMIT_CPU, 0, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY &&
           limit.rlim_max == RLIM_INFINITY;
}

int hs_state_save(void)
{
    state.can_unshare = HS_SYS(SYS_unshare, CLONE_THREAD) == 0;
    save(&state.kept[HS_AT_MAIN]);
    for (int which = 0; which < RLIM_NLIMITS; which++)
        if (HS_SYS(SYS_prlimit64, 0, which, 0, &state.limits[which]) != 0)
            return -1;
    return hs_state_has_threads() ? -1 : 0;
}

/* Saves it again, later in main. */
void hs_state_save_point(void)
{
    save(&state.kept[HS_AT_POINT]);
}

/* Whether it is as it was saved then. */
int hs_state_is_at_point(void)
{
    static struct kept here;
    const struct kept *point = &state.kept[HS_AT_POINT];
    save(&here);
    return memcmp(here.actions, point->actions, sizeof here.actions) == 0 && here.stack.ss_sp == point->stack.ss_sp &&
           here.stack.ss_size == point->stack.ss_size && here.stack.ss_flags == point->stack.ss_flags &&
           strcmp(here.name, point->name) == 0;
}

#define BIT(number) (1ull << ((number) - 1))
/* Signals that an instruction causes. The gate and the watch depend on them. */
#define CAUSED (BIT(SIGSEGV) | BIT(SIGSYS) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP))
/* The kernel blocks neither. */
#define BLOCKED_DRY ~(CAUSED | BIT(SIGKILL) | BIT(SIGSTOP))

/* Blocks signals from outside for a dry run. One that is ignored by default, and that nobody handles yet, would otherwise be lost. */
void hs_state_block_dry(void)
{
    const uint64_t blocked = BLOCKED_DRY;
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, 0, HS_SET_BYTES);
}

/* Whether that is still so. */
int hs_state_is_blocked_dry(void)
{
    uint64_t mask = 0;
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, 0, &mask, HS_SET_BYTES);
    return mask == BLOCKED_DRY;
}

/* Whether a signal waits. */
int hs_state_has_signal(void)
{
    uint64_t pending = 0;
    HS_SYS(SYS_rt_sigpending, &pending, HS_SET_BYTES);
    return pending != 0;
}

/* Says which is meant from now on. */
void hs_state_choose(enum hs_level level)
{
    if (state.now != &state.kept[level])
        state.touched = ~0ull;
    state.now = &state.kept[level];
}

static int same_stack(const stack_t *stack)
{
    return stack->ss_flags == state.now->stack.ss_flags && stack->ss_sp == state.now->stack.ss_sp &&
           stack->ss_size == state.now->stack.ss_size;
}

static int timers_armed(void)
{
    struct itimerval timer;
#ifdef HS_WITHOUT_TIMERS
    return 0;
#endif
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
        if (HS_SYS(SYS_getitimer, which, &timer) == 0 &&
            (timer.it_value.tv_sec || timer.it_value.tv_usec || timer.it_interval.tv_sec || timer.it_interval.tv_usec))
            return 1;
    return 0;
}

/* A stack that became deeper than the restored limit allows stays so, and would not overflow. Half of it is a margin. */
static int stack_outgrew(void)
{
    const rlim_t allowed = state.limits[RLIMIT_STACK].rlim_cur;
    return allowed != RLIM_INFINITY && hs_frame.stack - hs_memory_stack_low() > allowed / 2;
}

/* Restores limits; returns whether that failed. */
static int limits_lost(void)
{
    struct rlimit limit;
#ifdef HS_WITHOUT_LIMITS
    return 0;
#endif
    for (int which = 0; which < RLIM_NLIMITS; which++) {
        HS_SYS(SYS_prlimit64, 0, which, 0, &limit);
        if (memcmp(&limit, &state.limits[which], sizeof limit) != 0 &&
            (HS_SYS(SYS_prlimit64, 0, which, &state.limits[which], 0) != 0 || (which == RLIMIT_STACK && stack_outgrew())))
            return 1;
    }
    return 0;
}

/* Takes pending signals, which would be lost with the process; returns whether more keep coming. */
static int signals_left(void)
{
    const uint64_t all = ~0ull;
    const struct timespec at_once = {0, 0};
    for (int i = 0; !state.keeps_signals && i < 2 * SIGNALS; i++) {
        uint64_t pending = 0;
        HS_SYS(SYS_rt_sigpending, &pending, HS_SET_BYTES);
        if (!pending)
            return 0;
        HS_SYS(SYS_rt_sigtimedwait, &all, 0, &at_once, HS_SET_BYTES);
    }
    return !state.keeps_signals;
}

/* Whether signals that wait when the process is reset stay for the run that follows, after a dry run. */
void hs_state_keep_signals(int keeps)
{
    state.keeps_signals = keeps;
}

/* Restores the signal stack; returns whether that failed. A handler can set it without any call, by the frame to which it returns. */
static int stack_lost(void)
{
    stack_t stack;
    HS_SYS(SYS_sigaltstack, 0, &stack);
#ifdef HS_WITHOUT_ALTSTACK
    return 0;
#endif
    return !same_stack(&stack) && HS_SYS(SYS_sigaltstack, &state.now->stack, 0) != 0;
}

/* In a process that has taken over this memory, which has no signal stack yet. */
int hs_state_renew_stack(void)
{
    return stack_lost() ? -1 : 0;
}

/* enum hs_retirement: what keeps the process from being used again. Blocks all signals meanwhile and after. What no call of
 * this run can have made is not looked for. */
uint32_t hs_state_doubts(void)
{
    const uint64_t all = ~0ull;
    const uint32_t seen = hs_call_seen();
    uint32_t found = 0;
    if (seen && hs_state_has_threads())
        return HS_RETIRED_THREADS;
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, HS_SET_BYTES);
    state.touched |= hs_call_actions() | state.now->resets | (seen & HS_SEEN_THREADS ? 1ull << (SIGNALS - 1) : 0);
    if (signals_left() || stack_lost())
        found |= HS_RETIRED_SIGNALS;
    if (!seen)
        return found;
    /* One that still runs, or has left others behind, may know this process by its number, and change it. */
#ifndef HS_WITHOUT_CHILDREN
    if (seen & HS_SEEN_CHILDREN && !hs_children_are_gone())
        found |= HS_RETIRED_CHILDREN;
#endif
    if (timers_armed())
        found |= HS_RETIRED_TIMERS;
    if (limits_lost())
        found |= HS_RETIRED_LIMITS;
    return found;
}

/* SIGSYS is the gate's own: the tool's action is kept there. */
static void restore_action(int number)
{
    if (number == SIGSYS)
        hs_gate_action(&state.now->actions[number], NULL);
    else if (number != SIGKILL && number != SIGSTOP)
        hs_signals_set(number, &state.now->actions[number]);
}

void hs_state_unblock(void)
{
    const uint64_t nothing = 0;
#ifndef HS_WITHOUT_MASK
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &nothing, 0, HS_SET_BYTES);
#endif
}

/* Signals are unblocked last, when nothing of the tool's can be called any more. After a dry run those from outside wait for the run. */
void hs_state_restore(void)
{
#ifndef HS_WITHOUT_ACTIONS
    for (int number = 1; state.touched && number <= SIGNALS; number++)
        if (state.touched & 1ull << (number - 1))
            restore_action(number);
#endif
    /* Actions that differ at another level. */
    if (state.touched == ~0ull)
        stack_lost();
    state.touched = 0;
    /* Signals that came since they were taken, such as by the closing of the tool's descriptors. */
    signals_left();
    if (state.keeps_signals)
        hs_state_block_dry();
    else
        hs_state_unblock();
}

/* Before each run: between two it has another one. */
void hs_state_name(void)
{
#ifndef HS_WITHOUT_NAME
    HS_SYS(SYS_prctl, PR_SET_NAME, state.now->name);
#endif
}

static int signals_differ(void)
{
    struct hs_action action;
    uint64_t mask = 0;
    stack_t stack;
    for (int number = 1; number <= SIGNALS; number++) {
        memset(&action, 0, sizeof action);
        hs_signals_tell(number, &action);
        if (number == SIGSYS)
            hs_gate_action(NULL, &action);
        if (memcmp(&action, &state.now->actions[number], sizeof action) != 0)
            return 1;
    }
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, 0, &mask, HS_SET_BYTES);
    HS_SYS(SYS_sigaltstack, 0, &stack);
    return mask != 0 || !same_stack(&stack);
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
        if (HS_SYS(SYS_prlimit64, 0, which, 0, &limit) != 0 || memcmp(&limit, &state.limits[which], sizeof limit) != 0)
            found |= HS_DIFFERS_LIMITS;
    hs_state_name();
    HS_SYS(SYS_prctl, PR_GET_NAME, called);
    hs_title_hide_name();
    if (strcmp(called, state.now->name) != 0)
        found |= HS_DIFFERS_NAME;
    return found;
}

#endif
