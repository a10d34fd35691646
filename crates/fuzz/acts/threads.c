/* Threads: joined, left, their keys and destructors, and locks. */
#include "act.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <threads.h>

#undef FAMILY
#define FAMILY "threads"

static __thread int own_number = 1;
static volatile int begun_threads;

static void *add_one(void *argument)
{
    own_number += (int)(intptr_t)argument;
    return (void *)(intptr_t)own_number;
}

MIXED(thread_joined)
{
    pthread_t thread;
    void *result = NULL;
    int failed = pthread_create(&thread, NULL, add_one, (void *)5);
    say("create %d join %d", failed, failed ? -1 : pthread_join(thread, &result));
    say("result %d own %d", (int)(intptr_t)result, own_number);
}

MIXED(thread_many)
{
    pthread_t threads[12];
    int joined = 0;
    for (int i = 0; i < 12; i++)
        pthread_create(&threads[i], NULL, add_one, (void *)(intptr_t)i);
    for (int i = 0; i < 12; i++)
        joined += pthread_join(threads[i], NULL) == 0;
    say("joined %d", joined);
}

static void *wait_forever(void *argument)
{
    (void)argument;
    __atomic_fetch_add(&begun_threads, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
    return NULL;
}

static void start_waiting(int count, int detached)
{
    pthread_t thread;
    int failed = 0, before = begun_threads;
    for (int i = 0; i < count; i++) {
        failed |= pthread_create(&thread, NULL, wait_forever, NULL);
        if (detached)
            pthread_detach(thread);
    }
    while (!failed && begun_threads < before + count)
        sched_yield();
    say("started %d", failed);
}

DISTURB(thread_left)
{
    start_waiting(1, 0);
}

DISTURB(thread_left_detached)
{
    start_waiting(3, 1);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *wait_condition(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&gate);
    __atomic_fetch_add(&begun_threads, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pthread_cond_wait(&never, &gate);
    return NULL;
}

DISTURB(thread_left_in_condition)
{
    pthread_t thread;
    /* It could not begin. */
    if (pthread_mutex_trylock(&gate) != 0)
        return say("locked");
    pthread_mutex_unlock(&gate);
    int before = begun_threads, failed = pthread_create(&thread, NULL, wait_condition, NULL);
    while (!failed && begun_threads == before)
        sched_yield();
    /* It holds the mutex until it waits. */
    if (!failed) {
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
    }
    say("started %d", failed);
}

static void *spin(void *argument)
{
    volatile long count = 0;
    (void)argument;
    begun_threads++;
    for (;;)
        count++;
    return NULL;
}

DISTURB(thread_left_busy)
{
    pthread_t thread;
    int before = begun_threads, failed = pthread_create(&thread, NULL, spin, NULL);
    while (!failed && begun_threads == before)
        sched_yield();
    say("started %d", failed);
}

static void *writes_late(void *argument)
{
    (void)argument;
    memset(malloc(100000), 1, 100000);
    return wait_forever(NULL);
}

DISTURB(thread_left_with_memory)
{
    pthread_t thread;
    int before = begun_threads, failed = pthread_create(&thread, NULL, writes_late, NULL);
    while (!failed && begun_threads == before)
        sched_yield();
    say("started %d", failed);
}

OBSERVE(thread_count)
{
    say_status((const char *const[]){"Threads", NULL});
}

static pthread_key_t key;
static volatile int destroyed;

static void destroy(void *value)
{
    destroyed += (int)(intptr_t)value;
}

static void *set_key(void *argument)
{
    pthread_setspecific(key, argument);
    return NULL;
}

MIXED(thread_key)
{
    pthread_t thread;
    destroyed = 0;
    SAY2("create %ld number %ld", pthread_key_create(&key, destroy), key);
    pthread_setspecific(key, (void *)3);
    pthread_create(&thread, NULL, set_key, (void *)7);
    pthread_join(thread, NULL);
    say("destroyed %d own %d", destroyed, pthread_getspecific(key) == (void *)3);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void called_once(void)
{
    say("called once");
}

MIXED(thread_once)
{
    say("%d", pthread_once(&once, called_once));
}

MIXED(thread_cancelled)
{
    pthread_t thread;
    void *result = NULL;
    int before = begun_threads;
    pthread_create(&thread, NULL, wait_forever, NULL);
    while (begun_threads == before)
        sched_yield();
    pthread_cancel(thread);
    pthread_join(thread, &result);
    say("cancelled %d", result == PTHREAD_CANCELED);
}

DISTURB(thread_name)
{
    say("%d", pthread_setname_np(pthread_self(), "thread-name"));
}

DISTURB(mutex_left_locked)
{
    say("lock %d", pthread_mutex_trylock(&gate));
}

OBSERVE(mutex_show)
{
    int failed = pthread_mutex_trylock(&gate);
    if (!failed)
        pthread_mutex_unlock(&gate);
    say("lock %d", failed);
}

MIXED(mutex_robust_left)
{
    static pthread_mutex_t robust;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &kind);
    say("lock %d", pthread_mutex_lock(&robust));
}

/* Whoever ends with it held leaves word of that for the next. */
MIXED(mutex_robust_shared)
{
    int fd = open("../shared/mutex", O_RDWR | O_CREAT, 0600);
    struct stat now = {0};
    fstat(fd, &now);
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        return say_result("shared", -1);
    pthread_mutex_t *mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (now.st_size == 0) {
        pthread_mutexattr_t kind;
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
        pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(mutex, &kind);
    }
    int got = pthread_mutex_trylock(mutex);
    say("lock %d", got);
    if (got == EOWNERDEAD)
        pthread_mutex_consistent(mutex);
    munmap(mutex, 4096);
}

MIXED(semaphore_named)
{
    sem_t *absent = sem_open("/hotstart-fuzz-absent", 0);
    say("absent %d", absent == SEM_FAILED);
}

static void before_fork(void)
{
    begun_threads += 1000;
}

MIXED(fork_handlers)
{
    int before = begun_threads;
    say("%d", pthread_atfork(before_fork, NULL, NULL));
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    say_child(child);
    say("called %d", (begun_threads - before) / 1000);
    begun_threads = 0;
}

DISTURB(thread_stack_size)
{
    pthread_attr_t attributes;
    size_t size = 0;
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &size);
    say("was %zu", size);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    say("%d", pthread_setattr_default_np(&attributes));
}

static int c11_thread(void *argument)
{
    return *(int *)argument + 1;
}

MIXED(thread_standard)
{
    thrd_t thread;
    int value = 4, result = 0;
    int failed = thrd_create(&thread, c11_thread, &value);
    SAY3("%ld %ld %ld", failed, thrd_join(thread, &result), result);
}

static void *ends_process(void *argument)
{
    exit((int)(intptr_t)argument);
}

END(end_by_thread)
{
    pthread_t thread;
    pthread_create(&thread, NULL, ends_process, (void *)21);
    pthread_join(thread, NULL);
}

static void *faults(void *argument)
{
    *(volatile int *)argument = 1;
    return NULL;
}

END(end_by_thread_fault)
{
    pthread_t thread;
    pthread_create(&thread, NULL, faults, NULL);
    pthread_join(thread, NULL);
}

END(end_main_thread_only)
{
    say("leaving");
    pthread_exit(NULL);
}

static void *ends_at_once(void *argument)
{
    (void)argument;
    _exit(23);
}

END(end_by_thread_at_once)
{
    pthread_t thread;
    pthread_create(&thread, NULL, ends_at_once, NULL);
    pthread_join(thread, NULL);
}

/* What a thread changes is the process's, and stays when the thread has ended. */
static void in_thread(void *(*work)(void *))
{
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, work, NULL) != 0)
        return say("no thread");
    pthread_join(thread, &result);
    say("result %ld", (long)(intptr_t)result);
}

static void *set_options(void *argument)
{
    (void)argument;
    return (void *)(RAW(SYS_prctl, PR_SET_DUMPABLE, 0) + prctl(PR_SET_CHILD_SUBREAPER, 1));
}

DISTURB(thread_sets_options)
{
    in_thread(set_options);
}

static void *set_actions(void *argument)
{
    (void)argument;
    return (void *)(intptr_t)(signal(SIGUSR1, SIG_IGN) != SIG_DFL || signal(SIGRTMIN + 3, SIG_IGN) != SIG_DFL);
}

DISTURB(thread_sets_actions)
{
    in_thread(set_actions);
}

static void *lower_limits(void *argument)
{
    struct rlimit limit;
    (void)argument;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 60;
    return (void *)(intptr_t)setrlimit(RLIMIT_NOFILE, &limit);
}

DISTURB(thread_sets_limits)
{
    in_thread(lower_limits);
}

static void *map_far(void *argument)
{
    char *const want = (char *)0x12000000000;
    (void)argument;
    char *got = mmap(want, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != want)
        return (void *)1;
    const int any = any_set(got, 8192);
    memset(got, 1, 8192);
    return (void *)(intptr_t)(any * 2);
}

MIXED(thread_maps)
{
    in_thread(map_far);
}

static void *move_break(void *argument)
{
    char *was = sbrk(300000);
    (void)argument;
    if (was == (void *)-1)
        return (void *)1;
    const int any = any_set(was, 300000);
    memset(was, 3, 300000);
    return (void *)(intptr_t)(any * 2);
}

MIXED(thread_moves_break)
{
    in_thread(move_break);
}

static void *open_some(void *argument)
{
    (void)argument;
    return (void *)(intptr_t)(open("/dev/null", O_RDONLY) < 0 || dup2(1, 90) != 90);
}

DISTURB(thread_opens)
{
    in_thread(open_some);
}
