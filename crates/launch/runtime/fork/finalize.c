/* What libraries register with __cxa_atexit before main, and the end of each library, without libc's search through all of it.
 *
 * When a process exits, each library calls __cxa_finalize, which goes through all that anybody has registered: thousands of
 * entries, where LLVM's library is among them, once for each of opt's twenty libraries, of which fifteen have registered
 * nothing; and it writes to each entry. So who has registered nothing is spared the search, and what is registered until
 * main is about to begin is kept here, in a row, where one library's entries are found at once.
 *
 * The order is libc's. In that, exit calls, what came last first: what was registered since libc has begun; ld.so's own entry,
 * which ends the libraries one by one, each by __cxa_finalize; then what is left of before. That is what is kept here: it is
 * called by an entry of ours, the first of all that libc has, and so its last. Where something is registered whose place among
 * the others could not be told here, libc keeps that and all that comes after it.
 *
 * Whether an entry was called is told by a byte in memory that is put back after a run. Nothing else here changes once main
 * has begun but who has registered something in libc. That is not forgotten, whatever run of this worker it was in: at worst
 * a search finds nothing. What is registered in a way that is not seen here (on_exit, or a pointer got with dlsym from libc's
 * handle) is called all the same, by exit itself, after the libraries' own ends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime.h"

#define LIBRARIES_MAX 256
#define KEPT_MAX 16384
/* libc's own entries are in blocks of so many and of this size, all but the first on the heap (struct exit_function_list). */
#define BLOCK 32
#define BLOCK_BYTES 1040
/* Where the bytes are that tell what was called: below the kept blocks (kept.c), away from what the kernel places. */
#define CALLED 0x1d4affff0000ul

typedef void hs_function(void);
/* libc passes the status as well, to those that want it. */
typedef void hs_handler(void *argument, int status);

static struct {
    hs_handler *function;
    void *argument, *handle;
} kept[KEPT_MAX];
static unsigned kept_count;
/* For each a byte, whether it was called; after these, how many of the last are known to have been. */
static char *called;
static int is_sealed;

static struct library {
    void *handle;        /* what it is told apart by: the address of a variable in it */
    unsigned first, end; /* among these are what is kept of it */
    int in_libc;         /* libc may have something of it */
    int has_others;      /* functions for fork and quick_exit, which libc knows under the address of this */
} libraries[LIBRARIES_MAX];
/* There was no room for one: everybody searches. */
static int is_full;

/* How many calls of dlclose are under way, and how often something was registered in libc. */
static unsigned closing, registrations;

static struct {
    void (*finalize)(void *);
    int (*dlclose)(void *);
    int (*atexit)(hs_handler *, void *, void *);
    int (*at_quick_exit)(void (*)(void *), void *);
    int (*register_atfork)(hs_function *, hs_function *, hs_function *, void *);
} next;

/* No header has them. */
void __cxa_finalize(void *handle);
int __cxa_atexit(hs_handler *function, void *argument, void *handle);
int __cxa_at_quick_exit(void (*function)(void *), void *handle);
int __register_atfork(hs_function *prepare, hs_function *parent, hs_function *child, void *handle);

static int is_libcs(void *function)
{
    Dl_info of_function, of_libc;
    return dladdr(function, &of_function) && dladdr((void *)gnu_get_libc_version, &of_libc) &&
           of_function.dli_fbase == of_libc.dli_fbase;
}

/* Libraries' constructors may come before any of ours. */
static void resolve(void)
{
    if (next.finalize)
        return;
    next.dlclose = (__typeof__(next.dlclose))dlsym(RTLD_NEXT, "dlclose");
    next.atexit = (__typeof__(next.atexit))dlsym(RTLD_NEXT, "__cxa_atexit");
    next.at_quick_exit = (__typeof__(next.at_quick_exit))dlsym(RTLD_NEXT, "__cxa_at_quick_exit");
    next.register_atfork = (__typeof__(next.register_atfork))dlsym(RTLD_NEXT, "__register_atfork");
    next.finalize = (__typeof__(next.finalize))dlsym(RTLD_NEXT, "__cxa_finalize");
    /* Whoever else has put a function of his own in libc's place is to see all. */
    if (!is_libcs((void *)next.atexit) || !is_libcs((void *)next.finalize))
        is_sealed = is_full = 1;
}

/* The library's place, or the free one it can have; NULL if there is none. */
static struct library *place_of(void *handle)
{
    for (struct library *library = libraries; library < libraries + LIBRARIES_MAX; library++) {
        void *const found = __atomic_load_n(&library->handle, __ATOMIC_ACQUIRE);
        if (!found || found == handle)
            return library;
    }
    return NULL;
}

static struct library *find(void *handle)
{
    struct library *library = handle ? place_of(handle) : NULL;
    return library && __atomic_load_n(&library->handle, __ATOMIC_ACQUIRE) == handle ? library : NULL;
}

/* Threads may come with the same library at once, or with another for the same place. NULL without room, and without a
 * handle. */
static struct library *find_or_add(void *handle)
{
    struct library *library;
    if (!handle)
        return NULL;
    while ((library = place_of(handle))) {
        void *found = NULL;
        if (__atomic_compare_exchange_n(&library->handle, &found, handle, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
            found == handle)
            return library;
    }
    __atomic_store_n(&is_full, 1, __ATOMIC_RELAXED);
    return NULL;
}

static unsigned registered(void)
{
    return __atomic_load_n(&registrations, __ATOMIC_RELAXED);
}

/* Calls it, unless somebody has. */
static void call(unsigned at, int status)
{
    if (!__atomic_exchange_n(&called[at], 1, __ATOMIC_ACQ_REL))
        kept[at].function(kept[at].argument, status);
}

/* libc's last entry calls the last that is left, and registers itself again before, so that what that one registers has its
 * turn before the rest. */
static void call_left(void *argument, int status)
{
    unsigned *passed = (unsigned *)(called + KEPT_MAX);
    (void)argument;
    is_sealed = 1;
    for (; *passed < kept_count; ++*passed) {
        const unsigned at = kept_count - 1 - *passed;
        if (called[at])
            continue;
        const int comes_again = next.atexit(call_left, NULL, NULL) == 0;
        call(at, status);
        if (comes_again)
            return;
    }
}

static void nothing(void *argument, int status)
{
    (void)argument;
    (void)status;
}

/* Keeps nothing any more. libc is given so many entries that its next block comes when it would have come. */
void hs_finalize_seal(void)
{
    if (is_sealed)
        return;
    is_sealed = 1;
    for (unsigned i = 1; kept_count > 0 && i < (kept_count - 1) % BLOCK + 1; i++)
        next.atexit(nothing, NULL, NULL);
}

static int begin_to_keep(void)
{
    called = mmap((void *)CALLED, KEPT_MAX + sizeof(unsigned), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return called != MAP_FAILED && next.atexit(call_left, NULL, NULL) == 0;
}

/* Only one thread's: constructors that start threads are few, and a lock could be found taken after a fork. */
static int is_keeper(void)
{
    static pthread_t keeper;
    pthread_t nobody = 0;
    return __atomic_compare_exchange_n(&keeper, &nobody, pthread_self(), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
           nobody == pthread_self();
}

/* Whether it is kept here. */
static int keep(hs_handler *function, void *argument, void *handle)
{
    static void *volatile blocks[KEPT_MAX / BLOCK] __attribute__((unused));
    if (is_sealed)
        return 0;
    struct library *library = find_or_add(handle);
    if (!library || kept_count == KEPT_MAX || !is_keeper()) {
        hs_finalize_seal();
        return 0;
    }
    if (kept_count == 0 && !begin_to_keep()) {
        is_sealed = 1;
        return 0;
    }
    /* The heap is to be as if libc kept it. */
    if (kept_count > 0 && kept_count % BLOCK == 0)
        blocks[kept_count / BLOCK] = calloc(1, BLOCK_BYTES);
    if (library->first == library->end)
        library->first = kept_count;
    kept[kept_count].function = function;
    kept[kept_count].argument = argument;
    kept[kept_count].handle = handle;
    library->end = ++kept_count;
    return 1;
}

/* Finds libc's functions before the first copy does. */
void hs_finalize_open(void)
{
    resolve();
}

HS_EXPORT void __cxa_finalize(void *handle)
{
    resolve();
    struct library *library = find(handle);
    /* Before main: what is registered meanwhile is for libc to call. */
    if (!handle || (library && library->first != library->end))
        hs_finalize_seal();
    const int anybody = !handle || __atomic_load_n(&is_full, __ATOMIC_RELAXED) || __atomic_load_n(&closing, __ATOMIC_RELAXED);
    if (anybody || (library && __atomic_load_n(&library->in_libc, __ATOMIC_RELAXED)))
        next.finalize(handle);
    if (!library)
        return;
    for (unsigned at = library->end; at-- > library->first;) {
        if (kept[at].handle != handle)
            continue;
        const unsigned before = registered();
        call(at, 0);
        /* What that one registered has its turn before the next. */
        if (registered() != before)
            next.finalize(handle);
    }
    if (__atomic_load_n(&library->has_others, __ATOMIC_RELAXED))
        next.finalize(library);
}

HS_EXPORT int dlclose(void *handle)
{
    resolve();
    hs_watch_touch();
    __atomic_add_fetch(&closing, 1, __ATOMIC_RELAXED);
    const int result = next.dlclose(handle);
    __atomic_sub_fetch(&closing, 1, __ATOMIC_RELAXED);
    return result;
}

static int pass_on(hs_handler *function, void *argument, void *handle)
{
    resolve();
    struct library *library = find_or_add(handle);
    if (library)
        __atomic_store_n(&library->in_libc, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&registrations, 1, __ATOMIC_RELAXED);
    return next.atexit(function, argument, handle);
}

static __attribute__((noinline)) int keep_or_pass_on(hs_handler *function, void *argument, void *handle)
{
    resolve();
    return keep(function, argument, handle) ? 0 : pass_on(function, argument, handle);
}

/* Clears the stack that was used. ld.so has main's arguments in registers while it calls constructors; where those were
 * saved, a variable of the constructor may lie next that is never set, but copied: then they would look kept (snapshot.c). */
static __attribute__((noinline)) int wiped(int result)
{
    char used[1024];
    memset(used, 0, sizeof used);
    __asm__ volatile("" : : "r"(used) : "memory");
    return result;
}

HS_EXPORT int __cxa_atexit(hs_handler *function, void *argument, void *handle)
{
    if (is_sealed)
        return pass_on(function, argument, handle);
    return wiped(keep_or_pass_on(function, argument, handle));
}

/* The end of a library takes back what it has registered in these ways, too, but only when all else of it was called. */
static void *others_handle(void *handle)
{
    resolve();
    struct library *library = find_or_add(handle);
    if (!library)
        return handle;
    __atomic_store_n(&library->has_others, 1, __ATOMIC_RELAXED);
    return library;
}

HS_EXPORT int __cxa_at_quick_exit(void (*function)(void *), void *handle)
{
    handle = others_handle(handle);
    return next.at_quick_exit(function, handle);
}

HS_EXPORT int __register_atfork(hs_function *prepare, hs_function *parent, hs_function *child, void *handle)
{
    handle = others_handle(handle);
    return next.register_atfork(prepare, parent, child, handle);
}

/* What stands in for one of libc's functions that are noticed here, or else the function itself. */
void *hs_finalize_stand_in(void *function)
{
    if (!function)
        return NULL;
    if (function == (void *)next.finalize)
        return (void *)__cxa_finalize;
    if (function == (void *)next.dlclose)
        return (void *)dlclose;
    if (function == (void *)next.atexit)
        return (void *)__cxa_atexit;
    if (function == (void *)next.at_quick_exit)
        return (void *)__cxa_at_quick_exit;
    if (function == (void *)next.register_atfork)
        return (void *)__register_atfork;
    return function;
}
