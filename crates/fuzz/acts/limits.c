/* Resource limits: what they are, and what they do. */
#include "act.h"
#include <setjmp.h>
#include <sys/resource.h>
#include <time.h>

#undef FAMILY
#define FAMILY "limits"

static void lower_soft(const char *name, __rlimit_resource_t which, rlim_t to)
{
    struct rlimit limit;
    if (getrlimit(which, &limit) != 0)
        return say_result(name, -1);
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || to < limit.rlim_max ? to : limit.rlim_max;
    say_result(name, setrlimit(which, &limit));
}

DISTURB(limit_files)
{
    lower_soft("files", RLIMIT_NOFILE, 70);
}

DISTURB(limit_stack)
{
    lower_soft("stack", RLIMIT_STACK, 1 << 20);
}

DISTURB(limit_stack_raised)
{
    lower_soft("stack", RLIMIT_STACK, 64 << 20);
}

DISTURB(limit_file_size)
{
    lower_soft("file size", RLIMIT_FSIZE, 50000);
}

DISTURB(limit_core)
{
    lower_soft("core", RLIMIT_CORE, 0);
}

DISTURB(limit_memory)
{
    lower_soft("memory", RLIMIT_AS, 1ul << 30);
}

DISTURB(limit_data)
{
    lower_soft("data", RLIMIT_DATA, 1ul << 28);
}

DISTURB(limit_others)
{
    lower_soft("pending", RLIMIT_SIGPENDING, 20);
    lower_soft("locked", RLIMIT_MEMLOCK, 4096);
    lower_soft("queues", RLIMIT_MSGQUEUE, 1000);
    lower_soft("locks", RLIMIT_LOCKS, 10);
    lower_soft("rss", RLIMIT_RSS, 1 << 26);
}

DISTURB(limit_hard)
{
    struct rlimit limit = {100, 100};
    say_result("hard", setrlimit(RLIMIT_NOFILE, &limit));
}

DISTURB(limit_hard_by_call)
{
    struct rlimit limit = {1 << 20, 1 << 25};
    say_result("hard", RAW(SYS_prlimit64, 0, RLIMIT_STACK, &limit, 0));
}

DISTURB(limit_by_child)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 77;
    pid_t child = fork();
    if (child == 0)
        _exit(prlimit(getppid(), RLIMIT_NOFILE, &limit, NULL) != 0);
    say_child(child);
}

OBSERVE(limits_show)
{
    for (int which = 0; which < RLIM_NLIMITS; which++) {
        struct rlimit limit = {0};
        RAW(SYS_prlimit64, 0, which, 0, &limit);
        say("%d: %ld %ld", which, (long)limit.rlim_cur, (long)limit.rlim_max);
    }
}

DISTURB(limit_cpu)
{
    lower_soft("cpu", RLIMIT_CPU, 1000);
}

/* Whoever has used more than the limit already is told so at once. */
DISTURB(limit_cpu_second)
{
    lower_soft("cpu", RLIMIT_CPU, 1);
}

/* Takes a third of a second of its own time, which no run here comes near to otherwise. */
SELDOM(limit_cpu_used)
{
    struct timespec now = {0}, end;
    lower_soft("cpu", RLIMIT_CPU, 1);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    end.tv_nsec += 330000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec))
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    say("not ended");
}

MIXED(limit_file_size_hit)
{
    struct rlimit was, small;
    getrlimit(RLIMIT_FSIZE, &was);
    small = was;
    small.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    int fd = open("too-large", O_CREAT | O_WRONLY, 0644);
    setrlimit(RLIMIT_FSIZE, &small);
    char block[1500] = {0};
    ssize_t first = write(fd, block, sizeof block), second = write(fd, block, sizeof block);
    int failed = errno;
    setrlimit(RLIMIT_FSIZE, &was);
    say("first %zd second %zd error %d", first, second, failed);
    signal(SIGXFSZ, SIG_DFL);
    close(fd);
}

MIXED(limit_memory_hit)
{
    struct rlimit was, small;
    getrlimit(RLIMIT_AS, &was);
    small = was;
    small.rlim_cur = 1ul << 30;
    setrlimit(RLIMIT_AS, &small);
    void *block = malloc(2ul << 30);
    say("got %d error %d", block != NULL, errno);
    setrlimit(RLIMIT_AS, &was);
}

MIXED(limit_data_hit)
{
    struct rlimit was, small;
    getrlimit(RLIMIT_DATA, &was);
    small = was;
    small.rlim_cur = 64 << 20;
    setrlimit(RLIMIT_DATA, &small);
    void *block = sbrk(128 << 20);
    say("moved %d", block != (void *)-1);
    setrlimit(RLIMIT_DATA, &was);
}

OBSERVE(limit_sysconf)
{
    SAY2("files %ld children %ld", sysconf(_SC_OPEN_MAX) > 30, sysconf(_SC_CHILD_MAX) > 10);
    SAY2("processors %ld %ld", sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_NPROCESSORS_CONF));
}

static __attribute__((noinline)) int deeper(int pages)
{
    volatile char frame[4096];
    frame[0] = frame[4095] = (char)pages;
    return pages > 0 ? deeper(pages - 1) + frame[0] : frame[4095];
}

/* What the stack once was, it stays: the limit is looked at when it grows. */
DISTURB(limit_stack_deep)
{
    say("deep %d", deeper(1500) >= -1);
}

static sigjmp_buf out_of_stack;

static void leave_stack(int number)
{
    siglongjmp(out_of_stack, number);
}

MIXED(limit_stack_hit)
{
    static char room[65536];
    const stack_t own = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = leave_stack, .sa_flags = SA_ONSTACK}, was_action;
    struct rlimit was, small;
    stack_t was_stack;
    getrlimit(RLIMIT_STACK, &was);
    small = was;
    small.rlim_cur = 1 << 20;
    sigaltstack(&own, &was_stack);
    sigaction(SIGSEGV, &action, &was_action);
    say_result("limit", setrlimit(RLIMIT_STACK, &small));
    if (!sigsetjmp(out_of_stack, 1))
        say("reached %d", deeper(600) >= -1);
    else
        say("overflow");
    setrlimit(RLIMIT_STACK, &was);
    sigaction(SIGSEGV, &was_action, NULL);
    sigaltstack(&was_stack, NULL);
}

END(limit_stack_ends)
{
    struct rlimit small;
    getrlimit(RLIMIT_STACK, &small);
    small.rlim_cur = 512 << 10;
    say_result("limit", RAW(SYS_setrlimit, RLIMIT_STACK, &small));
    say("survived %d", deeper(1000) >= -1);
}
