/* Ways to end, and processes that are started on the way. */
#include "act.h"
#include <assert.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <time.h>

#undef FAMILY
#define FAMILY "ends"

extern char **environ;

END(end_return_code)
{
    exit(3);
}

END(end_large_code)
{
    exit(0x12345);
}

END(end_at_once)
{
    printf("not to be seen");
    _exit(7);
}

END(end_c99)
{
    _Exit(8);
}

END(end_quick)
{
    printf("not to be seen either");
    quick_exit(9);
}

END(end_by_call)
{
    RAW(SYS_exit_group, 10);
}

END(end_thread_by_call)
{
    RAW(SYS_exit, 11);
}

/* By the process that has started it, which does not know. */
END(end_traced)
{
    say("traced %ld", ptrace(PTRACE_TRACEME, 0, 0, 0));
    exit(5);
}

END(end_abort)
{
    abort();
}

static void on_abort(int number)
{
    say("aborting %d", number);
}

END(end_abort_handled)
{
    signal(SIGABRT, on_abort);
    abort();
}

END(end_assert)
{
    assert(!"reached");
}

#define END_BY(name, number) \
    END(name) \
    { \
        signal(number, SIG_DFL); \
        raise(number); \
    }

END_BY(end_by_hangup, SIGHUP)
END_BY(end_by_interrupt, SIGINT)
END_BY(end_by_kill, SIGKILL)
END_BY(end_by_term, SIGTERM)
END_BY(end_by_pipe, SIGPIPE)
END_BY(end_by_user, SIGUSR1)
END_BY(end_by_alarm, SIGALRM)
END_BY(end_by_realtime, SIGRTMIN + 4)

END(end_by_fault)
{
    *(volatile int *)8 = 1;
}

END(end_by_illegal)
{
    __builtin_trap();
}

END(end_by_division)
{
    volatile int zero = 0;
    say("%d", 5 / zero);
}

static int overflow(volatile char *above)
{
    volatile char frame[4096];
    frame[0] = above ? above[0] : 1;
    return overflow(frame) + frame[0];
}

END(end_by_stack)
{
    say("%d", overflow(NULL));
}

static void end_from_handler(int number)
{
    _exit(number + 20);
}

END(end_in_handler)
{
    signal(SIGUSR2, end_from_handler);
    raise(SIGUSR2);
}

static void exit_in_handler(int number)
{
    exit(number + 20);
}

END(end_in_fault_handler)
{
    signal(SIGSEGV, exit_in_handler);
    *(volatile int *)16 = 1;
}

static void end_at_end(void)
{
    _exit(31);
}

END(end_in_exit)
{
    atexit(end_at_end);
    exit(30);
}

END(end_with_closed_streams)
{
    printf("cannot be written");
    close(1);
    close(2);
    exit(12);
}

static int ended_handlers;

static void count_handler(void)
{
    if (++ended_handlers == 100)
        say("all called");
}

END(end_with_many_handlers)
{
    for (int i = 0; i < 100; i++)
        atexit(count_handler);
    exit(13);
}

END(end_as_other)
{
    char *arguments[] = {"acts", "data_count", "env_show", "fd_list", "signal_mask_show", "end_return_code", NULL};
    fflush(NULL);
    execv(own_path, arguments);
    say_result("execv", -1);
}

END(end_as_other_program)
{
    fflush(NULL);
    execl("/bin/sh", "sh", "-c", "echo from the shell; exit 14", (char *)NULL);
}

END(end_as_other_by_call)
{
    char *arguments[] = {"/bin/echo", "by a call", NULL};
    RAW(SYS_execve, arguments[0], arguments, environ);
}

/* What the other program has of this process, beside its memory. */
END(end_as_other_with_state)
{
    char *arguments[] = {"acts", "inherited_show", "signal_mask_show", NULL};
    fflush(NULL);
    execv("/absent/program", arguments);
    execv(own_path, arguments);
}

OBSERVE(inherited_show)
{
    int death = -1, subreaper = -1, clock = -1;
    prctl(PR_GET_PDEATHSIG, &death);
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    prctl(PR_GET_TSC, &clock);
    say("death %d subreaper %d clock %d slack %d", death, subreaper, clock, prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
}

MIXED(exec_absent)
{
    char *arguments[] = {"absent", NULL};
    say_result("execv", execv("/absent/program", arguments));
}

MIXED(child_exits)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exit(5);
    say_child(child);
}

/* Its copies of the buffers are written twice, as in any process. */
MIXED(child_with_buffers)
{
    printf("twice;");
    pid_t child = fork();
    if (child == 0)
        exit(6);
    say_child(child);
}

MIXED(child_killed)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    /* Where none could be made, its number would be that of all processes. */
    if (child > 0)
        kill(child, SIGKILL);
    say_child(child);
}

MIXED(child_shares_memory)
{
    pid_t child = vfork();
    if (child == 0)
        _exit(17);
    say_child(child);
}

MIXED(child_executes)
{
    pid_t child = 0;
    char *arguments[] = {"acts", "umask_show", "signal_mask_show", "signal_actions_show", "fd_lowest", NULL};
    int failed = posix_spawn(&child, own_path, NULL, NULL, arguments, environ);
    if (!failed)
        say_child(child);
    say("spawn %d", failed);
}

MIXED(child_limits)
{
    pid_t child = fork();
    if (child == 0) {
        execl(own_path, "acts", "limits_show", "options_show", "priority_show", (char *)NULL);
        _exit(99);
    }
    say_child(child);
}

MIXED(child_shell)
{
    say_result("system", system("exit 3"));
}

MIXED(child_piped)
{
    char text[64] = "";
    FILE *stream = popen("echo piped", "r");
    if (stream && fgets(text, sizeof text, stream))
        text[strcspn(text, "\n")] = 0;
    say("%s %d", text, stream ? pclose(stream) : -1);
}

static int child_stack_main(void *argument)
{
    return *(int *)argument;
}

MIXED(child_by_clone)
{
    static char stack[65536] __attribute__((aligned(16)));
    int code = 19;
    say_child(clone(child_stack_main, stack + sizeof stack, SIGCHLD, &code));
}

/* It ends when this process does, as the pipe's other end is closed by that. */
DISTURB(child_left)
{
    int ends[2];
    if (pipe(ends) != 0)
        return say_result("pipe", -1);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) != 0);
    }
    say("left %d", child > 0);
}

/* Ended, but nobody has waited for it. */
DISTURB(child_zombie)
{
    siginfo_t info;
    pid_t child = fork();
    if (child == 0)
        _exit(1);
    say_result("ended", waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
}

OBSERVE(child_any)
{
    const pid_t got = waitpid(-1, NULL, WNOHANG);
    say_result("waitpid", got > 0 ? 1 : got);
}

MIXED(child_of_child)
{
    pid_t child = fork();
    if (child == 0) {
        pid_t second = fork();
        if (second == 0)
            _exit(22);
        int status = 0;
        waitpid(second, &status, 0);
        _exit(WEXITSTATUS(status) + 1);
    }
    say_child(child);
}

MIXED(child_acts)
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGTERM, SIG_IGN);
        umask(0777);
        if (chdir("/") != 0)
            _exit(1);
        setenv("HS_A", "of the child", 1);
        exit(0);
    }
    say_child(child);
}

/* Outlives its parent and that one's parent, and then signals the number that the first had: it is nobody's. */
static void signal_for_a_while(pid_t number, int what)
{
    const struct timespec little = {0, 300000};
    for (int i = 0; i < 600; i++) {
        kill(number, what);
        nanosleep(&little, NULL);
    }
    _exit(0);
}

static void leave_grandchild(int what)
{
    int ends[2];
    char byte;
    if (pipe(ends) != 0)
        return say_result("pipe", -1);
    pid_t child = fork();
    if (child == 0) {
        const pid_t grandparent = getppid();
        if (fork() != 0)
            _exit(5);
        setsid();
        /* The next run may count programs that are named as it is, while this one is still there. */
        prctl(PR_SET_NAME, "grandchild");
        /* It begins when nobody holds the other end any more. */
        const int end = fcntl(ends[0], F_DUPFD, 200);
        /* Under a limit on descriptors it would not wait. */
        if (end < 0)
            _exit(0);
        close_range(0, 199, 0);
        while (read(end, &byte, 1) > 0)
            ;
        signal_for_a_while(grandparent, what);
    }
    close(ends[0]);
    say_child(child);
}

DISTURB(grandchild_signals)
{
    leave_grandchild(SIGTERM);
}

DISTURB(grandchild_signals_mildly)
{
    leave_grandchild(SIGUSR1);
}

/* Long enough for a signal to come that was meant for another. */
MIXED(signalled_by_nobody)
{
    const struct timespec while_signalled = {0, 20000000};
    struct timespec left = {0};
    say_result("slept", nanosleep(&while_signalled, &left));
}
