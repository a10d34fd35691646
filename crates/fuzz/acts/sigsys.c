/* SIGSYS, as a program sees it that uses it itself: in its main thread, in others, in children and in programs they execute. */
#include "act.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <ucontext.h>

#undef FAMILY
#define FAMILY "sigsys"

extern char **environ;

static volatile sig_atomic_t seen, seen_code;

static void count_call(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    seen++;
    seen_code = info->si_code;
}

static const char *const MASKS[] = {"SigP", "ShdP", "SigB", "SigI", "SigC", NULL};

/* What a thread or process is told of the signal by calls. */
static void tell(const char *of)
{
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } action = {0};
    sigset_t mask, pending;
    struct sigaction now = {0};
    sigaction(SIGSYS, NULL, &now);
    RAW(SYS_rt_sigaction, SIGSYS, 0, &action, 8);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigpending(&pending);
    say("%s default %d ignored %d own %d flags %lx mask %lx", of, now.sa_handler == SIG_DFL, now.sa_handler == SIG_IGN,
        now.sa_sigaction == count_call, action.flags, action.mask);
    say("%s blocked %d pending %d", of, sigismember(&mask, SIGSYS), sigismember(&pending, SIGSYS));
}

static volatile int shown_in_frame;

static void look_at_frame(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    shown_in_frame = sigismember(&((ucontext_t *)context)->uc_sigmask, SIGSYS);
}

/* The mask to which a handler returns is in its frame. */
OBSERVE(sigsys_in_a_frame)
{
    struct sigaction action = {.sa_sigaction = look_at_frame, .sa_flags = SA_SIGINFO}, before;
    sigset_t set, own;
    sigemptyset(&own);
    sigaddset(&own, SIGUSR2);
    sigaction(SIGUSR2, &action, &before);
    sigprocmask(SIG_UNBLOCK, &own, &set);
    shown_in_frame = -1;
    raise(SIGUSR2);
    say("in the frame %d", shown_in_frame);
    sigaction(SIGUSR2, &before, NULL);
    sigprocmask(SIG_SETMASK, &set, NULL);
}

static volatile int shown_in_handler;
static jmp_buf outside_handler;

/* Raises another signal, which it alone lets through. */
static void raise_another(int number)
{
    sigset_t mask;
    (void)number;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    shown_in_handler = sigismember(&mask, SIGSYS);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigprocmask(SIG_UNBLOCK, &mask, NULL);
    raise(SIGUSR2);
}

static void leave_by_jump(int number)
{
    (void)number;
    siglongjmp(outside_handler, 1);
}

static void let_through(int number)
{
    struct sigaction action = {.sa_handler = raise_another};
    sigaction(number, &action, NULL);
    raise_another(number);
}

static int blocks_it(void)
{
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    return sigismember(&mask, SIGSYS);
}

static void look_in_a_wait(int number)
{
    (void)number;
    shown_in_frame = blocks_it();
}

static const struct sigaction LOOKS_AT_FRAME = {.sa_sigaction = look_at_frame, .sa_flags = SA_SIGINFO};
static const struct sigaction LOOKS_IN_A_WAIT = {.sa_handler = look_in_a_wait};

/* A signal whose handler runs with all others blocked, and another one that comes meanwhile. */
static void handle_with_all_blocked(void (*handler)(int), const struct sigaction *another)
{
    struct sigaction action = {.sa_handler = handler}, before[2];
    sigset_t was, own;
    sigfillset(&action.sa_mask);
    sigemptyset(&own);
    sigaddset(&own, SIGUSR1);
    sigaddset(&own, SIGUSR2);
    sigprocmask(SIG_UNBLOCK, &own, &was);
    sigaction(SIGUSR2, another, &before[0]);
    sigaction(SIGUSR1, &action, &before[1]);
    say("before %d", blocks_it());
    shown_in_frame = shown_in_handler = -1;
    if (sigsetjmp(outside_handler, handler != leave_by_jump) == 0)
        raise(SIGUSR1);
    say("handler %d frame %d after %d", shown_in_handler, shown_in_frame, blocks_it());
    sigaction(SIGUSR1, &before[1], NULL);
    sigaction(SIGUSR2, &before[0], NULL);
    sigprocmask(SIG_SETMASK, &was, NULL);
    say("at the end %d", blocks_it());
}

OBSERVE(sigsys_in_a_handler)
{
    handle_with_all_blocked(raise_another, &LOOKS_AT_FRAME);
}

/* A handler that waits for another one, under a mask that has neither that one nor SIGSYS. */
static void wait_in_a_handler(int number)
{
    sigset_t mask;
    (void)number;
    sigfillset(&mask);
    sigdelset(&mask, SIGSYS);
    raise(SIGUSR2);
    sigdelset(&mask, SIGUSR2);
    sigsuspend(&mask);
    shown_in_handler = blocks_it();
}

OBSERVE(sigsys_in_a_wait)
{
    handle_with_all_blocked(wait_in_a_handler, &LOOKS_IN_A_WAIT);
}

OBSERVE(sigsys_after_a_jump)
{
    handle_with_all_blocked(leave_by_jump, &LOOKS_AT_FRAME);
}

OBSERVE(sigsys_let_through_later)
{
    handle_with_all_blocked(let_through, &LOOKS_AT_FRAME);
}

static void *handle_in_thread(void *argument)
{
    handle_with_all_blocked(raise_another, &LOOKS_AT_FRAME);
    return argument;
}

OBSERVE(sigsys_in_a_threads_handler)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, handle_in_thread, NULL) == 0)
        pthread_join(thread, NULL);
    handle_with_all_blocked(leave_by_jump, &LOOKS_AT_FRAME);
}

DISTURB(sigsys_with_all_blocked)
{
    struct sigaction action = {.sa_handler = leave_by_jump};
    sigfillset(&action.sa_mask);
    say_result("action", sigaction(SIGUSR1, &action, NULL));
    if (sigsetjmp(outside_handler, 0) == 0)
        raise(SIGUSR1);
}

DISTURB(sigsys_ignored)
{
    say("was default %d", signal(SIGSYS, SIG_IGN) == SIG_DFL);
}

DISTURB(sigsys_handled)
{
    struct sigaction action = {.sa_sigaction = count_call, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    say_result("handler", sigaction(SIGSYS, &action, NULL));
}

DISTURB(sigsys_handled_once)
{
    struct sigaction action = {.sa_sigaction = count_call, .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND)};
    say_result("handler", sigaction(SIGSYS, &action, NULL));
}

DISTURB(sigsys_blocked)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    say_result("block", sigprocmask(SIG_BLOCK, &set, NULL));
}

DISTURB(sigsys_blocked_with_all)
{
    sigset_t set;
    sigfillset(&set);
    say_result("block", pthread_sigmask(SIG_SETMASK, &set, NULL));
}

DISTURB(sigsys_unblocked)
{
    unsigned long set = 1ul << (SIGSYS - 1);
    say_result("unblock", RAW(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, 0, 8));
}

OBSERVE(sigsys_show)
{
    tell("process");
}

OBSERVE(sigsys_status)
{
    say_status(MASKS);
}

static void tell_in_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        tell("child");
        _exit(0);
    }
    say_child(child);
}

OBSERVE(sigsys_child)
{
    tell_in_child();
}

OBSERVE(sigsys_child_status)
{
    pid_t child = fork();
    if (child == 0) {
        say_status(MASKS);
        _exit(0);
    }
    say_child(child);
}

OBSERVE(sigsys_child_by_call)
{
    long child = RAW(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        tell("clone");
        say_status(MASKS);
        RAW(SYS_exit_group, 0);
    }
    say_child((pid_t)child);
}

/* The child changes what is its own. */
MIXED(sigsys_child_changes)
{
    pid_t child = fork();
    if (child == 0) {
        sigset_t set;
        sigfillset(&set);
        signal(SIGSYS, SIG_IGN);
        sigprocmask(SIG_SETMASK, &set, NULL);
        tell("child");
        raise(SIGSYS);
        signal(SIGSYS, SIG_DFL);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        raise(SIGSYS);
        _exit(0);
    }
    say_child(child);
    tell("parent");
}

OBSERVE(sigsys_child_handles)
{
    pid_t child = fork();
    if (child == 0) {
        seen = 0;
        raise(SIGSYS);
        _exit(10 + seen);
    }
    say_child(child);
}

OBSERVE(sigsys_executed)
{
    pid_t child = 0;
    char *arguments[] = {"acts", "sigsys_show", "sigsys_status", "signal_actions_show", NULL};
    if (posix_spawn(&child, own_path, NULL, NULL, arguments, environ) != 0)
        return say("not started");
    say_child(child);
}

OBSERVE(sigsys_executed_by_shell)
{
    fflush(stdout);
    say_result("system", system("grep -E 'Sig(Blk|Ign|Cgt)|Seccomp:' /proc/self/status"));
}

static void *tell_of_thread(void *argument)
{
    (void)argument;
    tell("thread");
    return NULL;
}

OBSERVE(sigsys_thread)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, tell_of_thread, NULL) == 0)
        pthread_join(thread, NULL);
}

static void *block_in_thread(void *argument)
{
    sigset_t set;
    sigfillset(&set);
    int failed = pthread_sigmask(SIG_SETMASK, &set, argument);
    tell("thread");
    sigdelset(&set, SIGSYS);
    failed |= pthread_sigmask(SIG_SETMASK, &set, NULL);
    tell("thread again");
    return (void *)(intptr_t)failed;
}

MIXED(sigsys_thread_blocks)
{
    pthread_t thread;
    sigset_t was;
    void *failed = NULL;
    if (pthread_create(&thread, NULL, block_in_thread, &was) != 0)
        return say("no thread");
    pthread_join(thread, &failed);
    say("failed %d was blocked %d", (int)(intptr_t)failed, sigismember(&was, SIGSYS));
    tell("main");
}

static void *fork_in_thread(void *argument)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    tell_in_child();
    return argument;
}

MIXED(sigsys_thread_forks)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, fork_in_thread, NULL) == 0)
        pthread_join(thread, NULL);
}

static void *take_in_thread(void *argument)
{
    (void)argument;
    seen = 0;
    raise(SIGSYS);
    say("handled %d", (int)seen);
    return NULL;
}

MIXED(sigsys_thread_raises)
{
    pthread_t thread;
    signal(SIGSYS, SIG_IGN);
    struct sigaction action = {.sa_sigaction = count_call, .sa_flags = SA_SIGINFO}, was;
    sigaction(SIGSYS, &action, &was);
    if (pthread_create(&thread, NULL, take_in_thread, NULL) == 0)
        pthread_join(thread, NULL);
    sigaction(SIGSYS, &was, NULL);
}

MIXED(sigsys_raised)
{
    struct sigaction action = {.sa_sigaction = count_call, .sa_flags = SA_SIGINFO}, was;
    sigset_t set, mask;
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    sigprocmask(SIG_UNBLOCK, &set, &mask);
    sigaction(SIGSYS, &action, &was);
    seen = 0;
    raise(SIGSYS);
    RAW(SYS_kill, getpid(), SIGSYS);
    sigqueue(getpid(), SIGSYS, (union sigval){.sival_int = 3});
    say("handled %d by code %d", (int)seen, (int)seen_code);
    sigaction(SIGSYS, &was, NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

MIXED(sigsys_waited_for)
{
    const struct timespec at_once = {0, 0};
    sigset_t set, was, pending;
    siginfo_t info = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    sigprocmask(SIG_BLOCK, &set, &was);
    raise(SIGSYS);
    sigpending(&pending);
    say("pending %d", sigismember(&pending, SIGSYS));
    say_result("taken", sigtimedwait(&set, &info, &at_once));
    say("from self %d", info.si_pid == getpid());
    sigprocmask(SIG_SETMASK, &was, NULL);
}

MIXED(sigsys_by_descriptor)
{
    sigset_t set, was;
    struct signalfd_siginfo info = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    sigprocmask(SIG_BLOCK, &set, &was);
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    raise(SIGSYS);
    ssize_t got = read(fd, &info, sizeof info);
    say("got %zd signal %u", got, info.ssi_signo);
    close(fd);
    sigprocmask(SIG_SETMASK, &was, NULL);
}

static void fill_mask(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    sigfillset(&((ucontext_t *)context)->uc_sigmask);
}

/* A handler may return to another mask than it interrupted. */
MIXED(sigsys_blocked_by_return)
{
    struct sigaction action = {.sa_sigaction = fill_mask, .sa_flags = SA_SIGINFO}, was;
    sigset_t mask;
    sigaction(SIGWINCH, &action, &was);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    raise(SIGWINCH);
    RAW(SYS_getuid);
    tell("after");
    sigaction(SIGWINCH, &was, NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

static void look_at_mask(int number)
{
    (void)number;
    tell("in handler");
}

MIXED(sigsys_blocked_in_handler)
{
    struct sigaction action = {.sa_handler = look_at_mask}, was, again;
    sigfillset(&action.sa_mask);
    sigaction(SIGWINCH, &action, &was);
    sigaction(SIGWINCH, NULL, &again);
    raise(SIGWINCH);
    say("in mask %d", sigismember(&again.sa_mask, SIGSYS));
    sigaction(SIGWINCH, &was, NULL);
}

/* Has the kernel send the signal for a call, with the program's own handler. */
MIXED(sigsys_by_filter)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {CHECK_SIZE(code), code};
    struct sigaction action = {.sa_sigaction = count_call, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    seen = 0;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    say_result("filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    RAW(SYS_getpriority, 0, 0);
    say("handled %d by code %d", (int)seen, (int)seen_code);
}

static volatile char selects;

static void answer_call(int number, siginfo_t *info, void *context)
{
    count_call(number, info, context);
    selects = 0;
}

/* A program that has its own calls handed to it. */
MIXED(sigsys_by_dispatch)
{
    struct sigaction action = {.sa_sigaction = answer_call, .sa_flags = SA_SIGINFO}, was;
    sigaction(SIGSYS, &action, &was);
    seen = 0;
    say_result("dispatch", RAW(SYS_prctl, 59, 1, 0, 0, &selects)); /* PR_SET_SYSCALL_USER_DISPATCH */
    selects = 1;
    RAW(SYS_getuid);
    selects = 0;
    say("handled %d by code %d", (int)seen, (int)seen_code);
    say_result("off", RAW(SYS_prctl, 59, 0, 0, 0, 0));
    sigaction(SIGSYS, &was, NULL);
}

END(end_by_sigsys)
{
    signal(SIGSYS, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGSYS);
}

END(end_as_other_with_sigsys)
{
    char *arguments[] = {"acts", "sigsys_show", "sigsys_status", NULL};
    fflush(NULL);
    execv(own_path, arguments);
}
