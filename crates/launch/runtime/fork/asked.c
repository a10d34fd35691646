/* Records the environment variables that constructors ask for, and calls whose answer differs from process to process. The names go
 * into the zygote's key; any of the calls keeps the tool cold.
 *
 * Only calls across libraries are seen. libc's own questions (locale, allocator, time zone) are about fixed names, which are in the key
 * anyway. After the snapshot each function only goes on to the next definition, and leaves no frame on the tool's stack: what is called
 * later may read it by mistake. A dry run arrives there, before anything is answered (FORWARD).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
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

/* `names` holds `count` different names, each with its NUL, in `length` bytes. Nothing is recorded while `stopped`. */
static struct {
    char names[NAMES_ROOM];
    size_t length;
    uint32_t count;
    uint32_t doubts;
    int stopped;
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

#if HS_RESETS
/* What the interposed functions do: record first, or go on at once, or arrive first, in a dry run. */
enum { RECORDS, GOES_ON, ARRIVES };
__attribute__((used)) static unsigned char way = RECORDS;
/* A place that cannot be read in a dry run. */
__attribute__((used)) static const char *hidden;
/* LOOK is an instruction that faults in a dry run if it depends on the request. It may change r11. */
#define FORWARD(name, first, look) HS_INTERPOSE(name, "cmpb $1, way(%rip)\n\tjb " first #name "\n\tje 1f\n\t" look "\n1:")
#define AT_REQUEST "mov hidden(%rip), %r11\n\tmovb (%r11), %r11b"
#define AT_NAME "movb (%rdi), %r11b"
#define FUNCTIONS(X)                                                                                                   \
    X(getenv, "record_", AT_NAME) X(secure_getenv, "record_", AT_NAME) X(dlinfo, "record_", AT_REQUEST)                  \
    X(getcwd, "own_", AT_REQUEST) X(getpid, "own_", AT_REQUEST) X(getppid, "own_", AT_REQUEST)                           \
    X(sched_getcpu, "own_", AT_REQUEST) X(getcpu, "own_", AT_REQUEST) X(time, "own_", AT_REQUEST)                        \
    X(gettimeofday, "own_", AT_REQUEST) X(clock_gettime, "own_", AT_REQUEST) X(getrandom, "own_", AT_REQUEST)            \
    X(getentropy, "own_", AT_REQUEST)
FUNCTIONS(FORWARD)
#define FIND(name, first, look) direct_##name = (void *)next.name;
static int own_getcpu(unsigned *processor, unsigned *node);
static int own_dlinfo(void *restrict handle, int request, void *restrict out);

__attribute__((used)) static void *direct___cxa_atexit;
/* Whether a zygote's constructors run. */
__attribute__((used)) static unsigned char covers;

/* What a libc lacks, or has in a library that is loaded later, the runtime answers. */
static void find_rest(void)
{
    if (!direct_getcpu)
        direct_getcpu = (void *)own_getcpu;
    if (!direct_dlinfo)
        direct_dlinfo = (void *)own_dlinfo;
}

static void end_cover(void)
{
    covers = 0;
}

static void set_way(int wanted)
{
    if (wanted == ARRIVES)
        hidden = hs_strings_hidden();
    way = (unsigned char)wanted;
}
#else
#define FIND(name, first, look)
#define FUNCTIONS(X)
#define find_rest()
#define end_cover()
#define set_way(wanted)
#endif

#define RESOLVE(name) (next.name = (__typeof__(next.name))dlsym(RTLD_NEXT, #name))

__attribute__((used)) static void resolve(void)
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
    FUNCTIONS(FIND)
    FIND(__cxa_atexit, , )
    find_rest();
}

static int recorded(const char *name, size_t length)
{
    for (size_t at = 0; at < asked.length; at += strlen(asked.names + at) + 1)
        if (strncmp(asked.names + at, name, length) == 0 && !asked.names[at + length])
            return 1;
    return 0;
}

static void record(const char *name)
{
    const size_t length = strlen(name);
    if (recorded(name, length))
        return;
    if (length + 1 > NAMES_ROOM - asked.length) {
        asked.doubts |= HS_DOUBT_ASKED_FULL;
        return;
    }
    memcpy(asked.names + asked.length, name, length + 1);
    asked.length += length + 1;
    asked.count++;
}

static void *base_of(const void *address)
{
    Dl_info info;
    return address && dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* Libraries whose use of the time and of random bytes is known: it never shows in what a tool does. Allocators lay out their memory by
 * them, which a zygote's forks share in any case. GnuTLS reads one byte, to find out whether the call works. Any library of another name
 * may keep them. */
static const char *const allocators[] = {"libmimalloc", "libjemalloc.so", "libtcmalloc", "librpmalloc", "libsnmalloc"};

static int is_named(const char *path, const char *name)
{
    const char *last = strrchr(path, '/');
    return strncmp(last ? last + 1 : path, name, strlen(name)) == 0;
}

/* Whether it is the library of the user's own choice (--allocator), which ld.so has loaded next to this one. The name by which this one
 * was loaded tells whether there is such a choice. */
static int is_chosen(const char *path)
{
    Dl_info own;
    struct link_map *map;
    return dladdr1((void *)is_chosen, &own, (void **)&map, RTLD_DL_LINKMAP) && strstr(own.dli_fname, HS_CHOSEN_NEXT) && map->l_next &&
           strcmp(map->l_next->l_name, path) == 0;
}

static int is_known_library(const char *path)
{
    for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++)
        if (is_named(path, allocators[i]))
            return 1;
    return is_chosen(path);
}

/* Whether the executable contains jemalloc: by the words before its messages, since not all export its functions. */
static int find_jemalloc(struct dl_phdr_info *info, size_t size, void *found)
{
    static const char words[] = "<jemalloc>: ";
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_R &&
            memmem((void *)(info->dlpi_addr + part->p_vaddr), part->p_filesz, words, sizeof words - 1))
            *(int *)found = 1;
    }
    return 1; /* the executable comes first */
}

static int has_jemalloc(void)
{
    int found = 0;
    dl_iterate_phdr(find_jemalloc, &found);
    return found;
}

/* One within the executable cannot be told from the rest of that, which may ask for the time to keep it. Of jemalloc (in rustc) only the
 * coarse clock passes, by which it tells when to give memory back. */
static int is_allocator(const void *caller, int is_coarse)
{
    static void *allocator, *program;
    static int is_known;
    if (!allocator) {
        Dl_info info;
        void *function = dlsym(RTLD_DEFAULT, "malloc");
        program = base_of((void *)getauxval(AT_PHDR));
        if (!function || !dladdr(function, &info))
            return 0;
        allocator = info.dli_fbase;
        is_known = allocator == program ? has_jemalloc() : is_known_library(info.dli_fname);
    }
    return is_known && base_of(caller) == allocator && (allocator != program || is_coarse);
}

/* Whether a library reads a single byte that is known to forget it. */
static int is_probe(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && is_named(info.dli_fname, "libgnutls.so");
}

enum answer { SOME, COARSE_TIME, BYTE };

/* Returns whether a known library asks, which is then reported to an observer. */
static int doubt(uint32_t what, const void *caller, enum answer answer)
{
    resolve();
    if (asked.stopped)
        return 0;
    if (asked.is_python)
        return 0;
    const int is_known = answer == BYTE ? is_probe(caller) : is_allocator(caller, answer == COARSE_TIME);
    if (!is_known)
        asked.doubts |= what;
    return is_known;
}

#define DOUBT(what, answer) doubt(what, __builtin_return_address(0), answer)

static void tell(int is_known, long mark)
{
    if (is_known)
        HS_SYS(SYS_close, mark);
}

/* Makes a call that tells a known library the time, or gives it random bytes. libc would ask the vDSO, or else the kernel. */
#define ANSWER(type, call, kernels, answer)                    \
    const int is_known = DOUBT(HS_DOUBT_CLOCK, answer);        \
    tell(is_known, HS_MARK_KNOWN);                             \
    const type answered = hs_vdso_is_hidden() ? kernels : call; \
    tell(is_known, HS_MARK_KNOWN_END);                  \
    return answered

__attribute__((used)) static void ask(const char *name)
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
    end_cover();
    asked.is_python = 1;
    asked.doubts &= HS_DOUBT_ASKED_FULL;
}

#if HS_RESETS
/* Has a dry run arrive where it calls any of them. */
void hs_asked_resume(void)
{
    set_way(ARRIVES);
}
#endif

void hs_asked_stop(void)
{
    resolve();
    end_cover();
    asked.stopped = 1;
    set_way(GOES_ON);
}

uint32_t hs_asked_doubts(void)
{
    return asked.doubts;
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
    const struct hs_observed observed = {(uintptr_t)asked.names, asked.length, (uintptr_t)&environ, place, (uintptr_t)hs_real_main};
    /* At main this is another stack than the tool's. */
    const uintptr_t stack = place ? (uintptr_t)__builtin_frame_address(0) : hs_frame.stack;
    HS_SYS(SYS_close, HS_MARK_MAIN, &observed, stack, HS_CALLER_FRAME);
}

HS_OWN char *HS_OWN_NAME(getenv)(const char *name)
{
    ask(name);
    return next.getenv(name);
}

HS_OWN char *HS_OWN_NAME(secure_getenv)(const char *name)
{
    ask(name);
    return next.secure_getenv(name);
}

HS_OWN char *HS_OWN_NAME(getcwd)(char *buffer, size_t size)
{
    DOUBT(HS_DOUBT_DIRECTORY, SOME);
    return next.getcwd(buffer, size);
}

/* The directories in which the loader looks come from a variable. */
__attribute__((used)) static void ask_dlinfo(void *restrict handle, int request)
{
    (void)handle;
    resolve();
    if (request == RTLD_DI_SERINFO || request == RTLD_DI_SERINFOSIZE)
        ask("LD_LIBRARY_PATH");
}

HS_OWN int HS_OWN_NAME(dlinfo)(void *restrict handle, int request, void *restrict out)
{
    ask_dlinfo(handle, request);
    return next.dlinfo(handle, request, out);
}

HS_OWN pid_t HS_OWN_NAME(getpid)(void)
{
    DOUBT(HS_DOUBT_IDENTITY, SOME);
    return next.getpid();
}

HS_OWN pid_t HS_OWN_NAME(getppid)(void)
{
    DOUBT(HS_DOUBT_IDENTITY, SOME);
    return next.getppid();
}

/* libc reads the processor's number from memory that the kernel writes. */
HS_OWN int HS_OWN_NAME(sched_getcpu)(void)
{
    DOUBT(HS_DOUBT_IDENTITY, 0);
    return next.sched_getcpu();
}

/* libc has it since 2.29. */
HS_OWN int HS_OWN_NAME(getcpu)(unsigned *processor, unsigned *node)
{
    DOUBT(HS_DOUBT_IDENTITY, 0);
    return next.getcpu && !hs_vdso_is_hidden() ? next.getcpu(processor, node) : (int)syscall(SYS_getcpu, processor, node, NULL);
}

/* aarch64 has no system call for it. The kernel answers by the coarse clock where there is one. */
static time_t kernels_time(time_t *out)
{
#ifdef SYS_time
    return syscall(SYS_time, out);
#else
    struct timespec now;
    if (syscall(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &now) != 0)
        return -1;
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
#endif
}

HS_OWN time_t HS_OWN_NAME(time)(time_t *out)
{
    ANSWER(time_t, next.time(out), kernels_time(out), SOME);
}

HS_OWN int HS_OWN_NAME(gettimeofday)(struct timeval *restrict out, void *restrict zone)
{
    ANSWER(int, next.gettimeofday(out, zone), (int)syscall(SYS_gettimeofday, out, zone), SOME);
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

HS_OWN int HS_OWN_NAME(clock_gettime)(clockid_t clock, struct timespec *out)
{
    if (asked.is_python && !asked.stopped && hs_python_is_observed && clock == CLOCK_MONOTONIC)
        excuse(__builtin_return_address(0));
    ANSWER(int, next.clock_gettime(clock, out), (int)syscall(SYS_clock_gettime, clock, out),
           clock == CLOCK_MONOTONIC_COARSE ? COARSE_TIME : SOME);
}

HS_OWN ssize_t HS_OWN_NAME(getrandom)(void *buffer, size_t size, unsigned flags)
{
    if (asked.is_python && !asked.stopped)
        hs_python_seeds();
    ANSWER(ssize_t, next.getrandom(buffer, size, flags), syscall(SYS_getrandom, buffer, size, flags), size == 1 ? BYTE : SOME);
}

HS_OWN int HS_OWN_NAME(getentropy)(void *buffer, size_t size)
{
    ANSWER(int, next.getentropy(buffer, size), next.getentropy(buffer, size), SOME);
}

__attribute__((noinline, used)) static int register_end(void (*function)(void *), void *argument, void *library)
{
    resolve();
    return next.__cxa_atexit(function, argument, library);
}

#if HS_RESETS
/* Before main, each of these works on a stack of its own, or leaves on the tool's what libc's own function leaves there: a constructor may
 * read what its stack had before. */
#define RECORDER_BYTES (64 * 1024ul)
static char recorder_stack[RECORDER_BYTES] __attribute__((aligned(64)));
__attribute__((used)) static void *const recorder_top = recorder_stack + sizeof recorder_stack;
/* Where the tool's stack is meanwhile, else 0. An allocator of the tool's own may ask for a variable while functions are looked up. */
__attribute__((used)) static uintptr_t recorded_from;

/* Calls `work` with the first three arguments on the other stack, and leaves these as they were. Goes to `nested` if that is in use, by
 * this thread or another. */
#define APART(work, nested)                                                                                              \
    "xor %eax, %eax\n\tmov %rsp, %r11\n\tlock cmpxchg %r11, recorded_from(%rip)\n\tjne " nested "\n\t"                    \
    "mov recorder_top(%rip), %rsp\n\tpush %rdi\n\tpush %rsi\n\tpush %rdx\n\tpush %rdx\n\t" HS_WITH_VECTORS("call " work)             \
    "pop %rdx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n\tmov recorded_from(%rip), %rsp\n\tmovq $0, recorded_from(%rip)\n\t"
#define RECORD(name, work)                                                                                               \
    __attribute__((naked, used)) static void record_##name(void)                                                          \
    {                                                                                                                    \
        __asm__(APART(#work, "own_" #name) "jmp *direct_" #name "(%rip)");                                                \
    }
RECORD(getenv, ask)
RECORD(secure_getenv, ask)
RECORD(dlinfo, ask_dlinfo)

/* What constructors are called with, which ld.so and libc have in registers then; and the registers that a function keeps. */
__attribute__((used)) static struct hs_start given;
__attribute__((used)) static uint64_t kept[6];
/* Where libc's function returns to, while it runs. */
__attribute__((used)) static uintptr_t registered_from;

void hs_asked_begin(const struct hs_start *start)
{
    given = *start;
    covers = 1;
    resolve();
}

#define KEEP(name, place) "mov %" name ", kept+" place "(%rip)\n\t"
/* The number of arguments stays a number: 1. */
#define COVER(name, place)                                                                                               \
    "mov given(%rip), %eax\n\tmov $1, %r11d\n\tcmp %rax, %" name "\n\tcmove %r11, %" name "\n\tlea given(%rip), %r11\n\t"   \
    "cmp given+8(%rip), %" name "\n\tcmove %r11, %" name "\n\tcmp given+16(%rip), %" name "\n\tcmove %r11, %" name "\n\t"
#define RETURN(name, place) "mov kept+" place "(%rip), %" name "\n\t"
#define EACH(X) X("rbx", "0") X("rbp", "8") X("r12", "16") X("r13", "24") X("r14", "32") X("r15", "40")

/* ld.so holds main's arguments in registers while it calls constructors, and libc saves these on the stack here. A constructor that
 * then copies a variable which it has never set (padding, often) would copy them, and seem to have kept them. So libc's function is called
 * with an address of the runtime's in their place, which is the same in all observation runs of an exec. */
__attribute__((naked)) HS_EXPORT int __cxa_atexit(void (*function)(void *) __attribute__((unused)), void *argument __attribute__((unused)),
                                                  void *library __attribute__((unused)))
{
    __asm__("cmpq $0, direct___cxa_atexit(%rip)\n\tjne 1f\n\t" APART("resolve", "register_end")
            "1:\tcmpb $0, covers(%rip)\n\tje 2f\n\tmov (%rsp), %rcx\n\txor %eax, %eax\n\t"
            "lock cmpxchg %rcx, registered_from(%rip)\n\tjne 2f\n\t" EACH(KEEP) EACH(COVER)
            "lea 3f(%rip), %rax\n\tmov %rax, (%rsp)\n\t"
            "2:\tjmp *direct___cxa_atexit(%rip)\n"
            "3:\t" EACH(RETURN) "mov registered_from(%rip), %rcx\n\tmovq $0, registered_from(%rip)\n\t"
            "mov %rcx, -8(%rsp)\n\tjmp *%rcx");
}
#else
/* Clears the stack below the caller's frame. Takes and gives the result so that the caller need not save a register for it. */
static __attribute__((noinline)) int wiped(int result)
{
    char used[1024];
    memset(used, 0, sizeof used);
    __asm__ volatile("" : : "r"(used) : "memory");
    return result;
}

/* ld.so holds main's arguments in registers while it calls constructors, and libc saves these on the stack here. A constructor that
 * then copies a variable which it has never set (padding, often) would copy them, and seem to have kept them. */
HS_EXPORT int __cxa_atexit(void (*function)(void *), void *argument, void *library)
{
    if (asked.stopped)
        return next.__cxa_atexit(function, argument, library);
    return wiped(register_end(function, argument, library));
}
#endif

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
