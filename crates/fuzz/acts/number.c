/* The process number, and what libc and the kernel keep beside it. A run that looks at its number begins in a process that has taken over
 * the memory of another. */
#include "act.h"
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#undef FAMILY
#define FAMILY "number"

/* Where the kernel tells this thread on which processor it is; NULL if libc does not ask for that. */
static const volatile unsigned *told_processor(void)
{
#ifdef RSEQ_SIG
    const struct rseq *area = (const void *)((char *)__builtin_thread_pointer() + __rseq_offset);
    return __rseq_size ? &area->cpu_id : NULL;
#else
    return NULL;
#endif
}

OBSERVE(number_new)
{
    say("process %d", is_new("number", (unsigned long)getpid()));
}

OBSERVE(number_new_by_call)
{
    SAY3("process %ld thread %ld same %ld", is_new("number-by-call", (unsigned long)RAW(SYS_getpid)),
         is_new("thread-by-call", (unsigned long)RAW(SYS_gettid)), RAW(SYS_getpid) == RAW(SYS_gettid));
}

OBSERVE(number_of_file)
{
    char path[64];
    snprintf(path, sizeof path, "../notes/scratch-%d", (int)getpid());
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    say("made %d", fd >= 0);
    close(fd);
}

OBSERVE(number_of_owner)
{
    pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_mutex_lock(&lock);
    SAY2("owner %ld again %ld", lock.__data.__owner == (int)RAW(SYS_gettid), pthread_mutex_lock(&lock));
    pthread_mutex_unlock(&lock);
}

OBSERVE(number_of_clock)
{
    clockid_t clock = 0;
    const long failed = pthread_getcpuclockid(pthread_self(), &clock);
    SAY2("failed %ld own %ld", failed, clock == (clockid_t)((~(unsigned)RAW(SYS_gettid) << 3) | 6));
}

OBSERVE(number_at_end)
{
    int *cleared = NULL;
    const long failed = prctl(PR_GET_TID_ADDRESS, &cleared, 0, 0, 0);
    SAY3("failed %ld address %ld number %ld", failed, cleared != NULL,
         cleared && (*cleared == (int)RAW(SYS_gettid) || *cleared == 0));
}

OBSERVE(number_of_raise)
{
    const struct timespec at_once = {0, 0};
    sigset_t set, old;
    siginfo_t info = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, &old);
    raise(SIGUSR2);
    SAY2("came %ld own %ld", sigtimedwait(&set, &info, &at_once), info.si_pid == getpid());
    sigprocmask(SIG_SETMASK, &old, NULL);
}

OBSERVE(number_of_processor)
{
    unsigned here = 0;
    int is_same = 0;
    const volatile unsigned *told = told_processor();
    /* It may be moved in between. */
    for (int i = 0; i < 100 && !is_same; i++)
        is_same = RAW(SYS_getcpu, &here, 0, 0) == 0 && (!told || *told == here) && sched_getcpu() >= 0;
    SAY2("told %ld same %ld", told != NULL, is_same);
}

OBSERVE(number_and_state)
{
    stack_t stack = {0};
    sigset_t mask, pending;
    sigaltstack(NULL, &stack);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigpending(&pending);
    SAY4("stack %ld mask %ld pending %ld shown %ld", stack.ss_flags, sigisemptyset(&mask), sigisemptyset(&pending), getpid() > 0);
}
