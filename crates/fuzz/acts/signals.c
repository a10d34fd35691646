/* Signals: actions, masks, pending ones, the alternate stack, timers. */
#include "act.h"
#include <sched.h>
#include <setjmp.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#undef FAMILY
#define FAMILY "signals"

/* The kernel's form. */
struct raw_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

static volatile sig_atomic_t handled;

static void count_signal(int number)
{
    handled += number;
}

static void count_info(int number, siginfo_t *info, void *context)
{
    (void)context;
    handled += number + info->si_value.sival_int;
}

DISTURB(signal_actions)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGCHLD, SIGWINCH, SIGURG};
    for (size_t i = 0; i < CHECK_SIZE(numbers); i++)
        signal(numbers[i], i % 2 ? count_signal : SIG_IGN);
    say("set");
}

DISTURB(signal_action_realtime)
{
    struct sigaction action = {.sa_sigaction = count_info, .sa_flags = SA_SIGINFO | SA_RESTART};
    say("%d", sigaction(SIGRTMIN + 2, &action, NULL));
    say("%d", sigaction(SIGRTMAX, &action, NULL));
}

DISTURB(signal_action_by_call)
{
    struct raw_action action = {.handler = SIG_IGN};
    say_result("standard", RAW(SYS_rt_sigaction, SIGUSR1, &action, 0, 8));
    say_result("real-time", RAW(SYS_rt_sigaction, 40, &action, 0, 8));
}

DISTURB(signal_action_by_syscall)
{
    struct raw_action action = {.handler = SIG_IGN};
    say_result("real-time", syscall(SYS_rt_sigaction, 45, &action, NULL, 8));
}

DISTURB(signal_action_libc_own)
{
    struct raw_action action = {.handler = SIG_IGN};
    say_result("32", RAW(SYS_rt_sigaction, 32, &action, 0, 8));
    say_result("33", RAW(SYS_rt_sigaction, 33, &action, 0, 8));
}

DISTURB(signal_ignore_pipe)
{
    say("was default %d", signal(SIGPIPE, SIG_IGN) == SIG_DFL);
}

/* libc sets 32 and 33 by itself in some functions. */
OBSERVE(signal_actions_show)
{
    char line[300] = "", one[24];
    for (int number = 1; number <= 64; number++) {
        struct raw_action now = {0};
        RAW(SYS_rt_sigaction, number, 0, &now, 8);
        if (now.handler == SIG_DFL && !now.flags && !now.mask)
            continue;
        snprintf(one, sizeof one, " %d:%d:%lx:%lx", number, now.handler == SIG_IGN ? 1 : now.handler == SIG_DFL ? 0 : 2,
                 now.flags, now.mask);
        if (strlen(line) + strlen(one) < sizeof line)
            strcat(line, one);
    }
    say("%s", line);
}

DISTURB(signal_mask)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGRTMIN + 5);
    say_result("block", sigprocmask(SIG_BLOCK, &set, NULL));
}

DISTURB(signal_mask_all_by_call)
{
    unsigned long all = ~0ul & ~(1ul << (SIGSEGV - 1)) & ~(1ul << (SIGBUS - 1));
    say_result("block", RAW(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, 8));
}

OBSERVE(signal_mask_show)
{
    unsigned long now = 0, pending = 0;
    RAW(SYS_rt_sigprocmask, SIG_BLOCK, 0, &now, 8);
    RAW(SYS_rt_sigpending, &pending, 8);
    say("blocked %lx pending %lx", now, pending);
}

DISTURB(signal_pending)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    say_result("raise", raise(SIGUSR2));
}

DISTURB(signal_pending_realtime)
{
    sigset_t set;
    int failed = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 5; i++)
        failed |= sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i});
    say("queued %d", failed);
}

MIXED(signal_handled)
{
    struct sigaction action = {.sa_handler = count_signal}, old;
    handled = 0;
    sigaction(SIGUSR1, &action, &old);
    raise(SIGUSR1);
    say("handled %d", (int)handled);
    sigaction(SIGUSR1, &old, NULL);
}

MIXED(signal_reset_on_call)
{
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = (int)SA_RESETHAND}, now;
    sigaction(SIGUSR2, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGUSR2);
    sigaction(SIGUSR2, NULL, &now);
    say("default again %d", now.sa_handler == SIG_DFL);
}

static sigjmp_buf escape;

static void jump_out(int number)
{
    siglongjmp(escape, number);
}

MIXED(signal_jump)
{
    signal(SIGWINCH, jump_out);
    int number = sigsetjmp(escape, 1);
    if (!number)
        raise(SIGWINCH);
    say("jumped %d", number == SIGWINCH);
}

static char signal_stack[65536];

DISTURB(signal_stack_set)
{
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    say_result("stack", sigaltstack(&stack, NULL));
}

DISTURB(signal_stack_by_call)
{
    stack_t stack = {.ss_sp = signal_stack + 8192, .ss_size = 32768, .ss_flags = (int)(1u << 31)};
    say_result("stack", RAW(SYS_sigaltstack, &stack, 0));
}

static void set_by_return(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    ((ucontext_t *)context)->uc_stack = (stack_t){.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
}

DISTURB(signal_stack_by_return)
{
    struct sigaction action = {.sa_sigaction = set_by_return, .sa_flags = SA_SIGINFO}, old;
    sigaction(SIGURG, &action, &old);
    say_result("raise", raise(SIGURG));
    sigaction(SIGURG, &old, NULL);
}

OBSERVE(signal_stack_show)
{
    stack_t now = {0};
    sigaltstack(NULL, &now);
    say("flags %d own %d size %zu", now.ss_flags, now.ss_sp == signal_stack, now.ss_size);
}

static volatile int on_own_stack;

static void look_at_stack(int number)
{
    const char *here = __builtin_frame_address(0);
    on_own_stack = number && here >= signal_stack && here < signal_stack + sizeof signal_stack;
}

MIXED(signal_stack_used)
{
    struct sigaction action = {.sa_handler = look_at_stack, .sa_flags = SA_ONSTACK}, old;
    sigaction(SIGHUP, &action, &old);
    on_own_stack = -1;
    raise(SIGHUP);
    say("on own stack %d", on_own_stack);
    sigaction(SIGHUP, &old, NULL);
}

static sigjmp_buf after_untold;

/* The kernel calls it with three arguments, whatever its action asks for. */
static void look_at_untold(int number, siginfo_t *info, void *context)
{
    say("%d signo %d code %d address %d context %d", number, info->si_signo, info->si_code, info->si_addr == (void *)8, context != NULL);
    siglongjmp(after_untold, 1);
}

/* A fault's handler that does not ask to be told more finds what was on its stack. */
MIXED(fault_untold)
{
    static const int numbers[] = {SIGSEGV, SIGFPE};
    const size_t room = 64 << 10;
    stack_t before;
    for (int i = 0; i < 2; i++) {
        stack_t fresh = {.ss_size = room};
        struct sigaction action = {.sa_handler = (void (*)(int))look_at_untold, .sa_flags = SA_ONSTACK | SA_NODEFER}, old;
        fresh.ss_sp = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sigaltstack(&fresh, &before);
        sigaction(numbers[i], &action, &old);
        if (!sigsetjmp(after_untold, 1)) {
            if (numbers[i] == SIGSEGV)
                *(volatile int *)8 = 1;
            else
                raise(SIGFPE);
        }
        sigaction(numbers[i], &old, NULL);
        sigaltstack(&before, NULL);
        munmap(fresh.ss_sp, room);
    }
}

DISTURB(timer_alarm)
{
    say("left %u", alarm(1000));
}

DISTURB(timer_alarm_by_call)
{
    say_result("left", RAW(SYS_alarm, 2000));
}

DISTURB(timer_virtual)
{
    struct itimerval timer = {.it_value = {1000, 0}};
    SAY2("%ld %ld", setitimer(ITIMER_VIRTUAL, &timer, NULL), setitimer(ITIMER_PROF, &timer, NULL));
}

OBSERVE(timer_show)
{
    struct itimerval timer;
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
        getitimer(which, &timer);
        say("%d armed %d", which, timer.it_value.tv_sec || timer.it_value.tv_usec);
    }
}

DISTURB(timer_posix)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec later = {.it_value = {1000, 0}};
    timer_t timer = 0;
    SAY2("create %ld set %ld", timer_create(CLOCK_MONOTONIC, &event, &timer), timer_settime(timer, 0, &later, NULL));
}

DISTURB(timer_posix_by_call)
{
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    int id = -1;
    long made = RAW(SYS_timer_create, CLOCK_MONOTONIC, &event, &id);
    say_result("create", made);
}

OBSERVE(timer_posix_show)
{
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    int id = -1;
    long made = RAW(SYS_timer_create, CLOCK_REALTIME, &event, &id);
    say("made %ld number %d", made, id);
    RAW(SYS_timer_delete, id);
}

/* Any thread may be the one that is called. */
MIXED(timer_expires)
{
    struct itimerval soon = {.it_value = {0, 1000}};
    struct sigaction action = {.sa_handler = count_signal}, old;
    sigset_t set, was;
    handled = 0;
    sigaction(SIGALRM, &action, &old);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &set, &was);
    setitimer(ITIMER_REAL, &soon, NULL);
    while (!handled)
        sched_yield();
    say("handled %d", (int)handled);
    sigprocmask(SIG_SETMASK, &was, NULL);
    sigaction(SIGALRM, &old, NULL);
}

DISTURB(timer_profile)
{
    static unsigned short samples[64];
    say_result("profil", profil(samples, sizeof samples, 0, 1));
}

MIXED(signal_wait_timed)
{
    const struct timespec at_once = {0, 0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGRTMIN + 1);
    say_result("taken", sigtimedwait(&set, NULL, &at_once));
}

MIXED(signal_child)
{
    struct sigaction action = {.sa_handler = count_signal}, old;
    handled = 0;
    sigaction(SIGCHLD, &action, &old);
    pid_t child = fork();
    if (child == 0)
        _exit(9);
    say_child(child);
    sigaction(SIGCHLD, &old, NULL);
}

MIXED(signal_child_ignored)
{
    void (*was)(int) = signal(SIGCHLD, SIG_IGN);
    pid_t child = fork();
    if (child == 0)
        _exit(9);
    pid_t got = waitpid(child, NULL, 0);
    say("reaped %d error %d", got == child, errno);
    signal(SIGCHLD, was);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

DISTURB(signal_interrupts)
{
    say_result("siginterrupt", siginterrupt(SIGXCPU, 1));
}

#if defined(__x86_64__)
static volatile int told_flags;

static void note_stack(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    told_flags = ((ucontext_t *)context)->uc_stack.ss_flags;
}

/* The kernel tells a handler more of the signal stack than it tells by sigaltstack. */
OBSERVE(signal_stack_of_handler)
{
    struct sigaction action = {.sa_sigaction = note_stack, .sa_flags = SA_SIGINFO}, old;
    sigaction(SIGTRAP, &action, &old);
    told_flags = -1;
    __asm__ volatile("int3");
    sigaction(SIGTRAP, &old, NULL);
    say("%d", told_flags);
}

MIXED(signal_stack_of_handler_disabled)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    struct sigaction action = {.sa_sigaction = note_stack, .sa_flags = SA_SIGINFO}, old;
    say_result("disable", sigaltstack(&none, NULL));
    sigaction(SIGTRAP, &action, &old);
    told_flags = -1;
    __asm__ volatile("int3");
    sigaction(SIGTRAP, &old, NULL);
    say("%d", told_flags);
}
#endif

#if defined(__x86_64__)
static volatile unsigned long last_fault[3];

static void note_last_fault(int number, siginfo_t *info, void *context)
{
    const greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)number, (void)info;
    last_fault[0] = (unsigned long)registers[REG_TRAPNO];
    last_fault[1] = (unsigned long)registers[REG_ERR];
    last_fault[2] = registers[REG_CR2] != 0;
}

/* The kernel tells each handler of the last fault of the process, whatever the signal. */
OBSERVE(signal_told_fault)
{
    struct sigaction before;
    sigaction(SIGURG, &(struct sigaction){.sa_sigaction = note_last_fault, .sa_flags = SA_SIGINFO}, &before);
    raise(SIGURG);
    sigaction(SIGURG, &before, NULL);
    SAY3("fault %lu %lu %lu", last_fault[0], last_fault[1], last_fault[2]);
}
#endif

/* The kernel takes a mask of one size only. */
OBSERVE(masks_of_a_wrong_size)
{
    const uint64_t all = ~0ull;
    const struct {
        const uint64_t *mask;
        size_t size;
    } both = {&all, 4};
    const struct timespec none = {0, 0};
    say_result("ppoll", RAW(SYS_ppoll, NULL, 0, &none, &all, 4));
    say_result("pselect", RAW(SYS_pselect6, 0, NULL, NULL, NULL, &none, &both));
    say_result("action", RAW(SYS_rt_sigaction, SIGURG, NULL, NULL, 4));
    say_result("half", RAW(SYS_rt_sigaction, SIGURG | 1l << 32, NULL, NULL, 8));
}
