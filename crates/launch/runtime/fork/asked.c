/* Records the environment variables that constructors ask for, and calls whose answer differs from process to process. The names go
 * into the zygote's key; any of the calls keeps the tool cold.
 *
 * Only calls across libraries are seen. libc's own questions (locale, allocator, time zone) are about fixed names, which are in the key
 * anyway. After the snapshot each function only calls the next definition.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "runtime.h"

#define NAMES_ROOM 4096

/* No header has it. */
int __cxa_atexit(void (*function)(void *), void *argument, void *library);

/* `names` holds `count` different names, each with its NUL, in `length` bytes. Those before `since` are in the zygote's key. Nothing is
 * recorded while `stopped`. */
static struct {
    char names[NAMES_ROOM];
    size_t length;
    uint32_t count;
    uint32_t doubts;
    size_t since;
    int stopped;
    int resumed; /* main records, in a worker */
    int is_python; /* names only: calls are judged by traps (python/traps.c) and by the observer */
} asked;

/* The next definition of each function; all are looked up before the snapshot at the latest, so that no fork has to. */
static struct {
    __typeof__(getenv) *getenv;
    __typeof__(secure_getenv) *secure_getenv;
    __typeof__(getcwd) *getcwd;
    __typeof__(dlinfo) *dlinfo;
    __typeof__(getpid) *getpid;
    __typeof__(getppid) *getppid;
    __typeof__(sched_getcpu) *sched_getcpu;
    int (*getcpu)(unsigned *, unsigned *);
    __typeof__(time) *time;
    __typeof__(gettimeofday) *gettimeofday;
    __typeof__(clock_gettime) *clock_gettime;
    __typeof__(getrandom) *getrandom;
    __typeof__(getentropy) *getentropy;
    __typeof__(__cxa_atexit) *__cxa_atexit;
} next;

#define RESOLVE(name) (next.name = (__typeof__(next.name))dlsym(RTLD_NEXT, #name))

static void resolve(void)
{
    if (next.getentropy)
        return;
    RESOLVE(getenv);
    RESOLVE(secure_getenv);
    RESOLVE(getcwd);
    RESOLVE(dlinfo);
    RESOLVE(getpid);
    RESOLVE(getppid);
    RESOLVE(sched_getcpu);
    RESOLVE(getcpu);
    RESOLVE(time);
    RESOLVE(gettimeofday);
    RESOLVE(clock_gettime);
    RESOLVE(getrandom);
    RESOLVE(__cxa_atexit);
    RESOLVE(getentropy);
}

/* The functions below serve a tool that asks for a variable. libc's string functions would leave in vector and mask registers what lies
 * behind a name: a watched run keeps its registers (point.c). */
static size_t length_of(const char *string)
{
    const char *end = string;
    for (; *end; end++)
        __asm__ volatile("" : "+r"(end)); /* else the compiler may call strlen */
    return (size_t)(end - string);
}

static int equal(const char *a, const char *b, size_t length)
{
    for (; length && *a == *b; length--)
        a++, b++;
    return !length && !*a;
}

static int recorded(const char *name, size_t length)
{
    for (size_t at = 0; at < asked.length; at += length_of(asked.names + at) + 1)
        if (equal(asked.names + at, name, length))
            return 1;
    return 0;
}

static void record(const char *name)
{
    size_t length = length_of(name);
    if (recorded(name, length))
        return;
    if (length + 1 > NAMES_ROOM - asked.length) {
        asked.doubts |= HS_DOUBT_ASKED_FULL;
        return;
    }
    for (size_t i = 0; i <= length; i++) {
        asked.names[asked.length + i] = name[i];
        __asm__ volatile("" : : : "memory"); /* nor memcpy */
    }
    asked.length += length + 1;
    asked.count++;
}

static void *base_of(const void *address)
{
    Dl_info info;
    return address && dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* An allocator that was put in the place of libc's asks for time and random bytes to lay out its memory, which a
 * zygote's forks share in any case. One within the executable cannot be told from the rest of that, which may ask for the
 * time to keep it: only the coarse clock passes, by which jemalloc (in rustc) tells when to give memory back. */
static int is_allocator(const void *caller, int is_coarse)
{
    static void *allocator, *program;
    if (!allocator) {
        allocator = base_of(dlsym(RTLD_DEFAULT, "malloc"));
        program = base_of((void *)getauxval(AT_PHDR));
    }
    return allocator && base_of(caller) == allocator && (allocator != program || is_coarse);
}

/* Returns whether the allocator asks, which is then reported to an observer. */
static int doubt(uint32_t what, const void *caller, int is_coarse)
{
    resolve();
    if (asked.stopped)
        return 0;
    /* In a worker, a run is watched. A call whose answer differs from run to run ends the watch before it is answered. */
    if (asked.resumed) {
        hs_watch_touch();
        return 0;
    }
    if (asked.is_python)
        return 0;
    const int allocator = is_allocator(caller, is_coarse);
    if (!allocator)
        asked.doubts |= what;
    return allocator;
}

#define DOUBT(what, is_coarse) doubt(what, __builtin_return_address(0), is_coarse)

static void tell(int allocator, long mark)
{
    if (allocator)
        HS_SYS(SYS_close, mark);
}

/* Makes a call that tells the allocator the time, or gives it random bytes. */
#define ANSWER(type, call, is_coarse)                       \
    const int allocator = DOUBT(HS_DOUBT_CLOCK, is_coarse); \
    tell(allocator, HS_MARK_ALLOCATOR);                     \
    const type answered = call;                             \
    tell(allocator, HS_MARK_ALLOCATED);                     \
    return answered

static void ask(const char *name)
{
    resolve();
    if (!asked.stopped)
        record(name);
}

/* Records a variable that Python code asks for. */
void hs_asked_record(const char *name)
{
    if (!asked.stopped)
        record(name);
}

void hs_asked_leave_to_python(void)
{
    asked.is_python = 1;
    asked.doubts &= HS_DOUBT_ASKED_FULL;
}

/* Records again, in a worker, the names that main asks for. */
void hs_asked_resume(void)
{
    if (!asked.resumed)
        asked.since = asked.length;
    asked.resumed = 1;
    asked.doubts = 0;
    asked.stopped = 0;
}

/* The names since then, each ended by a NUL, an empty one last; NULL if they are not all there. */
const char *hs_asked_since(void)
{
    if (NAMES_ROOM - asked.length == 0)
        return NULL;
    asked.names[asked.length] = 0;
    return asked.names + asked.since;
}

void hs_asked_stop(void)
{
    resolve();
    asked.stopped = 1;
}

uint32_t hs_asked_doubts(void)
{
    return asked.doubts;
}

/* Whether the variable of "NAME=value" was asked for. */
int hs_asked_for(const char *assignment)
{
    const char *sign = strchr(assignment, '=');
    return sign && recorded(assignment, (size_t)(sign - assignment));
}

size_t hs_asked_names(char *out, size_t room, uint32_t *count)
{
    size_t length = asked.length <= room ? asked.length : 0;
    memcpy(out, asked.names, length);
    *count = length ? asked.count : 0;
    return length;
}

/* Reports to an observer that constructors are over, or that a Python script has halted, and the names that they asked for. */
void hs_asked_tell(uint64_t place)
{
    extern char **environ;
    const struct hs_observed observed = {(uintptr_t)asked.names, asked.length, (uintptr_t)&environ, place};
    /* At main this is another stack than the tool's. */
    const uintptr_t stack = place ? (uintptr_t)__builtin_frame_address(0) : hs_frame.stack;
    HS_SYS(SYS_close, HS_MARK_MAIN, &observed, stack, HS_CALLER_FRAME);
}

static char *find(char *(*function)(const char *), const char *name)
{
    char *value;
    if (!hs_watch_ask(name, &value))
        return function(name);
    hs_watch_wipe();
    return value;
}

HS_EXPORT char *getenv(const char *name)
{
    hs_watch_pass(name);
    ask(name);
    return find(next.getenv, name);
}

HS_EXPORT char *secure_getenv(const char *name)
{
    hs_watch_pass(name);
    ask(name);
    return find(next.secure_getenv, name);
}

HS_EXPORT char *getcwd(char *buffer, size_t size)
{
    DOUBT(HS_DOUBT_DIRECTORY, 0);
    return next.getcwd(buffer, size);
}

/* The directories in which the loader looks come from a variable. */
HS_EXPORT int dlinfo(void *restrict handle, int request, void *restrict out)
{
    hs_watch_touch();
    if (request == RTLD_DI_SERINFO || request == RTLD_DI_SERINFOSIZE)
        ask("LD_LIBRARY_PATH");
    if (!next.dlinfo)
        resolve();
    return next.dlinfo(handle, request, out);
}

HS_EXPORT pid_t getpid(void)
{
    DOUBT(HS_DOUBT_IDENTITY, 0);
    return next.getpid();
}

HS_EXPORT pid_t getppid(void)
{
    DOUBT(HS_DOUBT_IDENTITY, 0);
    return next.getppid();
}

/* libc reads the processor's number from memory that the kernel writes. */
HS_EXPORT int sched_getcpu(void)
{
    DOUBT(HS_DOUBT_IDENTITY, 0);
    return next.sched_getcpu();
}

/* libc has it since 2.29. */
HS_EXPORT int getcpu(unsigned *processor, unsigned *node)
{
    DOUBT(HS_DOUBT_IDENTITY, 0);
    return next.getcpu ? next.getcpu(processor, node) : (int)syscall(SYS_getcpu, processor, node, NULL);
}

HS_EXPORT time_t time(time_t *out)
{
    ANSWER(time_t, next.time(out), 0);
}

HS_EXPORT int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    ANSWER(int, next.gettimeofday(out, zone), 0);
}

/* The interpreter's locks read the clock each time, and forget it. Functions that give it to Python code have traps. */
static void excuse(const void *caller)
{
#if HS_RESETS
    static void *interpreter;
    if (!interpreter)
        interpreter = base_of(dlsym(RTLD_DEFAULT, "PyList_New"));
    if (interpreter && base_of(caller) == interpreter)
        HS_SYS(SYS_close, HS_MARK_PYTHON, HS_PYTHON_RENEWS);
#else
    (void)caller;
#endif
}

HS_EXPORT int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (asked.is_python && !asked.stopped && hs_python_is_observed && clock == CLOCK_MONOTONIC)
        excuse(__builtin_return_address(0));
    ANSWER(int, next.clock_gettime(clock, out), clock == CLOCK_MONOTONIC_COARSE);
}

HS_EXPORT ssize_t getrandom(void *buffer, size_t size, unsigned flags)
{
    if (asked.is_python && !asked.stopped)
        hs_python_seeds();
    /* A single byte is read to find out whether the call works (GnuTLS does); it is too little to seed anything. */
    if (size > 1) {
        ANSWER(ssize_t, next.getrandom(buffer, size, flags), 0);
    }
    resolve();
    return next.getrandom(buffer, size, flags);
}

HS_EXPORT int getentropy(void *buffer, size_t size)
{
    ANSWER(int, next.getentropy(buffer, size), 0);
}

/* Clears the stack below the caller's frame. Takes and gives the result so that the caller need not save a register for it. */
static __attribute__((noinline)) int wiped(int result)
{
    char used[1024];
    memset(used, 0, sizeof used);
    __asm__ volatile("" : : "r"(used) : "memory");
    return result;
}

static __attribute__((noinline)) int register_end(void (*function)(void *), void *argument, void *library)
{
    resolve();
    return next.__cxa_atexit(function, argument, library);
}

/* ld.so holds main's arguments in registers while it calls constructors, and libc saves these on the stack here. A constructor that
 * then copies a variable which it has never set (padding, often) would copy them, and seem to have kept them. */
HS_EXPORT int __cxa_atexit(void (*function)(void *), void *argument, void *library)
{
    if (asked.stopped)
        return next.__cxa_atexit(function, argument, library);
    return wiped(register_end(function, argument, library));
}

/* The function to bind in place of one of libc's: the interposed one, if it is recorded, or else itself. */
#define INTERPOSED(name) \
    if (function == (void *)next.name) \
        return (void *)name;

void *hs_asked_interposed(void *function)
{
    if (!function)
        return NULL;
    INTERPOSED(getenv)
    INTERPOSED(secure_getenv)
    INTERPOSED(getcwd)
    INTERPOSED(dlinfo)
    INTERPOSED(getpid)
    INTERPOSED(getppid)
    INTERPOSED(sched_getcpu)
    INTERPOSED(getcpu)
    INTERPOSED(time)
    INTERPOSED(gettimeofday)
    INTERPOSED(clock_gettime)
    INTERPOSED(getrandom)
    INTERPOSED(getentropy)
    return function;
}
