/* A tool that looks at its process number, in the way of its first argument. Prints the number, and then what must be the same in each
 * process.
 *
 *     answers   what libc and the kernel know of the number agrees, and the state around it is that of a new process
 *     keeps     what it has made of the number before it looked at its arguments
 *     begins    a thread is left that has just been asked for
 *     asks      many threads ask for the limits of their stacks at a time
 *     sometimes looks at the number only if there is another argument
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int came_from;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    came_from = info->si_pid;
}

static void *tell_number(void *to)
{
    *(int *)to = (int)syscall(SYS_gettid);
    return NULL;
}

static void *wait_for_ever(void *unused)
{
    prctl(PR_SET_NAME, "waits");
    for (;;)
        pause();
    return unused;
}

static void *ask(void *unused)
{
    pthread_attr_t attributes;
    for (int i = 0; i < 20; i++)
        if (pthread_getattr_np(pthread_self(), &attributes) == 0)
            pthread_attr_destroy(&attributes);
    return unused;
}

/* The number is in the owner's place of a lock of libc's: that of the checking kind. */
static int owner_of(pthread_mutex_t *lock)
{
    return lock->__data.__owner;
}

static void say(const char *what, int is_right)
{
    printf("%s %s\n", what, is_right ? "right" : "WRONG");
}

static void check_all(int number)
{
    pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_t thread;
    int of_thread = 0, *cleared = NULL, status = 0;
    stack_t stack;
    sigset_t mask, pending;
    clockid_t clock;
    pthread_mutex_lock(&lock);
    say("owner", owner_of(&lock) == number && pthread_mutex_lock(&lock) == EDEADLK);
    say("thread", (int)syscall(SYS_gettid) == number);
    say("cleared", prctl(PR_GET_TID_ADDRESS, &cleared) == 0 && cleared && (*cleared == number || *cleared == 0));
    say("clock", pthread_getcpuclockid(pthread_self(), &clock) == 0 && clock == (clockid_t)((~(unsigned)number << 3) | 6));
    const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    say("raise", came_from == number);
    came_from = 0;
    kill(number, SIGUSR1);
    say("kill", came_from == number);
    say("stack", sigaltstack(NULL, &stack) == 0 && stack.ss_flags == SS_DISABLE);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigpending(&pending);
    say("mask", sigisemptyset(&mask) && sigisemptyset(&pending));
    say("processor", sched_getcpu() >= 0);
    pthread_create(&thread, NULL, tell_number, &of_thread);
    pthread_join(thread, NULL);
    say("threads", of_thread != number && of_thread != 0);
    const pid_t child = fork();
    if (child == 0)
        _exit(getppid() == number && getpid() != number ? 7 : 8);
    say("child", waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    say("session", getsid(0) == getsid(getppid()));
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    say("used", used.tv_sec < 5);
}

int main(int argc, char **argv)
{
    static pthread_mutex_t early = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_mutex_lock(&early);
    const int kept = owner_of(&early), parity = owner_of(&early) % 2;
    pthread_mutex_unlock(&early);
    const char *const how = argc > 1 ? argv[1] : "";
    pthread_t thread;
    if (strcmp(how, "sometimes") == 0 && argc == 2) {
        puts("number 0");
        return 0;
    }
    if (strcmp(how, "inode") == 0) {
        /* The kernel has one for each process. */
        struct stat file;
        const int fd = open("/proc/self/mountinfo", O_RDONLY);
        if (fd < 0 || fstat(fd, &file) != 0)
            return 9;
        printf("number %d\n", (int)file.st_ino);
        return 0;
    }
#ifdef __x86_64__
    if (strcmp(how, "raises") == 0) {
        /* libc leaves it in a register. */
        int left;
        __asm__ volatile("mov %%rsp, %%rbx\n\tand $-16, %%rsp\n\tcall *%1\n\tmov %%rbx, %%rsp"
                         : "=D"(left)
                         : "r"(raise), "0"(SIGURG)
                         : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
        printf("number %d\n", left);
        return 0;
    }
#endif
    const int number = (int)getpid();
    printf("number %d\n", number);
    fflush(stdout);
    if (strcmp(how, "begins") == 0)
        pthread_create(&thread, NULL, wait_for_ever, NULL);
    else if (strcmp(how, "answers") == 0)
        check_all(number);
    else if (strcmp(how, "keeps") == 0) {
        say("kept", kept == number);
        say("parity", parity == number % 2);
    } else if (strcmp(how, "asks") == 0) {
        pthread_t all[8];
        /* A heap for each thread is mapped where there may be something of the runtime's, which is a doubt of its own. */
        mallopt(M_ARENA_MAX, 1);
        for (int i = 0; i < 8; i++)
            pthread_create(&all[i], NULL, ask, NULL);
        ask(NULL);
        for (int i = 0; i < 8; i++)
            pthread_join(all[i], NULL);
    }
    return 0;
}
