/* Signals that come while a thread waits in a system call, and system calls on a stack with little room. */
#include "act.h"
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <ucontext.h>

#undef FAMILY
#define FAMILY "interrupts"

#define GUARD_BYTES 4096
#define GUARD_MARK 0x5a

static volatile int interrupted_in_libc;
static sigjmp_buf interrupted_at;
static int awaited;

static void find_place(int number, siginfo_t *info, void *context)
{
    Dl_info found = {0};
    (void)number, (void)info;
    interrupted_in_libc = dladdr((void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP], &found) &&
                          strstr(found.dli_fname, "libc.so") != NULL;
}

static void leave_call(int number)
{
    siglongjmp(interrupted_at, number);
}

static void interrupt_soon(void)
{
    const struct itimerval soon = {.it_value = {0, 3000}};
    setitimer(ITIMER_REAL, &soon, NULL);
}

static int listening(void)
{
    const struct sockaddr name = {AF_UNIX, {0}};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return bind(fd, &name, sizeof name.sa_family) == 0 && listen(fd, 1) == 0 ? fd : -1;
}

MIXED(signal_finds_place)
{
    struct sigaction action = {.sa_sigaction = find_place, .sa_flags = SA_SIGINFO};
    int ends[2];
    char byte;
    interrupted_in_libc = -1;
    sigaction(SIGALRM, &action, NULL);
    if (pipe(ends) != 0)
        return;
    interrupt_soon();
    say_result("read", read(ends[0], &byte, 1));
    say("in libc %d", interrupted_in_libc);
    close(ends[0]);
    close(ends[1]);
}

MIXED(signal_leaves_accept)
{
    const int fd = listening();
    signal(SIGALRM, leave_call);
    const int came = sigsetjmp(interrupted_at, 1);
    if (!came) {
        interrupt_soon();
        accept(fd, NULL, NULL);
    }
    say("left by %d", came);
    close(fd);
}

static void *accept_for_ever(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)accept(awaited, NULL, NULL);
}

MIXED(thread_cancelled_in_accept)
{
    pthread_t thread;
    void *result = NULL;
    awaited = listening();
    if (pthread_create(&thread, NULL, accept_for_ever, NULL) != 0)
        return;
    usleep(3000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    say("cancelled %d", result == PTHREAD_CANCELED);
    close(awaited);
}

static struct {
    unsigned char guard[GUARD_BYTES];
    unsigned char stack[1024];
} small __attribute__((aligned(4096)));
static ucontext_t outside, inside;

static void make_a_call(void)
{
    RAW(SYS_access, "/", F_OK);
}

MIXED(coroutine_small_stack)
{
    int intact = 1;
    memset(&small, GUARD_MARK, sizeof small);
    getcontext(&inside);
    inside.uc_stack.ss_sp = small.stack;
    inside.uc_stack.ss_size = sizeof small.stack;
    inside.uc_link = &outside;
    makecontext(&inside, make_a_call, 0);
    swapcontext(&outside, &inside);
    for (int i = 0; i < GUARD_BYTES; i++)
        intact &= small.guard[i] == GUARD_MARK;
    say("guard intact %d", intact);
}

#ifdef __x86_64__
/* As coroutines that switch stacks by themselves, without a system call. */
MIXED(switched_small_stack)
{
    int intact = 1;
    long result = SYS_access;
    memset(&small, GUARD_MARK, sizeof small);
    __asm__ volatile("mov %%rsp, %%rbx\n\tmov %1, %%rsp\n\tsyscall\n\tmov %%rbx, %%rsp"
                     : "+a"(result)
                     : "r"(small.stack + sizeof small.stack), "D"("/"), "S"((long)F_OK)
                     : "rbx", "rcx", "r11", "memory");
    for (int i = 0; i < GUARD_BYTES; i++)
        intact &= small.guard[i] == GUARD_MARK;
    say("access %ld, guard intact %d", result, intact);
}
#endif
