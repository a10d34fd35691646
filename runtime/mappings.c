/* Follows the mappings that a run of main makes, so that they can be undone.
 *
 * libc's functions are replaced at their own addresses, in the worker's copies of libc's pages, because libc's allocator
 * calls them without going through any table. The replacements make the same system calls and keep a list. ld.so has
 * its own; what it maps is noticed by the sum of all mappings, which does not come out, and retires the worker. So does
 * a change to a mapping that was there before main.
 *
 * The heap stays as large as a run has made it, up to a limit, so that the next run takes no faults; to libc it begins as
 * small as it was, and what it is given reads as zero.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"

#if HS_REWIND

#define PAGE 4096ul
#define RANGES_MAX 4096
#define BASE_MAX 2048
#define HEAP_KEPT (32ul << 20)
#define WAITS_MAX 2000000

struct range {
    uintptr_t from, to;
    /* Ordinary memory of a size and place that the kernel chose, with nothing set since. */
    int is_plain;
};

static struct range ranges[RANGES_MAX];
static size_t range_count;
/* Something was done that the list cannot tell how to undo. */
static int lost;
/* The thread that changes the list. */
static int lock;
static int process;

static uintptr_t heap_start;  /* as the kernel has it */
static uintptr_t kernel_end;  /* the kernel's break */
static uintptr_t given_end;   /* libc's */
static uintptr_t highest;     /* the most that libc was given in this run */
static unsigned long base_pages; /* sum of all mappings when the worker began */
static uintptr_t base_stack;

extern void *__curbrk;

/* Threads of the tool may map at the same time. A handler that interrupts its own thread must not wait for itself, nor a
 * process that was forked meanwhile for a thread that it does not have; that is none of the worker's, and needs no list. */
static int take_lock(void)
{
    const int thread = (int)HS_SYS(SYS_gettid);
    for (long i = 0; !lost && i < WAITS_MAX; i++) {
        int owner = 0;
        if (__atomic_compare_exchange_n(&lock, &owner, thread, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 1;
        if (owner == thread)
            break;
        if (i == 0 && (int)HS_SYS(SYS_getpid) != process)
            return 0;
        HS_SYS(SYS_sched_yield);
    }
    lost = 1;
    return 0;
}

static void give_lock(int taken)
{
    if (taken)
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static uintptr_t round_up(uintptr_t size)
{
    return (size + PAGE - 1) & -PAGE;
}

static void add(uintptr_t from, uintptr_t to, int plain)
{
    if (range_count < RANGES_MAX)
        ranges[range_count++] = (struct range){from, to, plain};
    else
        lost = 1;
}

/* Pages are not kept by a process that may have done to them what is not seen here, or may have lent them to a pipe. */
static int may_keep(int taken)
{
    return taken && !lost && !hs_marks_seen();
}

static int is_plain(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < range_count; i++)
        if (ranges[i].from == from && ranges[i].to == to)
            return ranges[i].is_plain;
    return 0;
}

/* From..to is something that a fresh mapping would not be. */
static void make_special(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < range_count; i++)
        if (ranges[i].from < to && from < ranges[i].to)
            ranges[i].is_plain = 0;
}

/* How much of from..to this run has made. */
static uintptr_t covered(uintptr_t from, uintptr_t to)
{
    uintptr_t sum = 0;
    for (size_t i = 0; i < range_count; i++) {
        uintptr_t low = ranges[i].from > from ? ranges[i].from : from;
        uintptr_t high = ranges[i].to < to ? ranges[i].to : to;
        if (low < high)
            sum += high - low;
    }
    return sum;
}

static void take_out(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < range_count;) {
        struct range now = ranges[i];
        if (now.to <= from || now.from >= to) {
            i++;
            continue;
        }
        ranges[i] = ranges[--range_count];
        if (now.from < from)
            add(now.from, from, 0);
        if (now.to > to)
            add(to, now.to, 0);
    }
}

/* Notes that from..to is no longer what it was. */
static void gone(uintptr_t from, uintptr_t to)
{
    if (covered(from, to) != to - from)
        lost = 1;
    take_out(from, to);
}

static long result(long value)
{
    if (value >= 0 || value < -4095)
        return value;
    errno = (int)-value;
    return -1;
}

/* Kept pages count for the limits that a process may have set itself. */
static long make(long number, long a, long b, long c, long d, long e, long f)
{
    long made = HS_SYS(number, a, b, c, d, e, f);
    return made == -ENOMEM && hs_kept_drop() ? HS_SYS(number, a, b, c, d, e, f) : made;
}

static void *map_memory(void *address, size_t length, int access, int flags, int fd, off_t offset)
{
    int taken = take_lock();
    if (address)
        hs_kept_avoid((uintptr_t)address, (uintptr_t)address + round_up(length));
    long made = make(SYS_mmap, (long)address, (long)length, access, flags, fd, offset);
    if (made >= 0 || made < -4095) {
        uintptr_t from = (uintptr_t)made, to = from + round_up(length);
        int plain = !address && access == (PROT_READ | PROT_WRITE) && flags == (MAP_PRIVATE | MAP_ANONYMOUS);
        if (flags & MAP_FIXED && covered(from, to) != to - from)
            lost = 1;
        take_out(from, to);
        if (!plain || !may_keep(taken) || hs_kept_give(from, to - from) == 0)
            add(from, to, plain);
        else
            made = -ENOMEM;
    }
    give_lock(taken);
    return (void *)result(made);
}

static int unmap_memory(void *address, size_t length)
{
    int taken = take_lock();
    uintptr_t from = (uintptr_t)address, to = from + round_up(length);
    int is_kept = may_keep(taken) && is_plain(from, to) && hs_kept_take(from, to);
    long done = is_kept ? 0 : HS_SYS(SYS_munmap, address, length);
    if (done == 0)
        gone(from, to);
    give_lock(taken);
    return (int)result(done);
}

static void *remap_memory(void *address, size_t length, size_t new_length, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *wanted = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    int taken = take_lock();
    if (wanted)
        hs_kept_avoid((uintptr_t)wanted, (uintptr_t)wanted + round_up(new_length));
    long made = make(SYS_mremap, (long)address, (long)length, (long)new_length, flags, (long)wanted, 0);
    if (made >= 0 || made < -4095) {
        uintptr_t from = (uintptr_t)address, to = (uintptr_t)made;
        int plain = !(flags & ~MREMAP_MAYMOVE) && is_plain(from, from + round_up(length));
        if (flags & MREMAP_FIXED)
            lost = 1;
        gone(from, from + round_up(length));
        take_out(to, to + round_up(new_length));
        add(to, to + round_up(new_length), plain);
    }
    give_lock(taken);
    return (void *)result(made);
}

static int protect_memory(void *address, size_t length, int access)
{
    int taken = take_lock();
    uintptr_t from = (uintptr_t)address, to = from + round_up(length);
    if (covered(from, to) != to - from)
        lost = 1;
    make_special(from, to);
    long done = HS_SYS(SYS_mprotect, address, length, access);
    give_lock(taken);
    return (int)result(done);
}

static long advise(void *address, size_t length, int advice)
{
    const int leaves_nothing = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_WILLNEED ||
                               advice == MADV_PAGEOUT;
    int taken = leaves_nothing ? 0 : take_lock();
    if (taken)
        make_special((uintptr_t)address, (uintptr_t)address + round_up(length));
    long done = HS_SYS(SYS_madvise, address, length, advice);
    give_lock(taken);
    return done;
}

static int advise_memory(void *address, size_t length, int advice)
{
    return (int)result(advise(address, length, advice));
}

/* POSIX's MADV_DONTNEED keeps what is there, so that libc does nothing. */
static int advise_by_posix(void *address, size_t length, int advice)
{
    return advice == POSIX_MADV_DONTNEED ? 0 : (int)-advise(address, length, advice);
}

static int move_break(void *address)
{
    uintptr_t wanted = (uintptr_t)address;
    if (wanted < heap_start) {
        __curbrk = (void *)given_end;
        return 0;
    }
    if (wanted > kernel_end) {
        kernel_end = (uintptr_t)HS_SYS(SYS_brk, wanted);
        if (kernel_end < wanted && hs_kept_drop())
            kernel_end = (uintptr_t)HS_SYS(SYS_brk, wanted);
        if (kernel_end < wanted) {
            errno = ENOMEM;
            return -1;
        }
    } else if (wanted < given_end) {
        memset(address, 0, given_end - wanted);
    }
    given_end = wanted;
    if (highest < wanted)
        highest = wanted;
    __curbrk = address;
    return 0;
}

static const struct replacement {
    const char *name;
    const void *with;
    /* Whether it may be too short to be replaced. */
    int is_optional;
} replacements[] = {
    {"brk", move_break, 0},
    {"mmap", map_memory, 0},
    {"munmap", unmap_memory, 0},
    {"mremap", remap_memory, 0},
    {"mprotect", protect_memory, 0},
    {"madvise", advise_memory, 0},
    {"posix_madvise", advise_by_posix, 1},
};
#define REPLACEMENTS (sizeof replacements / sizeof *replacements)

static unsigned char *places[REPLACEMENTS + 1];

/* A function of libc, if it is long enough to be replaced by a jump. */
static unsigned char *find(const char *name)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *address = dlsym(RTLD_NEXT, name);
    if (!address || !dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return NULL;
    return symbol->st_size >= HS_JUMP_LENGTH ? address : NULL;
}

static int open_page(const unsigned char *place, int access)
{
    uintptr_t from = (uintptr_t)place & -PAGE, to = round_up((uintptr_t)place + HS_JUMP_LENGTH);
    return HS_SYS(SYS_mprotect, from, to - from, access) == 0 ? 0 : -1;
}

/* Writes code, in this worker's own copy of its page. That stays executable meanwhile: what is replaced may lie on the
 * page of what replaces it. */
int hs_mappings_write_code(unsigned char *place, const unsigned char *code)
{
    if (open_page(place, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return -1;
    memcpy(place, code, HS_JUMP_LENGTH);
    return open_page(place, PROT_READ | PROT_EXEC);
}

static int replace(unsigned char *place, const void *with)
{
    unsigned char jump[HS_JUMP_LENGTH];
    hs_write_jump(jump, with);
    return hs_mappings_write_code(place, jump);
}

static int may_be_written(const unsigned char *place)
{
    return open_page(place, PROT_READ | PROT_WRITE | PROT_EXEC) == 0 && open_page(place, PROT_READ | PROT_EXEC) == 0;
}

/* Finds what is to be replaced, and whether the system lets it; done in the template, which stays as it is. */
int hs_mappings_patchable(void)
{
    places[REPLACEMENTS] = find("_exit");
    if (!places[REPLACEMENTS] || !may_be_written(places[REPLACEMENTS]))
        return 0;
    for (size_t i = 0; i < REPLACEMENTS; i++) {
        places[i] = find(replacements[i].name);
        if (places[i] ? !may_be_written(places[i]) : !replacements[i].is_optional)
            return 0;
    }
    return 1;
}

/* Pages of all mappings together. */
static unsigned long sum_of_mappings(void)
{
    char text[128];
    int fd = (int)HS_SYS(SYS_open, "/proc/self/statm", 0);
    long length = HS_SYS(SYS_read, fd, text, sizeof text - 1);
    HS_SYS(SYS_close, fd);
    if (length <= 0)
        return 0;
    text[length] = 0;
    const char *at = text;
    return hs_parse(&at, 10);
}

static unsigned long grown_pages(void)
{
    return (round_up(kernel_end) - hs_memory_heap().first_end + base_stack - hs_memory_stack_low()) / PAGE;
}

static struct hs_mapping base[BASE_MAX];
static size_t base_count;

static int keep_base(void)
{
    struct hs_mapping map;
    const char *at = hs_maps_read();
    while (at && (at = hs_maps_next(at, &map))) {
        if (base_count == BASE_MAX)
            return -1;
        base[base_count++] = map;
    }
    return base_count ? 0 : -1;
}

static const char *next_but_kept(const char *at, struct hs_mapping *out)
{
    do
        at = hs_maps_next(at, out);
    while (at && hs_kept_has(out->from, out->to) && memcmp(out->access, "rw-p", sizeof out->access) == 0);
    return at;
}

/* Whether the list of mappings is another than when the worker began, but for the heap's end and the stack's. */
int hs_mappings_differ(void)
{
    struct hs_mapping map;
    const char *at = hs_maps_read();
    for (size_t i = 0; i < base_count; i++) {
        if (!at || !(at = next_but_kept(at, &map)))
            return 1;
        int is_heap = strcmp(map.path, "[heap]") == 0, is_stack = strcmp(map.path, "[stack]") == 0;
        if (is_heap && map.from != base[i].from && !(at = next_but_kept(at, &map)))
            return 1; /* there was no heap yet */
        if (memcmp(map.access, base[i].access, sizeof map.access) != 0)
            return 1;
        if ((map.from != base[i].from && !is_stack) || (map.to != base[i].to && !is_heap))
            return 1;
    }
    return !at || next_but_kept(at, &map) != NULL || hs_kept_differs();
}

/* Takes libc's functions over, in a new worker. */
int hs_mappings_open(void (*end)(int))
{
    process = (int)HS_SYS(SYS_getpid);
    heap_start = hs_memory_heap().start;
    given_end = kernel_end = highest = (uintptr_t)HS_SYS(SYS_brk, 0);
    for (size_t i = 0; i < REPLACEMENTS; i++)
        if (places[i] && replace(places[i], replacements[i].with) != 0)
            return -1;
    if (replace(places[REPLACEMENTS], (const void *)end) != 0)
        return -1;
    base_stack = hs_memory_stack_low();
    base_pages = sum_of_mappings() - grown_pages();
    return base_pages ? keep_base() : -1;
}

/* The end of the memory that the heap may have used. */
uintptr_t hs_mappings_heap_top(void)
{
    return kernel_end;
}

/* Gives back what a heap has grown beyond what is kept. */
static void trim_heap(void)
{
    const uintptr_t start = hs_memory_heap().end;
    if (kernel_end > start + HEAP_KEPT)
        kernel_end = (uintptr_t)HS_SYS(SYS_brk, start + HEAP_KEPT);
}

static void reset_heap(void)
{
    const uintptr_t start = hs_memory_heap().end;
    trim_heap();
    uintptr_t top = highest < kernel_end ? highest : kernel_end;
    if (top > start)
        memset((void *)start, 0, top - start);
    given_end = highest = hs_memory_heap().given;
}

/* Whether this run has mapped, or changed, anything but the heap; up to where libc was given that. */
int hs_mappings_touched(uintptr_t *given)
{
    *given = given_end;
    return range_count != 0 || lost || given_end - hs_memory_heap().first_end > HEAP_KEPT / 2;
}

/* Makes the heap as it was in the snapshot that is meant now. */
void hs_mappings_reset_heap(void)
{
    highest = highest > given_end ? highest : given_end;
    reset_heap();
}

/* Whether something has changed that cannot be undone. A thread that was ended may have held the lock, and not have noted
 * what it had done. What was changed unseen is told by the sum, which the runner looks up (hs_mappings_pages). */
int hs_mappings_lost(void)
{
    return lost || lock;
}

/* Unmaps what a run has mapped, or keeps its pages; the heap is reset by itself. */
int hs_mappings_undo(void)
{
    for (size_t i = 0; i < range_count; i++)
        if (!(ranges[i].is_plain && hs_kept_take(ranges[i].from, ranges[i].to)) &&
            HS_SYS(SYS_munmap, ranges[i].from, ranges[i].to - ranges[i].from) != 0)
            return -1;
    range_count = 0;
    trim_heap();
    return 0;
}

/* How many pages all mappings have, after they were undone, if nothing was mapped or unmapped by a way that is not seen. */
unsigned long hs_mappings_pages(void)
{
    return base_pages + grown_pages() + hs_kept_pages();
}

/* Whether something was: for a run that is audited, which would find a difference that is nobody's fault. */
int hs_mappings_unseen(void)
{
    return sum_of_mappings() != hs_mappings_pages();
}

#endif
