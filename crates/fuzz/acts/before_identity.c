/* Who it is, when, and with what mask and limits. See before.h. */
#include "before.h"

#ifdef WITH_before_pid
static pid_t first_pid;
CONSTRUCT(ask_pid)
{
    UNUSED;
    first_pid = getpid();
}
TELL(before_pid)
{
    say("same %d", first_pid == getpid());
}
#endif

#ifdef WITH_before_pid_by_call
static long called_pid, called_tid;
CONSTRUCT(call_pid)
{
    UNUSED;
    called_pid = RAW(SYS_getpid), called_tid = RAW(SYS_gettid);
}
TELL(before_pid_by_call)
{
    say("same %d %d", called_pid == getpid(), called_tid == RAW(SYS_gettid));
}
#endif

#ifdef WITH_before_pid_by_link
static char linked_pid[32];
CONSTRUCT(link_pid)
{
    UNUSED;
    if (readlink("/proc/self", linked_pid, sizeof linked_pid - 1) < 0)
        *linked_pid = 0;
}
TELL(before_pid_by_link)
{
    say("same %d", atoi(linked_pid) == getpid());
}
#endif

#ifdef WITH_before_parent
static pid_t first_parent, first_group;
CONSTRUCT(ask_parent)
{
    UNUSED;
    first_parent = getppid(), first_group = getpgrp();
}
TELL(before_parent)
{
    say("parent %d group %d", first_parent == getppid(), first_group == getpgrp());
}
#endif

#ifdef WITH_before_time
static struct timespec first_time;
CONSTRUCT(ask_time)
{
    UNUSED;
    clock_gettime(CLOCK_REALTIME, &first_time);
}
TELL(before_time)
{
    say("new %d", is_new("times", (unsigned long)(first_time.tv_sec * 1000000000 + first_time.tv_nsec)));
}
#endif

#ifdef WITH_before_time_by_call
static struct timespec called_time;
CONSTRUCT(call_time)
{
    UNUSED;
    RAW(SYS_clock_gettime, CLOCK_MONOTONIC, &called_time);
}
TELL(before_time_by_call)
{
    say("new %d", is_new("called-times", (unsigned long)(called_time.tv_sec * 1000000000 + called_time.tv_nsec)));
}
#endif

#ifdef WITH_before_counter
static unsigned long first_counter;
CONSTRUCT(ask_counter)
{
    UNUSED;
    first_counter = processor_counter();
}
TELL(before_counter)
{
    say("new %d", is_new("counters", first_counter));
}
#endif

#ifdef WITH_before_random
static unsigned long first_random;
CONSTRUCT(ask_random)
{
    UNUSED;
    if (getrandom(&first_random, sizeof first_random, 0) != sizeof first_random)
        first_random = 0;
}
TELL(before_random)
{
    say("new %d", is_new("randoms", first_random));
}
#endif

#ifdef WITH_before_random_by_call
static unsigned long called_random;
CONSTRUCT(call_random)
{
    UNUSED;
    RAW(SYS_getrandom, &called_random, sizeof called_random, 0);
}
TELL(before_random_by_call)
{
    say("new %d", is_new("called-randoms", called_random));
}
#endif

#ifdef WITH_before_random_kept
static unsigned long kept_random;
CONSTRUCT(keep_random)
{
    UNUSED;
    memcpy(&kept_random, (void *)getauxval(AT_RANDOM), sizeof kept_random);
}
TELL(before_random_kept)
{
    say("new %d", is_new("kept-randoms", kept_random));
}
#endif

#ifdef WITH_before_random_given
TELL(before_random_given)
{
    unsigned long given[2];
    memcpy(given, (void *)getauxval(AT_RANDOM), sizeof given);
    say("new %d %d", is_new("given-randoms", given[0]), is_new("other-given-randoms", given[1]));
}
#endif

#ifdef WITH_before_random_file
static unsigned long read_random;
CONSTRUCT(read_random_file)
{
    UNUSED;
    int fd = open("/dev/urandom", O_RDONLY);
    if (read(fd, &read_random, sizeof read_random) < 0)
        read_random = 0;
    close(fd);
}
TELL(before_random_file)
{
    say("new %d", is_new("read-randoms", read_random));
}
#endif

#ifdef WITH_before_seeded
static int first_number;
CONSTRUCT(seed)
{
    UNUSED;
    struct timeval now;
    gettimeofday(&now, NULL);
    srand((unsigned)(now.tv_sec * 1000000 + now.tv_usec));
    first_number = rand();
}
TELL(before_seeded)
{
    say("new %d", is_new("seeds", (unsigned long)first_number));
}
#endif

#ifdef WITH_before_umask
static mode_t first_mask;
CONSTRUCT(ask_umask)
{
    UNUSED;
    first_mask = umask(0);
    umask(first_mask);
}
TELL(before_umask)
{
    mode_t now = umask(0);
    umask(now);
    say("%o now %o", (unsigned)first_mask, (unsigned)now);
}
#endif

#ifdef WITH_before_umask_by_call
static long called_mask;
CONSTRUCT(call_umask)
{
    UNUSED;
    called_mask = RAW(SYS_umask, 022);
    RAW(SYS_umask, called_mask);
}
TELL(before_umask_by_call)
{
    say("%lo", called_mask);
}
#endif

#ifdef WITH_before_umask_set
CONSTRUCT(set_umask)
{
    UNUSED;
    umask(0111);
}
TELL(before_umask_set)
{
    say("%o", (unsigned)umask(0111));
}
#endif

#ifdef WITH_before_umask_by_file
static int probe_mode = -1;
CONSTRUCT(probe_umask)
{
    UNUSED;
    struct stat now;
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0777);
    if (fd >= 0 && fstat(fd, &now) == 0)
        probe_mode = (int)(now.st_mode & 0777);
    close(fd);
}
TELL(before_umask_by_file)
{
    say("%o", (unsigned)probe_mode);
}
#endif

#ifdef WITH_before_limits
static long first_files, first_size;
CONSTRUCT(ask_limits)
{
    UNUSED;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    first_files = (long)limit.rlim_cur;
    getrlimit(RLIMIT_FSIZE, &limit);
    first_size = (long)limit.rlim_cur;
}
TELL(before_limits)
{
    say("%ld %ld", first_files, first_size);
}
#endif

#ifdef WITH_before_limits_by_call
static struct rlimit called_limit;
CONSTRUCT(call_limits)
{
    UNUSED;
    RAW(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &called_limit);
}
TELL(before_limits_by_call)
{
    say("%ld", (long)called_limit.rlim_cur);
}
#endif

#ifdef WITH_before_limits_sysconf
static long configured_files;
CONSTRUCT(ask_sysconf)
{
    UNUSED;
    configured_files = sysconf(_SC_OPEN_MAX);
}
TELL(before_limits_sysconf)
{
    say("%ld", configured_files);
}
#endif

#ifdef WITH_before_limits_set
CONSTRUCT(set_limits)
{
    UNUSED;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 50;
    setrlimit(RLIMIT_NOFILE, &limit);
}
TELL(before_limits_set)
{
    say("%ld", sysconf(_SC_OPEN_MAX));
}
#endif

#ifdef WITH_before_status
static char first_status[4096];
CONSTRUCT(read_status)
{
    UNUSED;
    slurp("/proc/self/status", first_status, sizeof first_status);
}
TELL(before_status)
{
    const char *line = strstr(first_status, "\nUmask:"), *number = strstr(first_status, "\nPid:");
    say("%.*s", 12, line ? line + 1 : "");
    say("same %d", number && atoi(number + 5) == getpid());
}
#endif

#ifdef WITH_before_zone
static long first_hour;
CONSTRUCT(ask_zone)
{
    UNUSED;
    const time_t moment = 0;
    first_hour = localtime(&moment)->tm_hour;
}
TELL(before_zone)
{
    say("%ld", first_hour);
}
#endif

#ifdef WITH_before_priority
static int first_nice;
CONSTRUCT(ask_priority)
{
    UNUSED;
    first_nice = nice(1);
}
TELL(before_priority)
{
    say("%d", first_nice);
}
#endif

#ifdef WITH_before_usage
static long first_faults;
CONSTRUCT(ask_usage)
{
    UNUSED;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    first_faults = used.ru_minflt;
}
TELL(before_usage)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    say("grown %d", used.ru_minflt >= first_faults);
}
#endif

#ifdef WITH_before_lock_owner
/* libc keeps the thread's number in a lock that is held. */
static int held_by, parity_of_holder;

BEGIN(before_lock_owner)
{
    pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_mutex_lock(&lock);
    held_by = lock.__data.__owner;
    parity_of_holder = held_by % 2;
    pthread_mutex_unlock(&lock);
}

TELL(before_lock_owner)
{
    SAY2("own %ld parity %ld", held_by == (int)RAW(SYS_gettid), parity_of_holder == (int)RAW(SYS_gettid) % 2);
}
#endif
