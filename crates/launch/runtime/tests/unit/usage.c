/* Tests of runtime/gate/usage.c: what an earlier run used is subtracted, and a call whose answer would tell of it is marked. It is
 * private to it what was used, so it is included; marks and notes, which are kept in calls.c, are counted here. */
#define _GNU_SOURCE
#include "runtime.h"

static void fake_make_real(int for_good);
#define hs_mappings_make_real fake_make_real
#include "gate/usage.c"
#include "unit.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int marks, limit_notes, made_real, is_build, had_children, has_past, has_old_number;

static void fake_make_real(int for_good)
{
    made_real += for_good;
}

int hs_nested_is_build(void)
{
    return is_build;
}

int hs_worker_has_past(void)
{
    return has_past;
}

int hs_worker_has_old_number(void)
{
    return has_old_number;
}

int hs_children_came_before(void)
{
    return had_children;
}

void hs_call_mark(void)
{
    marks++;
}

void hs_call_note_limit(void)
{
    limit_notes++;
}

/* As signals.c has it: a bad pointer is the caller's error. */
int hs_signals_fetch(void *to, long from, size_t size)
{
    struct iovec own = {to, size}, other = {(void *)from, size};
    return process_vm_readv(getpid(), &own, 1, &other, 1, 0) == (ssize_t)size;
}


static int64_t cpu_time(clockid_t clock)
{
    struct timespec now;
    HS_SYS(SYS_clock_gettime, clock, &now);
    return now.tv_sec * BILLION + now.tv_nsec;
}

/* As an earlier run would have. */
static void use_cpu(int64_t ns)
{
    const int64_t end = cpu_time(CLOCK_PROCESS_CPUTIME_ID) + ns;
    while (cpu_time(CLOCK_PROCESS_CPUTIME_ID) < end)
        ;
}

static void subtracts_across_seconds(void)
{
    struct timeval left = less((struct timeval){5, 100}, (struct timeval){3, 999999});
    CHECK_EQUAL(left.tv_sec, 1);
    CHECK_EQUAL(left.tv_usec, 101);
    left = less((struct timeval){5, 7}, (struct timeval){5, 7});
    CHECK_EQUAL(left.tv_sec, 0);
    CHECK_EQUAL(left.tv_usec, 0);
    CHECK_EQUAL(ticks((struct timeval){3, 129999}), 312);
}

static void clocks_begin_with_the_run(void)
{
    const clockid_t clocks[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    use_cpu(BILLION / 20);
    hs_usage_begin(HS_AT_MAIN);
    for (size_t i = 0; i < 2; i++) {
        struct timespec told;
        struct hs_system_call call = {.number = SYS_clock_gettime, .a = clocks[i], .b = (long)&told};
        CHECK_EQUAL(hs_usage_clock(&call), HS_CALL_DONE);
        CHECK_EQUAL(call.number, 0);
        const int64_t own = told.tv_sec * BILLION + told.tv_nsec;
        CHECK(own >= 0 && own <= cpu_time(clocks[i]) - BILLION / 20);
    }
    CHECK_EQUAL(marks, 0);
}

static void clocks_have_the_start(void)
{
    struct timespec told;
    struct tms ticked;
    struct hs_system_call clock = {.number = SYS_clock_gettime, .a = CLOCK_PROCESS_CPUTIME_ID, .b = (long)&told};
    struct hs_system_call times = {.number = SYS_times, .a = (long)&ticked};
    use_cpu(BILLION / 20);
    hs_usage_note_start();
    hs_usage_begin(HS_AT_MAIN);
    CHECK_EQUAL(hs_usage_clock(&clock), HS_CALL_DONE);
    CHECK(nanoseconds(told) >= start->ns && nanoseconds(told) <= cpu_time(CLOCK_PROCESS_CPUTIME_ID));
    CHECK_EQUAL(hs_usage_times(&times), HS_CALL_DONE);
    CHECK(ticked.tms_utime + ticked.tms_stime >= 4);
    spared[HS_AT_MAIN] = (struct spared){0};
}

static void clocks_have_the_way_to_the_point(void)
{
    struct timespec at_main, at_point;
    struct hs_system_call clock = {.number = SYS_clock_gettime, .a = CLOCK_PROCESS_CPUTIME_ID, .b = (long)&at_main};
    hs_usage_begin(HS_AT_MAIN);
    use_cpu(BILLION / 20);
    hs_usage_note_point();
    hs_usage_begin(HS_AT_MAIN);
    CHECK_EQUAL(hs_usage_clock(&clock), HS_CALL_DONE);
    hs_usage_begin(HS_AT_POINT);
    clock = (struct hs_system_call){.number = SYS_clock_gettime, .a = CLOCK_PROCESS_CPUTIME_ID, .b = (long)&at_point};
    CHECK_EQUAL(hs_usage_clock(&clock), HS_CALL_DONE);
    CHECK(nanoseconds(at_main) < BILLION / 20 && nanoseconds(at_point) >= BILLION / 20);
    spared[HS_AT_POINT] = (struct spared){0};
}

static void other_clocks_are_the_kernels(void)
{
    struct hs_system_call call = {.number = SYS_clock_gettime, .a = CLOCK_MONOTONIC};
    CHECK_EQUAL(hs_usage_clock(&call), HS_CALL_NATIVE);
    CHECK_EQUAL(marks, 0);
    call.a = -6;
    CHECK_EQUAL(hs_usage_clock(&call), HS_CALL_NATIVE);
    CHECK_EQUAL(marks, 1);
}

static void usage_is_that_of_the_run_and_marked(void)
{
    const int whose[] = {RUSAGE_SELF, RUSAGE_THREAD};
    use_cpu(BILLION / 20);
    hs_usage_begin(HS_AT_MAIN);
    for (int i = 0; i < 2; i++) {
        struct rusage told, all;
        struct hs_system_call call = {.number = SYS_getrusage, .a = whose[i], .b = (long)&told};
        CHECK_EQUAL(hs_usage_tell(&call), HS_CALL_DONE);
        getrusage(whose[i], &all);
        CHECK_EQUAL(call.number, 0);
        CHECK_EQUAL(marks, i + 1);
        CHECK(told.ru_utime.tv_sec >= 0 && told.ru_utime.tv_usec >= 0);
        const struct timeval own = less(all.ru_utime, told.ru_utime), system = less(all.ru_stime, told.ru_stime);
        CHECK((own.tv_sec + system.tv_sec) * 1000000 + own.tv_usec + system.tv_usec >= 50000);
        CHECK(told.ru_minflt <= all.ru_minflt - used.own.ru_minflt || i == 1);
    }
    /* In a build it is a known difference. */
    is_build = 1;
    struct rusage told;
    struct hs_system_call own = {.number = SYS_getrusage, .a = RUSAGE_SELF, .b = (long)&told};
    CHECK_EQUAL(hs_usage_tell(&own), HS_CALL_DONE);
    struct hs_system_call children = {.number = SYS_getrusage, .a = RUSAGE_CHILDREN, .b = (long)&told};
    CHECK_EQUAL(hs_usage_tell(&children), HS_CALL_DONE);
    CHECK_EQUAL(marks, 2);
}

static void children_of_earlier_runs_are_subtracted(void)
{
    struct rusage told;
    struct tms ticked;
    had_children = 1;
    used.children.ru_utime = (struct timeval){100, 0};
    used.children.ru_stime = (struct timeval){50, 20000};
    struct hs_system_call usage = {.number = SYS_getrusage, .a = RUSAGE_CHILDREN, .b = (long)&told};
    CHECK_EQUAL(hs_usage_tell(&usage), HS_CALL_DONE);
    CHECK(told.ru_utime.tv_sec < 0 && told.ru_utime.tv_sec >= -100);
    CHECK(told.ru_stime.tv_sec < 0 && told.ru_stime.tv_sec >= -51);
    CHECK_EQUAL(marks, 1);
    struct hs_system_call times = {.number = SYS_times, .a = (long)&ticked};
    CHECK_EQUAL(hs_usage_times(&times), HS_CALL_DONE);
    CHECK(ticked.tms_cutime < 0 && ticked.tms_cutime >= -10000);
    CHECK(ticked.tms_cstime < 0 && ticked.tms_cstime >= -5002);
    hs_usage_begin(HS_AT_MAIN);
    usage.number = SYS_getrusage;
    CHECK_EQUAL(hs_usage_tell(&usage), HS_CALL_DONE);
    CHECK_EQUAL(told.ru_utime.tv_sec, 0);
    had_children = 0;
}

static void ticks_are_those_of_the_run(void)
{
    struct tms told;
    struct hs_system_call call = {.number = SYS_times, .a = (long)&told};
    used.own.ru_utime = (struct timeval){100, 0};
    used.own.ru_stime = (struct timeval){50, 20000};
    CHECK_EQUAL(hs_usage_times(&call), HS_CALL_DONE);
    CHECK(told.tms_utime < 0 && told.tms_utime >= -10000);
    CHECK(told.tms_stime < 0 && told.tms_stime >= -5002);
    call = (struct hs_system_call){.number = SYS_times, .a = 0};
    CHECK_EQUAL(hs_usage_times(&call), HS_CALL_DONE);
    CHECK(call.number > 0);
}

static void bad_pointers_are_the_callers_error(void)
{
    struct hs_system_call clock = {.a = CLOCK_PROCESS_CPUTIME_ID, .b = 8}, usage = {.a = RUSAGE_SELF, .b = 8}, times = {.a = 8};
    struct hs_system_call limit = {.number = SYS_setrlimit, .a = RLIMIT_CPU, .b = 8};
    hs_usage_begin(HS_AT_MAIN);
    hs_usage_clock(&clock);
    hs_usage_tell(&usage);
    hs_usage_times(&times);
    hs_usage_limit(&limit);
    CHECK_EQUAL(clock.number, -EFAULT);
    CHECK_EQUAL(usage.number, -EFAULT);
    CHECK_EQUAL(times.number, -EFAULT);
    CHECK_EQUAL(limit.number, -EFAULT);
}

static void sleeps_until_a_cpu_time_are_marked(void)
{
    struct hs_system_call call = {.a = CLOCK_PROCESS_CPUTIME_ID, .b = 0};
    CHECK_EQUAL(hs_usage_sleep(&call), HS_CALL_NATIVE);
    call = (struct hs_system_call){.a = CLOCK_MONOTONIC, .b = TIMER_ABSTIME};
    hs_usage_sleep(&call);
    CHECK_EQUAL(marks, 0);
    call.a = CLOCK_THREAD_CPUTIME_ID;
    hs_usage_sleep(&call);
    call = (struct hs_system_call){.a = -6};
    hs_usage_sleep(&call);
    CHECK_EQUAL(marks, 2);
}

static void limits_on_cpu_time_are_shifted(void)
{
    struct rlimit wanted = {100, 200}, real, told;
    used.own_ns = 7 * BILLION + 5;
    struct hs_system_call set = {.number = SYS_setrlimit, .a = RLIMIT_CPU, .b = (long)&wanted};
    CHECK_EQUAL(hs_usage_limit(&set), HS_CALL_DONE);
    CHECK_EQUAL(set.number, 0);
    getrlimit(RLIMIT_CPU, &real);
    CHECK_EQUAL(real.rlim_cur, 107);
    CHECK_EQUAL(real.rlim_max, 207);
    CHECK_EQUAL(wanted.rlim_cur, 100);
    struct hs_system_call get = {.number = SYS_prlimit64, .a = 0, .b = RLIMIT_CPU, .c = 0, .d = (long)&told};
    CHECK_EQUAL(hs_usage_limit(&get), HS_CALL_DONE);
    CHECK_EQUAL(told.rlim_cur, 100);
    CHECK_EQUAL(told.rlim_max, 200);
    /* Of whole seconds the time of the start may be a part, with a past or without. */
    CHECK_EQUAL(marks, 1);
    CHECK_EQUAL(limit_notes, 1);
    wanted = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    shift(&wanted, 7);
    CHECK(wanted.rlim_cur == RLIM_INFINITY);
    marks = 0;
    set.number = SYS_setrlimit;
    hs_usage_limit(&set);
    CHECK_EQUAL(marks, 0);
}

static void other_limits_are_marked_unless_they_are_those_of_any_process(void)
{
    static const struct {
        int resource, marked;
    } cases[] = {{RLIMIT_CORE, 0},  {RLIMIT_FSIZE, 0}, {RLIMIT_NOFILE, 0}, {RLIMIT_NPROC, 1}, {RLIMIT_SIGPENDING, 1},
                 {RLIMIT_RTPRIO, 1}, {RLIMIT_NICE, 1},  {RLIMIT_LOCKS, 1},  {RLIMIT_RSS, 1},   {RLIMIT_MEMLOCK, 1}};
    struct rlimit some = {RLIM_INFINITY, RLIM_INFINITY};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hs_system_call get = {.number = SYS_getrlimit, .a = cases[i].resource, .b = (long)&some};
        CHECK_EQUAL(hs_usage_limit(&get), HS_CALL_NATIVE);
        CHECK_EQUAL(marks, 0);
        struct hs_system_call set = {.number = SYS_setrlimit, .a = cases[i].resource, .b = (long)&some};
        CHECK_EQUAL(hs_usage_limit(&set), HS_CALL_NATIVE);
        CHECK_EQUAL(marks, cases[i].marked);
        marks = 0;
    }
    CHECK_EQUAL(limit_notes, (long)(sizeof cases / sizeof *cases));
    /* Another process's. */
    struct hs_system_call other = {.number = SYS_prlimit64, .a = 1, .b = RLIMIT_NOFILE};
    CHECK_EQUAL(hs_usage_limit(&other), HS_CALL_NATIVE);
    CHECK_EQUAL(marks, 1);
}

/* Earlier runs may have made the stack as deep as the old limit allowed, and no deeper. */
static void a_stack_limit_is_marked_unless_it_is_raised(void)
{
    struct rlimit now, wanted;
    getrlimit(RLIMIT_STACK, &now);
    now.rlim_cur = 4 << 20;
    CHECK_EQUAL(setrlimit(RLIMIT_STACK, &now), 0);
    const struct {
        rlim_t lower, higher;
        int marked;
    } cases[] = {{0, 0, 0}, {0, 1 << 20, 0}, {1 << 20, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wanted = (struct rlimit){now.rlim_cur - cases[i].lower + cases[i].higher, now.rlim_max};
        struct hs_system_call set = {.number = SYS_setrlimit, .a = RLIMIT_STACK, .b = (long)&wanted};
        marks = 0;
        CHECK_EQUAL(hs_usage_limit(&set), HS_CALL_NATIVE);
        CHECK_EQUAL(marks, cases[i].marked);
    }
    wanted = (struct rlimit){now.rlim_cur, 8 << 20};
    struct hs_system_call hard = {.number = SYS_setrlimit, .a = RLIMIT_STACK, .b = (long)&wanted};
    marks = 0;
    hs_usage_limit(&hard);
    CHECK_EQUAL(marks, now.rlim_max != wanted.rlim_max);
}

/* Pages that are kept would count for these. */
static void a_limit_on_memory_has_the_break_made_real(void)
{
    struct rlimit some = {RLIM_INFINITY, RLIM_INFINITY};
    const int resources[] = {RLIMIT_DATA, RLIMIT_AS};
    for (int i = 0; i < 2; i++) {
        struct hs_system_call get = {.number = SYS_getrlimit, .a = resources[i], .b = (long)&some};
        CHECK_EQUAL(hs_usage_limit(&get), HS_CALL_NATIVE);
        CHECK_EQUAL(made_real, i);
        struct hs_system_call set = {.number = SYS_prlimit64, .a = 0, .b = resources[i], .c = (long)&some};
        CHECK_EQUAL(hs_usage_limit(&set), HS_CALL_NATIVE);
        CHECK_EQUAL(made_real, i + 1);
    }
}

/* Nothing keeps other processes from coming and going meanwhile, so the smallest and the largest of many counts are compared. */
static void a_process_that_waited_counts_itself(void)
{
    int least[2] = {UINT16_MAX, UINT16_MAX};
    for (int i = 0; i < 400; i++) {
        struct sysinfo told;
        struct hs_system_call call = {.number = SYS_sysinfo, .a = (long)&told};
        has_past = has_old_number = i % 2;
        CHECK_EQUAL(hs_usage_system(&call), HS_CALL_DONE);
        CHECK_EQUAL(call.number, 0);
        least[i % 2] = told.procs < least[i % 2] ? told.procs : least[i % 2];
    }
    CHECK(least[1] - least[0] >= -1 && least[1] - least[0] <= 3);
    CHECK_EQUAL(marks, 0);
    struct sysinfo told;
    struct hs_system_call call = {.number = SYS_sysinfo, .a = (long)&told};
    has_past = 1;
    has_old_number = 0;
    hs_usage_system(&call);
    CHECK_EQUAL(marks, 1);
    has_past = 0;
}

const struct unit_test tests_of_usage[] = {
    {"usage: a process that waited counts itself", a_process_that_waited_counts_itself},
    {"usage: a stack limit is marked unless it is raised", a_stack_limit_is_marked_unless_it_is_raised},
    {"usage: a limit on memory has the break made real", a_limit_on_memory_has_the_break_made_real},
    {"usage: subtracts across seconds", subtracts_across_seconds},
    {"usage: clocks begin with the run", clocks_begin_with_the_run},
    {"usage: clocks have what the start took", clocks_have_the_start},
    {"usage: clocks have what it takes to come to the point", clocks_have_the_way_to_the_point},
    {"usage: other clocks are the kernel's", other_clocks_are_the_kernels},
    {"usage: is that of the run, and marked", usage_is_that_of_the_run_and_marked},
    {"usage: ticks are those of the run", ticks_are_those_of_the_run},
    {"usage: children of earlier runs are subtracted", children_of_earlier_runs_are_subtracted},
    {"usage: bad pointers are the caller's error", bad_pointers_are_the_callers_error},
    {"usage: sleeps until a CPU time are marked", sleeps_until_a_cpu_time_are_marked},
    {"usage: limits on CPU time are shifted", limits_on_cpu_time_are_shifted},
    {"usage: other limits are marked unless they are those of any process", other_limits_are_marked_unless_they_are_those_of_any_process},
    {NULL, NULL},
};
