/* Spares libraries that have nothing to do at the end looking for it.
 *
 * When a process exits, each library calls __cxa_finalize, which goes through all that anybody has registered with
 * __cxa_atexit: thousands of entries, where LLVM's library is among them, once for each of opt's twenty libraries, of which
 * fifteen have registered nothing. Here it is noted who has, and for who has not it is left out: opt on one function takes
 * 5 % less. Only at the process's end: what is closed before goes the usual way.
 *
 * Who has once registered something is not forgotten, whatever run of this worker it was in: at worst a search finds
 * nothing. What is registered in a way that is not seen here (by a pointer got with dlsym from libc's handle) is called all
 * the same, by exit itself, after the libraries' own ends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "runtime.h"

#define LIBRARIES_MAX 256

/* What libraries are told apart by: the address of a variable in each. The count goes past the end where there is no room
 * for all: then everybody searches. */
static void *registered[LIBRARIES_MAX];
static unsigned registered_count;

/* How many calls of dlclose are under way. */
static unsigned closing;

typedef void hs_function(void);

static struct {
    void (*finalize)(void *);
    int (*dlclose)(void *);
    int (*atexit)(void (*)(void *), void *, void *);
    int (*at_quick_exit)(void (*)(void *), void *);
    int (*register_atfork)(hs_function *, hs_function *, hs_function *, void *);
} next;

/* No header has them. */
void __cxa_finalize(void *library);
int __cxa_atexit(void (*function)(void *), void *argument, void *library);
int __cxa_at_quick_exit(void (*function)(void *), void *library);
int __register_atfork(hs_function *prepare, hs_function *parent, hs_function *child, void *library);

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
}

static int has_registered(const void *library)
{
    const unsigned count = __atomic_load_n(&registered_count, __ATOMIC_ACQUIRE);
    if (count > LIBRARIES_MAX)
        return 1;
    for (unsigned i = count; i-- > 0;)
        if (__atomic_load_n(&registered[i], __ATOMIC_RELAXED) == library)
            return 1;
    return 0;
}

/* Two threads may note one library twice. */
static void note(void *library)
{
    resolve();
    if (has_registered(library))
        return;
    const unsigned place = __atomic_fetch_add(&registered_count, 1, __ATOMIC_ACQ_REL);
    if (place < LIBRARIES_MAX)
        __atomic_store_n(&registered[place], library, __ATOMIC_RELEASE);
}

/* Finds libc's functions before the first copy does. */
void hs_finalize_open(void)
{
    resolve();
}

HS_EXPORT void __cxa_finalize(void *library)
{
    resolve();
    if (__atomic_load_n(&closing, __ATOMIC_RELAXED) || has_registered(library))
        next.finalize(library);
}

HS_EXPORT int dlclose(void *library)
{
    resolve();
    __atomic_add_fetch(&closing, 1, __ATOMIC_RELAXED);
    const int result = next.dlclose(library);
    __atomic_sub_fetch(&closing, 1, __ATOMIC_RELAXED);
    return result;
}

HS_EXPORT int __cxa_atexit(void (*function)(void *), void *argument, void *library)
{
    note(library);
    return next.atexit(function, argument, library);
}

/* The end of a library takes back what it has registered in these ways as well. */
HS_EXPORT int __cxa_at_quick_exit(void (*function)(void *), void *library)
{
    note(library);
    return next.at_quick_exit(function, library);
}

HS_EXPORT int __register_atfork(hs_function *prepare, hs_function *parent, hs_function *child, void *library)
{
    note(library);
    return next.register_atfork(prepare, parent, child, library);
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
