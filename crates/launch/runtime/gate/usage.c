/* Times and limits as in a process that has run nothing before: the use of a worker's earlier runs is subtracted, and that of the start
 * up to main, which a fork and a worker are spared, is added as the zygote had it. So is that of main up to a deferred snapshot.
 *
 * An answer that cannot be corrected, such as the peak of memory, makes the run doubtful (hs_call_mark).
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <errno.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <time.h>

#include "runtime.h"

#if HS_RESETS

#define BILLION 1000000000l

/* The use of earlier runs, as it was when this one began. Not written in a run. */
static struct {
    struct rusage own, thread, children;
    int64_t own_ns, thread_ns;
    void *first; /* the first thread's pointer */
} used;
/* What a run is spared: the zygote's use when it came to main, or what it takes to come to the deferred snapshot. */
static struct spared {
    struct timeval user, system;
    int64_t ns;
} spared[HS_LEVELS];
static const struct spared *start = &spared[HS_AT_MAIN];

static int is_first_thread(void)
{
    return __builtin_thread_pointer() == used.first;
}

static struct timeval more(struct timeval time, struct timeval added)
{
    struct timeval sum = {time.tv_sec + added.tv_sec, time.tv_usec + added.tv_usec};
    if (sum.tv_usec >= 1000000) {
        sum.tv_usec -= 1000000;
        sum.tv_sec++;
    }
    return sum;
}

static struct timeval less(struct timeval now, struct timeval before)
{
    struct timeval left = {now.tv_sec - before.tv_sec, now.tv_usec - before.tv_usec};
    if (left.tv_usec < 0) {
        left.tv_usec += 1000000;
        left.tv_sec--;
    }
    return left;
}

/* getrusage. The peak of memory is of all runs, and there is no other to tell. */
enum hs_call_outcome hs_usage_tell(struct hs_system_call *call)
{
    struct rusage *usage = (struct rusage *)call->b;
    const int whose = (int)call->a;
    const int is_children = whose == RUSAGE_CHILDREN;
    /* In a build the figures of a job are its own and its zygote's, a known difference. The peak of children is that of all runs. */
    if (is_children ? hs_children_came_before() : !hs_nested_is_build())
        hs_call_mark();
    if (whose == RUSAGE_THREAD && !is_first_thread())
        return HS_CALL_NATIVE;
    const struct rusage *before = is_children ? &used.children : whose == RUSAGE_THREAD ? &used.thread : &used.own;
    const long result = HS_SYS(SYS_getrusage, whose, usage);
    if (result != 0)
        return hs_call_done(call, result);
    usage->ru_utime = less(is_children ? usage->ru_utime : more(usage->ru_utime, start->user), before->ru_utime);
    usage->ru_stime = less(is_children ? usage->ru_stime : more(usage->ru_stime, start->system), before->ru_stime);
    usage->ru_minflt -= before->ru_minflt;
    usage->ru_majflt -= before->ru_majflt;
    usage->ru_inblock -= before->ru_inblock;
    usage->ru_oublock -= before->ru_oublock;
    usage->ru_nvcsw -= before->ru_nvcsw;
    usage->ru_nivcsw -= before->ru_nivcsw;
    return hs_call_done(call, 0);
}

static long ticks(struct timeval time)
{
    return time.tv_sec * 100 + time.tv_usec / 10000;
}

/* The difference of two numbers of ticks may be one more than the ticks of the difference. */
enum hs_call_outcome hs_usage_times(struct hs_system_call *call)
{
    struct tms *out = (struct tms *)call->a;
    const long result = HS_SYS(SYS_times, out);
    struct rusage own, children;
    if (out && result >= 0 && HS_SYS(SYS_getrusage, RUSAGE_SELF, &own) == 0 && HS_SYS(SYS_getrusage, RUSAGE_CHILDREN, &children) == 0) {
        out->tms_utime = ticks(less(more(own.ru_utime, start->user), used.own.ru_utime));
        out->tms_stime = ticks(less(more(own.ru_stime, start->system), used.own.ru_stime));
        out->tms_cutime = ticks(less(children.ru_utime, used.children.ru_utime));
        out->tms_cstime = ticks(less(children.ru_stime, used.children.ru_stime));
    }
    return hs_call_done(call, result);
}

static int64_t nanoseconds(struct timespec time)
{
    return time.tv_sec * BILLION + time.tv_nsec;
}

/* clock_gettime. A negative number is that of some process's clock, and contains its number. */
enum hs_call_outcome hs_usage_clock(struct hs_system_call *call)
{
    struct timespec *out = (struct timespec *)call->b;
    const int clock = (int)call->a, is_process = clock == CLOCK_PROCESS_CPUTIME_ID;
    if (clock < 0)
        hs_call_mark();
    if (!is_process && (clock != CLOCK_THREAD_CPUTIME_ID || !is_first_thread()))
        return HS_CALL_NATIVE;
    const long result = HS_SYS(SYS_clock_gettime, clock, out);
    if (result == 0) {
        const int64_t own = nanoseconds(*out) - (is_process ? used.own_ns : used.thread_ns) + start->ns;
        *out = (struct timespec){own / BILLION, own % BILLION};
    }
    return hs_call_done(call, result);
}

/* clock_nanosleep. A time on a clock that counts CPU time is one of all runs. */
enum hs_call_outcome hs_usage_sleep(const struct hs_system_call *call)
{
    const int clock = (int)call->a;
    if (clock < 0 || ((clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID) && call->b & TIMER_ABSTIME))
        hs_call_mark();
    return HS_CALL_NATIVE;
}

/* sysinfo, which counts processes. A run in a process that was there before makes them no more. Of one that has just taken over another's
 * memory it is not known whether that is still counted. A build has others at the same time. */
enum hs_call_outcome hs_usage_system(struct hs_system_call *call)
{
    const long result = HS_SYS(SYS_sysinfo, call->a);
    if (hs_worker_has_past() && !hs_worker_has_old_number() && !hs_nested_is_build())
        hs_call_mark();
    if (result == 0 && hs_worker_has_old_number())
        ((struct sysinfo *)call->a)->procs++;
    return hs_call_done(call, result);
}

/* The kernel counts the CPU time of all runs for the limit on it. Workers have none of their own (hs_state_limits_fit). */
static void shift(struct rlimit *limit, int64_t seconds)
{
    if (limit->rlim_cur != RLIM_INFINITY)
        limit->rlim_cur += (rlim_t)seconds;
    if (limit->rlim_max != RLIM_INFINITY)
        limit->rlim_max += (rlim_t)seconds;
}

static long limit_time(long given, struct rlimit *old)
{
    const int64_t seconds = used.own_ns / BILLION;
    struct rlimit changed;
    if (given && !hs_signals_fetch(&changed, given, sizeof changed))
        return -EFAULT;
    /* It is counted in whole seconds, and the use of earlier runs, and that of the start, in parts of them. */
    if (given && (changed.rlim_cur != RLIM_INFINITY || changed.rlim_max != RLIM_INFINITY))
        hs_call_mark();
    if (given)
        shift(&changed, seconds);
    const long result = HS_SYS(SYS_prlimit64, 0, RLIMIT_CPU, given ? &changed : NULL, old);
    if (result == 0 && old)
        shift(old, -seconds);
    return result;
}

/* Limits on what a worker has as any process. (Of processes the user has more: workers and zygotes.) An earlier run may have made its
 * stack deeper than a new limit allows, and it maps more than a fresh process. */
static int may_be_set(int resource)
{
    switch (resource) {
    case RLIMIT_CORE:
    case RLIMIT_CPU:
    case RLIMIT_FSIZE:
    case RLIMIT_NOFILE:
        return 1;
    default:
        return 0;
    }
}

/* A stack that may become deeper, as gcc's: what earlier runs have made of it was within the old limit. */
static int raises_stack(int resource, long given)
{
    struct rlimit now, wanted;
    return resource == RLIMIT_STACK && hs_signals_fetch(&wanted, given, sizeof wanted) &&
           HS_SYS(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &now) == 0 && wanted.rlim_cur >= now.rlim_cur &&
           wanted.rlim_max == now.rlim_max;
}

/* getrlimit, setrlimit, prlimit64. */
enum hs_call_outcome hs_usage_limit(struct hs_system_call *call)
{
    const int is_old = call->number != SYS_prlimit64;
    const int whose = is_old ? 0 : (int)call->a, resource = (int)(is_old ? call->a : call->b);
    const long given = call->number == SYS_setrlimit ? call->b : is_old ? 0 : call->c;
    const long old = call->number == SYS_getrlimit ? call->b : is_old ? 0 : call->d;
    if (given)
        hs_call_note_limit();
    if (whose != 0 || (given && !may_be_set(resource) && !raises_stack(resource, given)))
        hs_call_mark();
    /* The kernel counts pages that are kept, and does not ask where a break grows that it has already. */
    if (given && whose == 0 && (resource == RLIMIT_DATA || resource == RLIMIT_AS))
        hs_mappings_make_real(1);
    if (whose == 0 && resource == RLIMIT_CPU)
        return hs_call_done(call, limit_time(given, (struct rlimit *)old));
    return HS_CALL_NATIVE;
}

/* Notes what this process has used since `used`, and was spared itself. */
static void note(enum hs_level level)
{
    struct rusage own;
    struct timespec now;
    HS_SYS(SYS_getrusage, RUSAGE_SELF, &own);
    HS_SYS(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &now);
    const struct spared from = level == HS_AT_MAIN ? (struct spared){0} : spared[HS_AT_MAIN];
    spared[level] = (struct spared){less(more(own.ru_utime, from.user), used.own.ru_utime),
                                    less(more(own.ru_stime, from.system), used.own.ru_stime), nanoseconds(now) + from.ns - used.own_ns};
}

/* In the zygote, at main. */
void hs_usage_note_start(void)
{
    note(HS_AT_MAIN);
}

/* In a dry run, where it has come to the deferred snapshot: `used` is the use until it began. */
void hs_usage_note_point(void)
{
    note(HS_AT_POINT);
}

/* Before each run, which begins at `level`: the use until now belongs to earlier runs. */
void hs_usage_begin(enum hs_level level)
{
    struct timespec now;
    start = &spared[level];
    used.first = __builtin_thread_pointer();
#ifdef HS_WITHOUT_USAGE
    return;
#endif
    HS_SYS(SYS_getrusage, RUSAGE_SELF, &used.own);
    if (hs_children_came_before())
        HS_SYS(SYS_getrusage, RUSAGE_CHILDREN, &used.children);
    HS_SYS(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &now);
    used.own_ns = nanoseconds(now);
    HS_SYS(SYS_getrusage, RUSAGE_THREAD, &used.thread);
    HS_SYS(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    used.thread_ns = nanoseconds(now);
}

/* The use of earlier runs, as the run began. */
const struct rusage *hs_usage_before(void)
{
    return &used.own;
}

#endif
