/* Inspects a stopped process for anything by which a fork would differ from a fresh process. Whatever is found makes the tool cold: nothing
 * is repaired here.
 */
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime.h"

/* At most so large is libc's record of a thread (struct pthread); a thread's variables lie before it. */
#define RECORD 4096

/* A byte for each page of the part that is being scanned; in the runtime's own data, which is not scanned. */
static char residency[16384];

static int timers_armed(void)
{
    struct itimerval timer;
    char text[64];
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
        if (getitimer(which, &timer) == 0 && (timer.it_value.tv_sec || timer.it_value.tv_usec))
            return 1;
    return hs_marks_timers() || hs_read_whole("/proc/self/timers", text, sizeof text) > 0;
}

static int signals_touched(void)
{
    sigset_t blocked, pending;
    stack_t stack;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    sigpending(&pending);
    sigaltstack(NULL, &stack);
    for (int number = 1; number < _NSIG; number++)
        if (sigismember(&blocked, number) == 1 || sigismember(&pending, number) == 1)
            return 1;
    return !(stack.ss_flags & SS_DISABLE);
}

static int stdio_touched(void)
{
    struct stat output;
    if (stdin->_IO_buf_base || stdout->_IO_buf_base || stderr->_IO_buf_base)
        return 1;
    return fstat(1, &output) != 0 || output.st_size != 0;
}

/* Whether anything was written, or waits to be. Python may have taken the streams of libc their buffers. */
static int output_made(void)
{
    struct stat output;
    for (int fd = 1; fd <= 2; fd++)
        if (fstat(fd, &output) != 0 || output.st_size != 0)
            return 1;
    return __fpending(stdout) || __fpending(stderr);
}

static int children_left(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static int descriptors_opened(void)
{
    unsigned long total;
    int count = hs_count_entries("/proc/self/fd", &total);
    return count != 6 || total != 0 + 1 + 2 + HS_SLOTS_FD + HS_CONTROL_FD + HS_RUNTIME_FD;
}

/* The parts of the block on the stack that the tool keeps, in whatever memory it has. Each request has its list of arguments where the
 * zygote has its own. The observer finds tools that keep its length (crates/launch/src/warm/observe/compare.rs). */
enum { KEPT_STRING = 1, KEPT_ENVIRONMENT = 2 };

/* libc and ld.so themselves keep the lists and the name. What else they have they were given (on_exit, optarg). */
static unsigned kept(uintptr_t word, const struct hs_start *start, uintptr_t low, uintptr_t high, int is_libcs)
{
    if (!is_libcs && word == (uintptr_t)start->envp)
        return KEPT_ENVIRONMENT;
    if (word < low || word >= high)
        return 0;
    if (word < (*start->envp ? (uintptr_t)*start->envp : high))
        return is_libcs && word <= low + strlen(start->argv[0]) ? 0 : KEPT_STRING;
    for (char **var = start->envp; *var; var++)
        if (word >= (uintptr_t)*var && word <= (uintptr_t)*var + strlen(*var))
            return KEPT_ENVIRONMENT;
    return 0;
}

/* Variables of libc that point there by design, which ld.so may have placed in the program's own data; and libc's record of the thread,
 * where it keeps the end of the stack. */
static int of_libc(const uintptr_t *place)
{
    extern char **environ, *program_invocation_name, *program_invocation_short_name;
    const uintptr_t record = (uintptr_t)__builtin_thread_pointer();
    if ((uintptr_t)place - record < RECORD)
        return 1;
    const void *own[] = {&environ, &program_invocation_name, &program_invocation_short_name};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (place == own[i])
            return 1;
    return 0;
}

/* Only pages that exist are looked at: reading others would make them. */
static unsigned scan(uintptr_t from, uintptr_t to, const struct hs_start *start, int is_libcs)
{
    uintptr_t low, high;
    unsigned found = 0;
    const size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    hs_title_stack(&low, &high);
    while (from < to) {
        size_t size = to - from;
        if (size > sizeof residency * page_size)
            size = sizeof residency * page_size;
        if (mincore((void *)from, size, (unsigned char *)residency) != 0)
            return found;
        for (size_t page = 0; page < size / page_size; page++) {
            if (!(residency[page] & 1))
                continue;
            const uintptr_t *word = (const uintptr_t *)(from + page * page_size);
            for (size_t i = 0; i < page_size / sizeof *word; i++)
                /* Nearly no word leads there, so this comes first. */
                if ((word[i] - low < high - low || word[i] == (uintptr_t)start->envp) && !of_libc(&word[i]))
                    found |= kept(word[i], start, low, high, is_libcs);
        }
        from += size;
    }
    return found;
}

static int starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The runtime keeps such pointers by design, and renews their targets. The frames of libc are on the stack. */
static int keeps_by_design(const struct hs_mapping *map)
{
    return starts(map->path, "/memfd:hotstart") || strcmp(map->path, "[stack]") == 0 || hs_own_has(map->from, map->to - map->from);
}

/* Pointers to variables in what the loader has made read-only, its own data among it. */
static int scan_sealed(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct hs_start *start = data;
    extern const char __ehdr_start[] HS_HIDDEN;
    (void)size;
    if (info->dlpi_addr == (uintptr_t)__ehdr_start)
        return 0;
    unsigned found = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const part = &info->dlpi_phdr[i];
        const uintptr_t from = info->dlpi_addr + part->p_vaddr, page = 4096;
        if (part->p_type == PT_GNU_RELRO)
            found |= scan(from & -page, (from + part->p_memsz) & -page, start, 1);
    }
    return (found & KEPT_ENVIRONMENT) != 0;
}

/* Without `start`, what the tool keeps of its arguments and its environment does not matter. */
static uint32_t mapping_doubts(const struct hs_start *start)
{
    uint32_t found = 0;
    unsigned keeps = 0;
    struct hs_mapping now, last = {0, 0, "", ""};
    /* It reads the list itself. */
    hs_imports_prepare();
    const char *at = hs_maps_read();
    uintptr_t own = (uintptr_t)at;
    if (!at)
        return HS_DOUBT_KERNEL;
    while ((at = hs_maps_next(at, &now))) {
        if (!*now.path && now.from == last.to)
            now.path = last.path; /* the tail of an object's data */
        last = now;
        if (now.access[1] != 'w' || (own >= now.from && own < now.to))
            continue;
        if (now.access[3] == 's')
            found |= HS_DOUBT_SHARED;
        else if (start && !keeps_by_design(&now))
            keeps |= scan(now.from, now.to, start, hs_imports_is_libcs(now.path));
    }
    if (start && dl_iterate_phdr(scan_sealed, (void *)start))
        keeps |= KEPT_ENVIRONMENT;
    if (keeps & KEPT_STRING)
        found |= HS_DOUBT_ARGUMENTS;
    if (keeps & KEPT_ENVIRONMENT)
        found |= HS_DOUBT_CAPTURED;
    return found;
}

/* Whether a constructor has changed the names by which libc calls the program, which each start has anew. */
static int names_changed(char *name)
{
    extern char *program_invocation_name, *program_invocation_short_name;
    char *slash = strrchr(name, '/');
    return program_invocation_name != name || program_invocation_short_name != (slash ? slash + 1 : name);
}

/* Both kinds of zygotes: those that are stopped in place of main, and Python scripts that have halted. */
static uint32_t process_doubts(void)
{
    unsigned long total;
    uint32_t found = 0;
    if (hs_count_entries("/proc/self/task", &total) != 1)
        found |= HS_DOUBT_THREADS;
    if (descriptors_opened())
        found |= HS_DOUBT_DESCRIPTORS;
    if (timers_armed())
        found |= HS_DOUBT_TIMERS;
    if (signals_touched())
        found |= HS_DOUBT_SIGNALS;
    if (children_left())
        found |= HS_DOUBT_CHILDREN;
    if (!hs_imports_are_libcs() || !hs_imports_keep_order() || !hs_exports_hide_libcs())
        found |= HS_DOUBT_FUNCTIONS;
    return found;
}

uint32_t hs_snapshot_doubts(const struct hs_start *start)
{
    extern char **environ;
    uint32_t found = process_doubts() | mapping_doubts(start);
    /* libc gives main what environ is now. */
    if (environ != start->envp || start->envp != start->argv + start->argc + 1)
        found |= HS_DOUBT_ENVIRON;
    if (names_changed(start->argv[0]))
        found |= HS_DOUBT_ARGUMENTS;
    if (stdio_touched())
        found |= HS_DOUBT_STDIO;
    return found;
}

/* Python has read its arguments and its environment. Each fork renews both (python/resume.c). */
uint32_t hs_snapshot_doubts_of_python(void)
{
    const uint32_t found = process_doubts() | mapping_doubts(NULL);
    return output_made() ? found | HS_DOUBT_STDIO : found;
}
