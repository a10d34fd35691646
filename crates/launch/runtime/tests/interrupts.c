/* A tool whose signals come while it waits in a system call, and that looks where it is then or leaves; or that runs on a small stack.
 * Exit status: 0 if it found what any process finds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define GUARD 4096
#define MARK 0x5a

static volatile int is_in_libc = -1;
static sigjmp_buf back;
static int waits_on, by_accept;
/* A stack, and what it would overwrite. */
static struct {
    unsigned char guard[GUARD];
    unsigned char stack[64 * 1024];
} memory __attribute__((aligned(4096)));

static void look(int number, siginfo_t *info, void *context)
{
    const ucontext_t *where = context;
    Dl_info found = {0};
    (void)number, (void)info;
    is_in_libc = dladdr((void *)where->uc_mcontext.gregs[REG_RIP], &found) && strstr(found.dli_fname, "libc.so") != NULL;
}

static void write_and_leave(int number)
{
    (void)number;
    siglongjmp(back, write(1, "+", 1) == 1 ? 1 : 2);
}

static void interrupt_soon(void)
{
    const struct itimerval soon = {.it_value = {0, 20000}};
    setitimer(ITIMER_REAL, &soon, NULL);
}

static int guard_is_intact(void)
{
    for (int i = 0; i < GUARD; i++)
        if (memory.guard[i] != MARK)
            return 0;
    return 1;
}

static int listens(void)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const struct sockaddr name = {AF_UNIX, {0}};
    return bind(fd, &name, sizeof name.sa_family) == 0 && listen(fd, 1) == 0 ? fd : -1;
}

/* The handler finds the instruction pointer in libc. */
static int place(void)
{
    struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO};
    int ends[2];
    char byte;
    if (pipe(ends) != 0 || sigaction(SIGALRM, &action, NULL) != 0)
        return 99;
    const int fd = by_accept ? listens() : ends[0];
    interrupt_soon();
    const long got = by_accept ? accept(fd, NULL, NULL) : read(fd, &byte, 1);
    return is_in_libc != 1 || got != -1 || errno != EINTR;
}

/* pause is no call at which libc compares the result by itself. */
static int sleeps(void)
{
    struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO};
    if (sigaction(SIGALRM, &action, NULL) != 0)
        return 99;
    interrupt_soon();
    return pause() != -1 || is_in_libc != 1;
}

static void *wait_for_ever(void *unused)
{
    char byte;
    (void)unused;
    return (void *)(by_accept ? accept(waits_on, NULL, NULL) : read(waits_on, &byte, 1));
}

/* A thread that waits can be cancelled. */
static int cancel(void)
{
    pthread_t thread;
    void *result = NULL;
    int ends[2];
    if (pipe(ends) != 0)
        return 99;
    waits_on = by_accept ? listens() : ends[0];
    if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
        return 99;
    /* Nothing tells that the other thread waits, or not without a doubtful call: it has plenty of time. */
    usleep(200000);
    if (pthread_cancel(thread) != 0 || pthread_join(thread, &result) != 0)
        return 98;
    return result != PTHREAD_CANCELED;
}

/* The kernel needs so much on a signal stack; write needs nothing. What the kernel tells includes the tiles of AMX where there are some,
 * which this process has not asked for. */
static size_t frame(void)
{
    const size_t told = getauxval(AT_MINSIGSTKSZ), tiles = 8192;
    return told > tiles ? told - tiles : told;
}

static int signal_stack(void)
{
    const stack_t stack = {.ss_sp = memory.stack, .ss_size = frame() + 400};
    struct sigaction action = {.sa_handler = write_and_leave, .sa_flags = SA_ONSTACK};
    memset(&memory, MARK, sizeof memory);
    if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        return 99;
    if (!sigsetjmp(back, 1))
        raise(SIGUSR1);
    return !guard_is_intact();
}

static void make_calls(void)
{
    _exit(write(1, "+", 1) != 1 || access("/", F_OK) != 0 || !guard_is_intact());
}

static int coroutine(void)
{
    static ucontext_t made;
    memset(&memory, MARK, sizeof memory);
    getcontext(&made);
    made.uc_stack.ss_sp = memory.stack;
    made.uc_stack.ss_size = 1024;
    makecontext(&made, make_calls, 0);
    setcontext(&made);
    return 99;
}

/* The old action is the tool's own, and can be called. */
static int chain(void)
{
    struct sigaction action = {.sa_handler = write_and_leave}, old;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = SIG_IGN;
    if (sigaction(SIGUSR1, &action, &old) != 0 || old.sa_handler != write_and_leave)
        return 1;
    if (sigaction(SIGUSR1, &old, &action) != 0 || action.sa_handler != SIG_IGN)
        return 2;
    if (!sigsetjmp(back, 1))
        old.sa_handler(SIGUSR1);
    if (signal(SIGUSR1, SIG_DFL) != write_and_leave)
        return 3;
    return signal(SIGUSR1, SIG_DFL) != SIG_DFL;
}

/* What others may have changed of this process. */
static int changed(void)
{
    struct rlimit files;
    errno = 0;
    return getpriority(PRIO_PROCESS, 0) != 0 || getrlimit(RLIMIT_CORE, &files) != 0 || files.rlim_cur == 4096 ||
           prctl(PR_GET_TIMERSLACK) == 12345;
}

static volatile sig_atomic_t called;

static void note(int number)
{
    (void)number;
    called = 1;
}

/* Somebody sends a SIGSYS once this says so: it waits, as it is blocked. */
static int blocked(void)
{
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    if (signal(SIGSYS, note) == SIG_ERR || sigprocmask(SIG_BLOCK, &set, NULL) != 0 || write(1, "ready", 5) != 5)
        return 99;
    for (int tries = 0; tries < 5000; tries++) {
        usleep(2000);
        if (sigpending(&pending) != 0 || called || sigismember(&pending, SIGSYS))
            break;
    }
    return called || !sigismember(&pending, SIGSYS);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    by_accept = strstr(how, "accept") != NULL;
    if (strcmp(how, "read") == 0 || strcmp(how, "accept") == 0)
        return place();
    if (strcmp(how, "sleep") == 0)
        return sleeps();
    if (strncmp(how, "cancel", 6) == 0)
        return cancel();
    if (strcmp(how, "signal-stack") == 0)
        return signal_stack();
    if (strcmp(how, "changed") == 0)
        return changed();
    if (strcmp(how, "blocked") == 0)
        return blocked();
    if (strcmp(how, "coroutine") == 0)
        return coroutine();
    return strcmp(how, "chain") == 0 ? chain() : 99;
}
