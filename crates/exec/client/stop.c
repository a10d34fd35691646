/* Stops this process as its job has stopped, and misses no SIGCONT.
 *
 * The kernel forgets a SIGCONT that is pending, blocked, when it sends a signal that stops. Whoever sent it does not send another one. So
 * SIGCONT is not blocked here; a handler takes it. Where that finds this process about to stop, it goes on behind the call. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "client.h"
#include "system.h"

#define SIGNAL_BYTES 8
#define SA_WITH_RESTORER 0x04000000

static volatile int was_continued;
extern const char stop_begin[], stop_end[];

#if defined(__x86_64__)
#define PLACE(context) (context)->uc_mcontext.gregs[16 /* REG_RIP */]
void stop_restore(void);
__asm__("stop_restore:\n\tmov $15, %eax\n\tsyscall\n");
static const uint64_t restorer_flag = SA_WITH_RESTORER;
static uint64_t restorer(void) { return (uint64_t)stop_restore; }
static __attribute__((noinline, noclone)) void kill_unless_continued(long pid, long number)
{
    long call = __NR_kill;
    __asm__ volatile("stop_begin:\n\tcmpl $0, %1\n\tjne stop_end\n\tsyscall\nstop_end:"
                     : "+a"(call)
                     : "m"(was_continued), "D"(pid), "S"(number)
                     : "rcx", "r11", "memory", "cc");
}
#else
#define PLACE(context) (context)->uc_mcontext.pc
static const uint64_t restorer_flag = 0;
static uint64_t restorer(void) { return 0; }
static __attribute__((noinline, noclone)) void kill_unless_continued(long pid, long number)
{
    register long x8 __asm__("x8") = __NR_kill;
    register long x0 __asm__("x0") = pid;
    register long x1 __asm__("x1") = number;
    __asm__ volatile("stop_begin:\n\tldr w9, %1\n\tcbnz w9, stop_end\n\tsvc 0\nstop_end:"
                     : "+r"(x0)
                     : "m"(was_continued), "r"(x8), "r"(x1)
                     : "x9", "memory");
}
#endif

static void take_continue(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    ucontext_t *at = context;
    const uint64_t place = (uint64_t)PLACE(at);
    was_continued = 1;
    if (place >= (uint64_t)stop_begin && place < (uint64_t)stop_end)
        PLACE(at) = (long)stop_end;
}

static void set_action(int number, const struct sys_action *action, struct sys_action *before)
{
    sys(__NR_rt_sigaction, number, action, before, SIGNAL_BYTES);
}

void stop_by(int number)
{
    const struct sys_action none = {0, 0, 0, 0};
    const struct sys_action take = {(uint64_t)take_continue, SA_SIGINFO | restorer_flag, restorer(), 0};
    struct sys_action before, before_continue;
    const uint64_t both = bit(number) | bit(SIGCONT);
    was_continued = 0;
    set_action(SIGCONT, &take, &before_continue);
    if (number != SIGSTOP)
        set_action(number, &none, &before);
    sys(__NR_rt_sigprocmask, SIG_UNBLOCK, &both, NULL, SIGNAL_BYTES);
    kill_unless_continued(sys(__NR_getpid), number);
    sys(__NR_rt_sigprocmask, SIG_BLOCK, &both, NULL, SIGNAL_BYTES);
    if (number != SIGSTOP)
        set_action(number, &before, NULL);
    set_action(SIGCONT, &before_continue, NULL);
}

static void take_nothing(int number)
{
    (void)number;
}

/* Where this process's group is orphaned, the system ignores the default action of SIGTSTP. No call tells whether it is. A child finds
 * out. */
int stops_nobody(void)
{
    const struct sys_action none = {0, 0, 0, 0};
    /* The child's stop sends no SIGCHLD. An action that is none would discard one that is pending. */
    const struct sys_action quiet = {(uint64_t)take_nothing, SA_NOCLDSTOP | restorer_flag, restorer(), 0};
    const uint64_t tstp = bit(SIGTSTP);
    const long parent = sys(__NR_getpid);
    int status = 0;
    set_action(SIGCHLD, &quiet, NULL);
    /* Its end sends no signal. */
    long child = sys6(__NR_clone, 0, 0, 0, 0, 0, 0);
    if (child == 0) {
        uint64_t pending = 0;
        sys(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);
        if (sys(__NR_getppid) != parent)
            leave(1);
        set_action(SIGTSTP, &none, NULL);
        sys(__NR_kill, sys(__NR_getpid), SIGTSTP);
        sys(__NR_rt_sigprocmask, SIG_UNBLOCK, &tstp, NULL, SIGNAL_BYTES);
        /* Whoever has continued the group continues this process's parent, too. */
        sys(__NR_rt_sigpending, &pending, SIGNAL_BYTES);
        leave(pending & bit(SIGCONT) ? 1 : 0);
    }
    if (child < 0)
        return 0;
    sys(__NR_wait4, child, &status, WUNTRACED | __WALL, NULL);
    if (!WIFSTOPPED(status))
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    sys(__NR_kill, child, SIGKILL);
    sys(__NR_wait4, child, NULL, __WALL, NULL);
    return 0;
}
