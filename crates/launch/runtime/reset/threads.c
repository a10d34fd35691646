/* Threads of a worker. Each new one turns the gate on for itself, since the kernel leaves it off. Threads that main has left are ended,
 * as the end of the process would have ended them, so that the worker can be reset.
 *
 * Linkers and compilers that end by _exit leave pools of threads. From the moment at which main has ended no other thread makes another
 * system call: the gate ends it. One that waits in a call, as pools do, is ended by a signal whose handler leaves. If its call was more
 * than interrupted, if it works on and on, or if it may write to memory that others see, it has had longer than in a fresh process: the
 * run is doubtful. One that takes no signals or has no room for a handler on its stack retires the worker. The mappings of threads are
 * undone with the rest.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"

/* libc's own. Set by hs_threads_resolve in the zygote, or by the first call of a constructor. */
static struct {
    __typeof__(pthread_create) *create;
    __typeof__(pthread_getattr_np) *getattr;
} next;

void hs_threads_resolve(void)
{
    if (next.create)
        return;
    next.getattr = (__typeof__(next.getattr))dlsym(RTLD_NEXT, "pthread_getattr_np");
    next.create = (__typeof__(next.create))dlsym(RTLD_NEXT, "pthread_create");
}

#if HS_RESETS

#define PAGE 4096ul
#define THREADS_MAX 256
/* The last of the real-time signals; actions are restored with the rest. */
#define ENDING 64
/* What a handler's frame may take, with all registers that processors have today, and what lies below the pointer. */
#define FRAME_ROOM (16 * 1024ul)
#define WAITS 200
#define WAIT_NS 50000
/* A thread that works is looked at again: it ends at its next call. It may use so much CPU time until then; one that is not given a
 * processor does nothing. At first it is looked at after WAIT_NS, and after QUICK_LOOKS more seldom. */
#define WORK_NS 20000000l
#define QUICK_LOOKS 400
#define LOOKS 4000
#define LONG_WAIT_NS 1000000
#define STARTS_MAX 256
#define ASKING_MAX 32

/* A thread that is being created. It is taken from the call of pthread_create until the thread has read it, or could not be made. */
struct start {
    void *(*function)(void *);
    void *argument;
    void *creator; /* the thread that is creating it */
    int is_taken;
};

/* `starts` and `asking` change in a run, in any thread, and atomically. `others` is used between two runs only. */
static struct {
    struct start starts[STARTS_MAX];
    void *asking[ASKING_MAX]; /* the threads that ask for the limits of their stacks */
    volatile int has_left; /* at a call behind the end of main */
    /* The threads of this run, and the last call that each of them has begun; -1 if it was none. */
    struct {
        void *pointer;
        int thread;
        volatile int last;
    } followed[THREADS_MAX];
    volatile uint32_t count;
    int others[THREADS_MAX];
} threads;

/* A call that nobody outside notices: how long it goes on behind the end of main does not matter. */
HS_GENERAL static int is_unnoticed(long number)
{
    switch (number) {
    case -1:
    case SYS_futex:
    case SYS_close: /* the end of the process closes all */
    case SYS_sched_yield:
    case SYS_sched_getaffinity:
    case SYS_brk:
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mremap:
    case SYS_mprotect:
    case SYS_madvise:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_clock_gettime:
    case SYS_getrusage:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getcwd:
    case SYS_getcpu:
    case SYS_set_robust_list:
    case SYS_rseq:
    case SYS_rt_sigprocmask:
    case SYS_sigaltstack:
    case SYS_exit: return 1;
    default: return 0;
    }
}

/* Where the thread with this number, or else with this pointer, is followed; -1 if it is not. */
HS_GENERAL static int find(int thread, const void *pointer)
{
    for (int i = (int)(threads.count < THREADS_MAX ? threads.count : THREADS_MAX); i-- > 0;)
        if (thread ? threads.followed[i].thread == thread : threads.followed[i].pointer == pointer)
            return i;
    return -1;
}

/* The last call of the thread with this pointer; one that is noticed if it is not known. */
HS_GENERAL static int last_call(const void *pointer)
{
    const int at = find(0, pointer);
    return at >= 0 ? threads.followed[at].last : SYS_write;
}

/* Threads that libc was asked to make and that have not begun: they have made no call but what libc makes for itself. */
static int count_unbegun(void)
{
    int count = 0;
    for (const struct start *start = threads.starts; start < threads.starts + STARTS_MAX; start++)
        count += __atomic_load_n(&start->is_taken, __ATOMIC_ACQUIRE);
    return count;
}

/* Whether this thread is in a call that nobody notices, or in none. Of those that are not followed, `unbegun` may be. */
static int is_quiet(int thread, int *unbegun)
{
    const int at = find(thread, NULL);
    return at >= 0 ? is_unnoticed(threads.followed[at].last) : (*unbegun)-- > 0;
}

/* A thread other than the first makes a call. */
HS_GENERAL void hs_threads_note(long number)
{
    const void *const pointer = __builtin_thread_pointer();
    for (uint32_t i = threads.count < THREADS_MAX ? threads.count : THREADS_MAX; i-- > 0;)
        if (threads.followed[i].pointer == pointer) {
            threads.followed[i].last = (int)number;
            return;
        }
}

/* Before each run. */
void hs_threads_begin(void)
{
    threads.count = 0;
    threads.has_left = 0;
    hs_zero((uintptr_t)threads.asking, (uintptr_t)(threads.asking + ASKING_MAX));
}

HS_GENERAL void hs_threads_leave(void)
{
    if (!is_unnoticed(last_call(__builtin_thread_pointer())))
        hs_call_mark();
    threads.has_left = 1;
    for (;;)
        HS_SYS(SYS_exit, 0);
}

/* The signal has come in a call, before which nothing had happened in it: then the kernel says that it was interrupted; or behind one. */
static void end_thread(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    if (((const ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] != -EINTR && !is_unnoticed(last_call(__builtin_thread_pointer())))
        hs_call_mark();
    for (;;)
        HS_SYS(SYS_exit, 0);
}

static int open_tasks(void)
{
    return (int)HS_SYS(SYS_open, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Lists all threads but this one; -1 if there are too many. */
static int list(int tasks)
{
    static char buffer[8192] __attribute__((aligned(8)));
    const int own = (int)HS_SYS(SYS_gettid);
    int count = 0;
    long got;
    HS_SYS(SYS_lseek, tasks, 0, SEEK_SET);
    while ((got = HS_SYS(SYS_getdents64, tasks, buffer, sizeof buffer)) > 0)
        for (long at = 0; at < got; at += ((struct hs_entry *)(buffer + at))->length) {
            const char *name = ((struct hs_entry *)(buffer + at))->name;
            int thread = *name >= '0' && *name <= '9' ? (int)hs_parse(&name, 10) : own;
            if (thread == own)
                continue;
            if (count == THREADS_MAX)
                return -1;
            threads.others[count++] = thread;
        }
    return got < 0 ? -1 : count;
}

/* The stack pointer of a thread that waits in a system call; 0 if it runs, or the system does not tell. */
static uintptr_t waits_at(int tasks, int thread)
{
    char path[32], text[256];
    char *at = path + sizeof path - 1 - strlen("/syscall");
    memcpy(at, "/syscall", sizeof "/syscall");
    for (; thread; thread /= 10)
        *--at = (char)('0' + thread % 10);
    int fd = (int)HS_SYS(SYS_openat, tasks, at, O_RDONLY | O_CLOEXEC);
    long length = HS_SYS(SYS_read, fd, text, sizeof text - 1);
    HS_SYS(SYS_close, fd);
    if (fd < 0 || length <= 0 || *text < '0' || *text > '9')
        return 0;
    text[length] = 0;
    /* Number, six arguments, stack pointer, instruction pointer; all but the first as 0x and digits. */
    const char *word = text;
    for (int i = 0; i < 7 && word; i++)
        word = (word = strchr(word, ' ')) ? word + 1 : NULL;
    if (!word || memcmp(word, "0x", 2) != 0)
        return 0;
    word += 2;
    return hs_parse(&word, 16);
}

static int has_room(uintptr_t stack)
{
    uintptr_t from = (stack - FRAME_ROOM) & -PAGE, to = (stack + PAGE - 1) & -PAGE;
    return stack > FRAME_ROOM && HS_SYS(SYS_madvise, from, to - from, MADV_POPULATE_WRITE) == 0;
}

/* What the threads of the list do, the worst of it. Tells whether all have room for a handler, if they wait. ACT: one may be in a call that
 * somebody notices, and does not wait. */
enum doing { WAIT, RUN, ACT };
static enum doing look_at_all(int tasks, int count, int *have_room)
{
    enum doing found = WAIT;
    int unbegun = count_unbegun();
    *have_room = 1;
    for (int i = 0; i < count && found != ACT; i++) {
        const uintptr_t stack = waits_at(tasks, threads.others[i]);
        if (stack)
            *have_room &= has_room(stack);
        else
            found = is_quiet(threads.others[i], &unbegun) ? RUN : ACT;
    }
    return found;
}

/* Whether none of the threads of the list is in a call that somebody may notice. */
static int are_unnoticed(int count)
{
    int unbegun = count_unbegun();
    for (int i = 0; i < count; i++)
        if (!is_quiet(threads.others[i], &unbegun))
            return 0;
    return 1;
}

/* Whether the tool has memory that others see, and may write to it, as far as this can be told; of files only, if that is asked. What has
 * no file, only children see. */
int hs_threads_share_memory(int of_files)
{
    struct hs_mapping map;
    const char *at = hs_maps_read();
    if (!at)
        return 1;
    while ((at = hs_maps_next(at, &map)))
        if (map.access[1] == 'w' && map.access[3] == 's' && !hs_own_has(map.from, map.to - map.from) &&
            !(of_files && hs_files_equal(map.path, "/dev/zero (deleted)")))
            return 1;
    return 0;
}

static int tell_to_leave(int count)
{
    const struct hs_action action = {(void *)end_thread, SA_SIGINFO | HS_RESTORER, (void *)end_thread, ~0ull};
    const int process = (int)HS_SYS(SYS_getpid);
    if (HS_SYS(SYS_rt_sigaction, ENDING, &action, 0, sizeof action.mask) != 0)
        return -1;
    for (int other = 0; other < count; other++)
        HS_SYS(SYS_tgkill, process, threads.others[other], ENDING);
    return 0;
}

static int64_t clock_of(int clock)
{
    struct timespec now = {0, 0};
    HS_SYS(SYS_clock_gettime, clock, &now);
    return now.tv_sec * 1000000000l + now.tv_nsec;
}

/* The CPU time of all threads but this one. */
static int64_t work_of_others(void)
{
    const int64_t own = clock_of(CLOCK_THREAD_CPUTIME_ID);
    return clock_of(CLOCK_PROCESS_CPUTIME_ID) - own;
}

/* Ends all other threads if they can be; returns whether what they have done since main's end is what a fresh process would have done. */
static int end_all(int tasks)
{
    const struct timespec quick = {0, WAIT_NS}, slow = {0, LONG_WAIT_NS};
    const int64_t before = work_of_others();
    int told = 0, have_room, count = 0;
    for (int i = 0; i < WAITS + LOOKS && told < WAITS; i++) {
        count = list(tasks);
        if (count <= 0)
            return count == 0;
        const enum doing found = told ? WAIT : look_at_all(tasks, count, &have_room);
        if (found == ACT || (found == RUN && (i == LOOKS || work_of_others() - before > WORK_NS)))
            return 0;
        if (!told && found == WAIT && (!have_room || tell_to_leave(count) != 0))
            return are_unnoticed(count);
        told += found == WAIT;
        HS_SYS(SYS_nanosleep, i < QUICK_LOOKS ? &quick : &slow, 0);
    }
    return are_unnoticed(count);
}

/* A thread has crashed behind the end of main. In a fresh process it would be gone. A fault of the runtime's own stays one. */
static void end_crashed(int number, siginfo_t *info, void *context)
{
    const struct hs_action none = {0};
    (void)info, (void)context;
    while (HS_SYS(SYS_gettid) != HS_SYS(SYS_getpid))
        HS_SYS(SYS_exit, 0);
    HS_SYS(SYS_rt_sigaction, number, &none, 0, HS_SET_BYTES);
}

/* No crash of theirs is that of the run. Actions are restored with the rest. */
static void excuse_crashes(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    const struct hs_action action = {(void *)end_crashed, SA_SIGINFO | SA_ONSTACK | HS_RESTORER, (void *)hs_gate_restorer, ~0ull};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        HS_SYS(SYS_rt_sigaction, numbers[i], &action, 0, HS_SET_BYTES);
        hs_call_note_action(numbers[i]);
    }
}

/* Main has ended: ends the other threads, or makes the run doubtful. Returns 0 if none is left. */
int hs_threads_end(void)
{
    if (!hs_state_has_threads() && !threads.has_left)
        return 0;
    excuse_crashes();
    const int tasks = open_tasks();
    if (tasks < 0 || !end_all(tasks) || hs_threads_share_memory(0))
        hs_call_mark();
    HS_SYS(SYS_close, tasks);
    /* One of them may have been creating a thread. */
    if (hs_state_has_threads())
        return -1;
    hs_zero((uintptr_t)threads.starts, (uintptr_t)(threads.starts + STARTS_MAX));
    return 0;
}

static struct start *take_start(void *(*function)(void *), void *argument)
{
    for (struct start *start = threads.starts; start < threads.starts + STARTS_MAX; start++)
        if (!__atomic_exchange_n(&start->is_taken, 1, __ATOMIC_ACQUIRE)) {
            start->function = function;
            start->argument = argument;
            start->creator = __builtin_thread_pointer();
            return start;
        }
    return NULL;
}

static void give_start(struct start *start)
{
    start->creator = NULL;
    __atomic_store_n(&start->is_taken, 0, __ATOMIC_RELEASE);
}

/* Whether this thread is inside pthread_create. (It has no variable of its own for that: a library with such variables changes
 * what libc allocates for each thread.) */
HS_GENERAL int hs_threads_creates(void)
{
    for (struct start *start = threads.starts; start < threads.starts + STARTS_MAX; start++)
        if (start->creator == __builtin_thread_pointer())
            return 1;
    return 0;
}

/* The last call is a jump, and leaves no frame. */
static void *begin(void *data)
{
    struct start *start = data;
    void *(*function)(void *) = start->function;
    void *argument = start->argument;
    const uint32_t at = __atomic_fetch_add(&threads.count, 1, __ATOMIC_RELAXED);
    if (at < THREADS_MAX) {
        threads.followed[at].last = -1;
        threads.followed[at].thread = (int)HS_SYS(SYS_gettid);
        threads.followed[at].pointer = __builtin_thread_pointer();
    }
    give_start(start);
    hs_gate_join();
    return function(argument);
}

HS_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                             void *argument)
{
    hs_threads_resolve();
    hs_watch_touch();
    /* Without a start of ours the thread is not followed, and the gate records that. */
    struct start *start = hs_gate_is_worker() ? take_start(function, argument) : NULL;
    if (!start)
        return next.create(thread, attributes, function, argument);
    const int result = next.create(thread, attributes, begin, start);
    if (result != 0) {
        give_start(start);
        /* The user has more processes than without hotstart. */
        hs_call_mark();
    }
    return result;
}

HS_GENERAL int hs_threads_asks_for_stack(void)
{
    for (void **at = threads.asking; at < threads.asking + ASKING_MAX; at++)
        if (__atomic_load_n(at, __ATOMIC_RELAXED) == __builtin_thread_pointer())
            return 1;
    return 0;
}

/* Where this thread notes that it asks; NULL if too many do. */
static void **begin_to_ask(void)
{
    for (void **at = threads.asking; at < threads.asking + ASKING_MAX; at++) {
        void *nobody = NULL;
        if (__atomic_compare_exchange_n(at, &nobody, __builtin_thread_pointer(), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return at;
    }
    return NULL;
}

/* libc reads /proc/self/maps for it. If too many threads ask at a time, the run is doubtful. */
HS_EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    hs_threads_resolve();
    hs_watch_touch();
    void **const asking = begin_to_ask();
    const int result = next.getattr(thread, attributes);
    if (asking)
        __atomic_store_n(asking, NULL, __ATOMIC_RELAXED);
    return result;
}

void *hs_threads_interposed(void *function)
{
    if (function && function == (void *)next.create)
        return (void *)pthread_create;
    return function && function == (void *)next.getattr ? (void *)pthread_getattr_np : function;
}

#else

void *hs_threads_interposed(void *function)
{
    return function;
}

#endif
