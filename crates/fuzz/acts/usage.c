/* What the kernel counts: CPU time, peak and resident memory, bytes read and written. A fresh process has used little of each.
 *
 * Figures differ between cold processes, so only whether they are small is shown. What the acts use up is far above the limits,
 * and what all others use far below. */
#include "act.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#undef FAMILY
#define FAMILY "usage"

#define MEGABYTE (1l << 20)
/* What counts as little, and what the acts use. */
#define LITTLE_NS 250000000l
#define MUCH_NS 320000000l
#define LITTLE_PEAK_KB (64l << 10)
#define MUCH_MEMORY (80 * MEGABYTE)
#define LITTLE_RESIDENT_KB (16l << 10)
#define LITTLE_OUTPUT (4 * MEGABYTE)

static long nanoseconds(struct timespec time)
{
    return time.tv_sec * 1000000000l + time.tv_nsec;
}

static long clock_now(clockid_t clock)
{
    struct timespec now = {0};
    if (clock_gettime(clock, &now) != 0)
        return -1;
    return nanoseconds(now);
}

static const char *amount(long value, long limit)
{
    return value < 0 ? "less than nothing" : value < limit ? "little" : "much";
}

/* Once in a run is enough, and takes long enough. */
DISTURB(use_time)
{
    static int used;
    const long begun = clock_now(CLOCK_THREAD_CPUTIME_ID);
    while (!used && clock_now(CLOCK_THREAD_CPUTIME_ID) - begun < MUCH_NS)
        for (volatile int i = 0; i < 100000; i++)
            ;
    used = 1;
    say("used");
}

/* Once in a run, too: page faults cost CPU time, which other acts look at. */
static void touch_much(void)
{
    static int used;
    if (used)
        return say("touched");
    used = 1;
    char *block = mmap(NULL, MUCH_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (block == MAP_FAILED)
        return say("none");
    say_result("unmap", munmap(block, MUCH_MEMORY));
}

DISTURB(use_memory)
{
    touch_much();
}

DISTURB(use_memory_in_child)
{
    pid_t child = fork();
    if (child == 0) {
        touch_much();
        _exit(0);
    }
    say_child(child);
}

DISTURB(use_heap)
{
    char *block = sbrk(24 * MEGABYTE);
    if (block == (void *)-1)
        return say("none");
    memset(block, 1, 24 * MEGABYTE);
    say("given back %d", sbrk(-24 * MEGABYTE) != (void *)-1);
}

DISTURB(use_blocks)
{
    for (int i = 0; i < 4; i++) {
        char *block = mmap(NULL, 7 * MEGABYTE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
            return say("none");
        memset(block, 1, 7 * MEGABYTE);
        munmap(block, 7 * MEGABYTE);
    }
    say("used");
}

DISTURB(use_output)
{
    static char block[8 * MEGABYTE];
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    say_result("wrote", write(fd, block, sizeof block));
    close(fd);
}

OBSERVE(used_time)
{
    struct rusage all = {0}, thread = {0};
    getrusage(RUSAGE_SELF, &all);
    getrusage(RUSAGE_THREAD, &thread);
    const long of_all = (all.ru_utime.tv_sec + all.ru_stime.tv_sec) * 1000000 + all.ru_utime.tv_usec + all.ru_stime.tv_usec;
    const long of_thread =
        (thread.ru_utime.tv_sec + thread.ru_stime.tv_sec) * 1000000 + thread.ru_utime.tv_usec + thread.ru_stime.tv_usec;
    say("process %s thread %s", amount(of_all * 1000, LITTLE_NS), amount(of_thread * 1000, LITTLE_NS));
    say("faults %d %d", all.ru_minflt >= 0 && all.ru_majflt >= 0, thread.ru_minflt >= 0 && thread.ru_majflt >= 0);
}

OBSERVE(used_time_by_clock)
{
    say("process %s", amount(clock_now(CLOCK_PROCESS_CPUTIME_ID), LITTLE_NS));
    say("thread %s", amount(clock_now(CLOCK_THREAD_CPUTIME_ID), LITTLE_NS));
    say("clock %s", amount(clock() * (1000000000l / CLOCKS_PER_SEC), LITTLE_NS));
}

OBSERVE(used_time_by_ticks)
{
    struct tms now = {0};
    times(&now);
    const long tick = 1000000000l / sysconf(_SC_CLK_TCK);
    say("%s children %s", amount((now.tms_utime + now.tms_stime) * tick, LITTLE_NS),
        amount((now.tms_cutime + now.tms_cstime) * tick, LITTLE_NS));
}

/* The clocks that have a number, which holds that of the process or thread. */
OBSERVE(used_time_by_number)
{
    clockid_t process = 0, thread = 0;
    int failed = clock_getcpuclockid(0, &process), other = pthread_getcpuclockid(pthread_self(), &thread);
    say("%d %d", failed, other);
    say("process %s", amount(clock_now(process), LITTLE_NS));
    say("thread %s", amount(clock_now(thread), LITTLE_NS));
}

OBSERVE(used_time_by_own_number)
{
    clockid_t process = 0;
    say("%d", clock_getcpuclockid(getpid(), &process));
    say("process %s", amount(clock_now(process), LITTLE_NS));
}

/* As the kernel builds the number: of the process 0, which is the caller's, its three clocks. */
OBSERVE(used_time_by_number_by_call)
{
    for (long which = 0; which < 3; which++) {
        struct timespec process = {-1, 0}, thread = {-1, 0};
        const long first = RAW(SYS_clock_gettime, ~7l | which, &process);
        const long second = RAW(SYS_clock_gettime, ~7l | 4 | which, &thread);
        say("%ld %s", first, amount(nanoseconds(process), LITTLE_NS));
        say("%ld %s", second, amount(nanoseconds(thread), LITTLE_NS));
    }
}

static void *tell_own_time(void *argument)
{
    struct rusage usage = {0};
    (void)argument;
    getrusage(RUSAGE_THREAD, &usage);
    say("thread %s", amount(clock_now(CLOCK_THREAD_CPUTIME_ID), LITTLE_NS));
    say("thread %s faults %d", amount((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000l, LITTLE_NS),
        usage.ru_minflt >= 0 && usage.ru_nvcsw >= 0 && usage.ru_nivcsw >= 0);
    return NULL;
}

OBSERVE(used_time_in_thread)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, tell_own_time, NULL) == 0)
        pthread_join(thread, NULL);
}

OBSERVE(used_time_in_child)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rusage usage = {0};
        getrusage(RUSAGE_SELF, &usage);
        say("process %s", amount(clock_now(CLOCK_PROCESS_CPUTIME_ID), LITTLE_NS));
        say("usage %s", amount((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000l, LITTLE_NS));
        _exit(0);
    }
    say_child(child);
}

OBSERVE(used_memory)
{
    struct rusage all = {0};
    getrusage(RUSAGE_SELF, &all);
    say("peak %s", amount(all.ru_maxrss, LITTLE_PEAK_KB));
}

OBSERVE(used_memory_by_call)
{
    struct rusage all = {0};
    RAW(SYS_getrusage, RUSAGE_SELF, &all);
    say("peak %s", amount(all.ru_maxrss, LITTLE_PEAK_KB));
    RAW(SYS_getrusage, RUSAGE_THREAD, &all);
    say("peak %s", amount(all.ru_maxrss, LITTLE_PEAK_KB));
}

OBSERVE(used_memory_of_children)
{
    struct rusage all = {0};
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    say_child(child);
    getrusage(RUSAGE_CHILDREN, &all);
    say("peak %s", amount(all.ru_maxrss, LITTLE_PEAK_KB));
}

OBSERVE(used_memory_of_child)
{
    struct rusage used = {0};
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    say("waited %d", wait4(child, NULL, 0, &used) == child);
    say("peak %s", amount(used.ru_maxrss, LITTLE_PEAK_KB));
}

static long number_after(const char *file, const char *word)
{
    static char text[16384];
    if (slurp(file, text, sizeof text) <= 0)
        return -1;
    const char *at = strstr(text, word);
    return at ? atol(at + strlen(word)) : -1;
}

OBSERVE(used_memory_by_status)
{
    say("peak %s", amount(number_after("/proc/self/status", "VmHWM:"), LITTLE_PEAK_KB));
    say("resident %s", amount(number_after("/proc/self/status", "VmRSS:"), LITTLE_RESIDENT_KB));
    say("swapped %s", amount(number_after("/proc/self/status", "VmSwap:"), LITTLE_RESIDENT_KB));
}

OBSERVE(used_memory_by_statm)
{
    char text[256] = "";
    long size = 0, resident = -1;
    slurp("/proc/self/statm", text, sizeof text);
    sscanf(text, "%ld %ld", &size, &resident);
    say("resident %s", amount(resident * 4, LITTLE_RESIDENT_KB));
}

OBSERVE(used_memory_by_thread_statm)
{
    char text[256] = "";
    long size = 0, resident = -1;
    slurp("/proc/thread-self/statm", text, sizeof text);
    sscanf(text, "%ld %ld", &size, &resident);
    say("resident %s", amount(resident * 4, LITTLE_RESIDENT_KB));
}

OBSERVE(used_memory_by_rollup)
{
    say("resident %s", amount(number_after("/proc/self/smaps_rollup", "Rss:"), LITTLE_RESIDENT_KB));
}

OBSERVE(used_output)
{
    say("written %s", amount(number_after("/proc/self/io", "wchar:"), LITTLE_OUTPUT));
    say("read %s", amount(number_after("/proc/self/io", "rchar:"), LITTLE_OUTPUT));
}

/* Fields 14 and 15 of /proc/self/stat are CPU time in ticks, 24 is resident pages; the name in field 2 may have blanks. */
OBSERVE(used_by_stat)
{
    char text[1024];
    long fields[60] = {0};
    int count = 3;
    if (slurp("/proc/self/stat", text, sizeof text) <= 0)
        return say("none");
    char *rest = strrchr(text, ')') + 4;
    for (char *word; count < 60 && (word = strsep(&rest, " "));)
        fields[++count] = atol(word);
    const long tick = 1000000000l / sysconf(_SC_CLK_TCK);
    say("time %s children %s", amount((fields[14] + fields[15]) * tick, LITTLE_NS),
        amount((fields[16] + fields[17]) * tick, LITTLE_NS));
    say("resident %s", amount(fields[24] * 4, LITTLE_RESIDENT_KB));
}

static volatile int burns;
/* From here on little more is burnt: whoever waits may be woken late, and other acts tell whether much was used. */
static volatile long enough;

static void *burn(void *argument)
{
    (void)argument;
    while (burns)
        if (clock_now(CLOCK_PROCESS_CPUTIME_ID) > enough)
            usleep(500);
    return NULL;
}

/* Sleeps until the process has used 8 ms more. Once in a run, since a few times more are what counts as much. */
static void sleep_on(clockid_t clock)
{
    static int slept_before;
    pthread_t thread;
    if (slept_before++)
        return say("slept");
    const long begun = clock_now(clock), wanted = begun + 8000000;
    const struct timespec until = {wanted / 1000000000, wanted % 1000000000};
    burns = 1;
    enough = clock_now(CLOCK_PROCESS_CPUTIME_ID) + 12000000;
    if (pthread_create(&thread, NULL, burn, NULL) != 0)
        return say("no thread");
    const int failed = clock_nanosleep(clock, TIMER_ABSTIME, &until, NULL);
    const long slept = clock_now(clock) - begun;
    burns = 0;
    pthread_join(thread, NULL);
    say("slept %d, %s", failed, slept < 7000000 ? "too short" : slept > 1000000000 ? "too long" : "as asked");
}

MIXED(sleep_until_used)
{
    sleep_on(CLOCK_PROCESS_CPUTIME_ID);
}

MIXED(sleep_until_used_by_number)
{
    clockid_t clock = 0;
    say("%d", clock_getcpuclockid(0, &clock));
    sleep_on(clock);
}

/* A timer that expires at a time of the process's clock. A virtual machine that is halted meanwhile counts as use. */
MIXED(timer_until_used)
{
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    const long begun = clock_now(CLOCK_PROCESS_CPUTIME_ID), wanted = begun + 3000000000l;
    struct itimerspec then = {.it_value = {wanted / 1000000000, wanted % 1000000000}}, left = {0};
    timer_t timer = 0;
    if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) != 0)
        return say_result("timer", -1);
    say_result("set", timer_settime(timer, TIMER_ABSTIME, &then, NULL));
    timer_gettime(timer, &left);
    const long ns = nanoseconds(left.it_value), least = wanted - clock_now(CLOCK_PROCESS_CPUTIME_ID) - 10000000;
    say("left %s", ns < least ? "too little" : ns > 3000000000l ? "too much" : "as asked");
    timer_delete(timer);
}

OBSERVE(clock_set_refused)
{
    const struct timespec zero = {0, 0};
    say_result("process", clock_settime(CLOCK_PROCESS_CPUTIME_ID, &zero));
    say_result("thread", RAW(SYS_clock_settime, CLOCK_THREAD_CPUTIME_ID, &zero));
}

/* Another program has the CPU time of its process. */
END(end_as_other_with_usage)
{
    char *arguments[] = {"acts", "used_time", "used_time_by_clock", "used_time_by_ticks", NULL};
    fflush(NULL);
    execv(own_path, arguments);
}

/* In ticks of ten milliseconds. */
OBSERVE(used_ticks_few)
{
    struct tms now;
    times(&now);
    say("many %d", now.tms_utime + now.tms_stime > 300);
}

DISTURB(limit_time_finite)
{
    say("%d", setrlimit(RLIMIT_CPU, &(struct rlimit){100, RLIM_INFINITY}));
}
