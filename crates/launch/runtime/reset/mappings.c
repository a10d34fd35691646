/* Follows the mappings that a run of main makes, so that they can be undone.
 *
 * The gate (gate.c) passes each system call that maps to this file, which makes it and records it in a list. A change to a mapping from
 * before main retires the worker.
 *
 * The heap's pages are kept for the next run, so that it takes no faults. The tool sees a heap that begins as small as it was, reads as
 * zero where it grows, and has nothing mapped beyond its end. Pages that libc has not been given wait elsewhere (`PARK`), and are moved
 * to their place as the break grows.
 */
#define _GNU_SOURCE
/* Code that the gate calls keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"

#if HS_RESETS

#define PAGE 4096ul
#define RANGES_MAX 4096
#define BASE_MAX 2048
#define HEAP_KEPT (32ul << 20)
#define WAITS_MAX 2000000
/* Where the heap's pages wait: behind the kept blocks (page_cache.c), for which the same holds. */
#define PARK 0x1d4c00000000ul
#define PARK_BYTES (4ul << 30)

struct range {
    uintptr_t from, to;
    /* Ordinary memory of a size and place that the kernel chose, with nothing set since. */
    int is_plain;
};

/* The list: unless `lost`, `ranges` are disjoint and exactly what this run has mapped, while no thread holds `lock`.
 *
 * The heap: heap_start <= given_end <= kernel_end, and present <= round_up(kernel_end). Its pages are in their place below `present`,
 * and wait in PARK from there to kernel_end, all zero. `cannot_park`: all are in their place. */
static struct {
    struct range ranges[RANGES_MAX];
    size_t count;
    int lost;             /* something was done that the list cannot tell how to undo */
    int lock;             /* the thread that changes the list; 0: none */
    int process;          /* the worker, and not a child of it */
    int mapped_code;
    int cannot_park;
    int is_gap_taken;     /* the run has a mapping between `present` and kernel_end */
    uintptr_t heap_start; /* as the kernel has it */
    uintptr_t kernel_end; /* the kernel's break */
    uintptr_t given_end;  /* libc's */
    uintptr_t present;
    uintptr_t highest; /* the most that libc was given in this run */
    /* When the worker began: all mappings, the sum of their pages, and the stack's low end. */
    struct hs_mapping base[BASE_MAX];
    size_t base_count;
    unsigned long base_pages;
    uintptr_t base_stack;
} mappings;

/* Threads of the tool may map at the same time. A handler that interrupts its own thread must not wait for itself, nor a
 * process that was forked meanwhile for a thread that it does not have; a child is not the worker, and needs no list. */
static int take_lock(void)
{
    const int thread = (int)HS_SYS(SYS_gettid);
    for (long i = 0; !mappings.lost && i < WAITS_MAX; i++) {
        int owner = 0;
        if (__atomic_compare_exchange_n(&mappings.lock, &owner, thread, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 1;
        if (owner == thread)
            break;
        if (i == 0 && (int)HS_SYS(SYS_getpid) != mappings.process)
            return 0;
        HS_SYS(SYS_sched_yield);
    }
    mappings.lost = 1;
    return 0;
}

static void give_lock(int taken)
{
    if (taken)
        __atomic_store_n(&mappings.lock, 0, __ATOMIC_RELEASE);
}

static uintptr_t round_up(uintptr_t size)
{
    return (size + PAGE - 1) & -PAGE;
}

static void add(uintptr_t from, uintptr_t to, int plain)
{
    if (mappings.count < RANGES_MAX)
        mappings.ranges[mappings.count++] = (struct range){from, to, plain};
    else
        mappings.lost = 1;
}

/* Pages are not kept after a call that is not known: it may have changed them unseen, or lent them to a pipe. */
static int may_keep(int taken)
{
    return taken && !mappings.lost && !(hs_call_seen() & HS_SEEN_UNKNOWN);
}

static int is_plain(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < mappings.count; i++)
        if (mappings.ranges[i].from == from && mappings.ranges[i].to == to)
            return mappings.ranges[i].is_plain;
    return 0;
}

/* From..to is something that a fresh mapping would not be. */
static void make_special(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < mappings.count; i++)
        if (mappings.ranges[i].from < to && from < mappings.ranges[i].to)
            mappings.ranges[i].is_plain = 0;
}

/* How much of from..to this run has made. */
static uintptr_t covered(uintptr_t from, uintptr_t to)
{
    uintptr_t sum = 0;
    for (size_t i = 0; i < mappings.count; i++) {
        uintptr_t low = mappings.ranges[i].from > from ? mappings.ranges[i].from : from;
        uintptr_t high = mappings.ranges[i].to < to ? mappings.ranges[i].to : to;
        if (low < high)
            sum += high - low;
    }
    return sum;
}

static void take_out(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < mappings.count;) {
        struct range now = mappings.ranges[i];
        if (now.to <= from || now.from >= to) {
            i++;
            continue;
        }
        mappings.ranges[i] = mappings.ranges[--mappings.count];
        if (now.from < from)
            add(now.from, from, 0);
        if (now.to > to)
            add(to, now.to, 0);
    }
}

/* The list and the kernel may differ from here on, or a fresh process may have had another answer. */
static void not_followed(void)
{
    mappings.lost = 1;
    hs_call_mark();
}

/* The run may take access to from..to away. If it has not mapped all of that itself, it is doubtful: a fresh process binds a function at
 * its first call, and faults if ld.so's tables or slots are not accessible. Here most functions were bound before main (fork/bind.c). */
static void take_away(uintptr_t from, uintptr_t to)
{
    if (covered(from, to) != to - from)
        not_followed();
}

/* Records that from..to was unmapped or replaced. */
static void gone(uintptr_t from, uintptr_t to)
{
    take_away(from, to);
    take_out(from, to);
}

/* Kept pages count for the limits that a process may have set itself. */
static long make(long number, long a, long b, long c, long d, long e, long f)
{
    long made = HS_SYS(number, a, b, c, d, e, f);
    return made == -ENOMEM && hs_cache_drop() ? HS_SYS(number, a, b, c, d, e, f) : made;
}

static int failed(long result)
{
    return result < 0 && result >= -4095;
}

static void make_break_real(void);

/* Pages of the heap that wait leave a gap below the kernel's break. The kernel may place a mapping there. Then the pages cannot go back,
 * and the break cannot move. */
static void look_at_gap(long made, size_t length)
{
    const uintptr_t from = (uintptr_t)made, to = from + round_up(length);
    if (failed(made) || from >= round_up(mappings.kernel_end) || to <= mappings.present)
        return;
    mappings.is_gap_taken = 1;
    not_followed();
}

/* The tool wants to map where pages wait, or may, or where the kernel's break reaches beyond the tool's. */
static void avoid(uintptr_t from, uintptr_t to)
{
    hs_cache_avoid(from, to);
    if (from <= round_up(mappings.kernel_end) && to > mappings.present)
        make_break_real();
    if (from < PARK + PARK_BYTES && to > PARK)
        mappings.lost = 1;
}

static long map_memory(uintptr_t address, size_t length, long access, long flags, long fd, long offset)
{
    int taken = take_lock();
    if (address)
        avoid(address, address + round_up(length));
    long made = make(SYS_mmap, (long)address, (long)length, access, flags, fd, offset);
    look_at_gap(made, length);
    /* The kernel may fail after it has unmapped what was there. */
    if (failed(made) && flags & MAP_FIXED)
        not_followed();
    if (!failed(made)) {
        uintptr_t from = (uintptr_t)made, to = from + round_up(length);
        int plain = !address && access == (PROT_READ | PROT_WRITE) && flags == (MAP_PRIVATE | MAP_ANONYMOUS);
        if (flags & MAP_FIXED)
            take_away(from, to);
        /* Such a mapping need not end when a process ends. */
        if (flags & (MAP_LOCKED | MAP_GROWSDOWN | MAP_HUGETLB))
            mappings.lost = 1;
        mappings.mapped_code |= (access & PROT_EXEC) != 0;
        take_out(from, to);
        if (!plain || !may_keep(taken) || hs_cache_give(from, to - from) == 0)
            add(from, to, plain);
        else
            made = -ENOMEM;
    }
    give_lock(taken);
    return made;
}

static long unmap_memory(uintptr_t from, size_t length)
{
    int taken = take_lock();
    uintptr_t to = from + round_up(length);
    int is_kept = may_keep(taken) && is_plain(from, to) && hs_cache_take(from, to);
    long result = is_kept ? 0 : HS_SYS(SYS_munmap, from, length);
    if (result == 0)
        gone(from, to);
    else if (result != -EINVAL)
        not_followed();
    give_lock(taken);
    return result;
}

/* Whether from..to is a part of one mapping, as the run has made it. */
static int is_in_one(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < mappings.count; i++)
        if (from >= mappings.ranges[i].from && from < to && to <= mappings.ranges[i].to)
            return 1;
    return 0;
}

/* A range of several mappings can be moved only where the kernel has joined them. It joins fresh ones, but not one that has kept pages
 * (page_cache.c). A call that fails may have moved some of them. */
static long remap_memory(uintptr_t from, size_t length, size_t new_length, long flags, uintptr_t wanted)
{
    int taken = take_lock();
    if (flags & MREMAP_FIXED)
        avoid(wanted, wanted + round_up(new_length));
    if (!is_in_one(from, from + round_up(length)))
        not_followed();
    long made = make(SYS_mremap, (long)from, (long)length, (long)new_length, flags, (long)wanted, 0);
    look_at_gap(made, new_length);
    if (!failed(made)) {
        uintptr_t to = (uintptr_t)made;
        int plain = !(flags & ~MREMAP_MAYMOVE) && is_plain(from, from + round_up(length));
        if (flags & ~MREMAP_MAYMOVE)
            mappings.lost = 1;
        gone(from, from + round_up(length));
        if (flags & MREMAP_FIXED)
            take_away(to, to + round_up(new_length));
        take_out(to, to + round_up(new_length));
        add(to, to + round_up(new_length), plain);
    } else
        not_followed();
    give_lock(taken);
    return made;
}

static long protect_memory(uintptr_t from, size_t length, long access)
{
    int taken = take_lock();
    uintptr_t to = from + round_up(length);
    take_away(from, to);
    make_special(from, to);
    long result = HS_SYS(SYS_mprotect, from, length, access);
    give_lock(taken);
    return result;
}

/* What an advice does. Others are not known: MADV_COLLAPSE, for one, tells whether the kernel has joined mappings. */
enum advice { ADVICE_UNKNOWN, ADVICE_ABOUT_CONTENTS, ADVICE_SETS, ADVICE_TAKES_AWAY };
static enum advice kind_of(int advice)
{
    switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_WILLNEED:
    case MADV_COLD:
    case MADV_PAGEOUT:
    case MADV_POPULATE_READ:
    case MADV_POPULATE_WRITE:
        return ADVICE_ABOUT_CONTENTS;
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_WIPEONFORK:
    case MADV_KEEPONFORK:
        return ADVICE_SETS;
    /* libc's guards of stacks since glibc 2.42; Linux 6.13. */
    case 102 /* MADV_GUARD_INSTALL */:
    case 103 /* MADV_GUARD_REMOVE */:
        return ADVICE_TAKES_AWAY;
    default:
        return ADVICE_UNKNOWN;
    }
}

/* Whether from..to is memory of which the reset writes every byte that differs, and of which this run has mapped nothing. What the tool
 * cannot write is not saved, though the kernel may take its pages away: a table of ld.so's, or what a constructor has filled. */
static int is_restored(uintptr_t from, uintptr_t to)
{
    uintptr_t heap = hs_memory_heap().end, sum = hs_memory_saved(from, to);
    if (covered(from, to) != 0)
        return 0;
    const uintptr_t high = to < mappings.present ? to : mappings.present;
    heap = heap > from ? heap : from;
    return sum + (heap < high ? high - heap : 0) == to - from;
}

/* Of memory from before main only pages may be dropped, and at once: those that the kernel takes away later are not compared. */
static long advise_memory(uintptr_t from, size_t length, long advice)
{
    const uintptr_t to = from + round_up(length);
    int taken = take_lock();
    const enum advice kind = kind_of((int)advice);
    const int drops = (int)advice == MADV_DONTNEED;
    if (taken && kind != ADVICE_ABOUT_CONTENTS)
        make_special(from, to);
#ifndef HS_WITHOUT_ADVICE
    /* The kernel takes other advice there than for a file. */
    if (kind == ADVICE_UNKNOWN || hs_text_is_replaced(from, to))
        not_followed();
    else if (covered(from, to) != to - from) {
        if (kind == ADVICE_TAKES_AWAY || (drops && !is_restored(from, to)))
            not_followed();
        else if (!drops)
            mappings.lost = 1;
    }
#endif
    long result = HS_SYS(SYS_madvise, from, length, advice);
    give_lock(taken);
    return result;
}

/* Moves pages of the heap aside, or back to their place. */
static int move_pages(uintptr_t from, uintptr_t to, int aside)
{
    const uintptr_t shift = PARK - mappings.heap_start;
    const uintptr_t source = aside ? from : from + shift, target = aside ? from + shift : from;
    return from >= to || HS_SYS(SYS_mremap, source, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, target) == (long)target;
}

/* Has the heap's pages in their place up to `end`, as far as there are any, and no others. */
static void set_present(uintptr_t end)
{
#ifdef HS_WITHOUT_HEAP
    (void)end;
#else
    uintptr_t wanted = round_up(end), all = round_up(mappings.kernel_end);
    if (mappings.cannot_park || mappings.is_gap_taken)
        return;
    if (wanted > all)
        wanted = all;
    if (wanted < mappings.present ? move_pages(wanted, mappings.present, 1) : move_pages(mappings.present, wanted, 0))
        mappings.present = wanted;
    else
        mappings.lost = 1;
#endif
}

static int grow_kernel(uintptr_t wanted)
{
    const uintptr_t had = round_up(mappings.kernel_end);
    mappings.kernel_end = (uintptr_t)HS_SYS(SYS_brk, wanted);
    if (mappings.kernel_end < wanted && hs_cache_drop())
        mappings.kernel_end = (uintptr_t)HS_SYS(SYS_brk, wanted);
    if (mappings.present == had && mappings.kernel_end >= wanted)
        mappings.present = round_up(mappings.kernel_end);
    return mappings.kernel_end >= wanted;
}

/* The break as the tool has it; its request to move it fails as the kernel's would, by returning the old one. */
static long move_break(uintptr_t wanted)
{
    /* The kernel refuses to grow it over another mapping, or right up to it. */
    const int meets_mapping = wanted > mappings.present && covered(mappings.present, round_up(wanted) + PAGE) != 0;
    if (mappings.is_gap_taken || wanted < mappings.heap_start || meets_mapping)
        return (long)mappings.given_end;
    if (mappings.cannot_park) {
        mappings.given_end = mappings.kernel_end = (uintptr_t)HS_SYS(SYS_brk, wanted);
        mappings.present = round_up(mappings.kernel_end);
        mappings.highest = mappings.highest < mappings.given_end ? mappings.given_end : mappings.highest;
        return (long)mappings.given_end;
    }
    if (wanted > mappings.kernel_end) {
        set_present(mappings.kernel_end);
        if (!grow_kernel(wanted))
            return (long)mappings.given_end;
    }
    /* The kernel takes whole pages away, and leaves the rest of the last one as it is. */
    if (round_up(wanted) < round_up(mappings.given_end))
        hs_zero(round_up(wanted), round_up(mappings.given_end));
    set_present(wanted);
    mappings.given_end = wanted;
    if (mappings.highest < wanted)
        mappings.highest = wanted;
    return (long)wanted;
}

/* Moves the kernel's break to libc's, for a run that is not followed any more. */
static void make_break_real(void)
{
    if (mappings.is_gap_taken)
        return;
    set_present(mappings.kernel_end);
    mappings.kernel_end = (uintptr_t)HS_SYS(SYS_brk, mappings.given_end);
    mappings.present = round_up(mappings.kernel_end);
}

/* The same before this process gets a child, which has a break of its own; and, if it is to be `for_good`, for the rest of the run,
 * with no pages kept. */
void hs_mappings_make_real(int for_good)
{
    make_break_real();
    if (!for_good)
        return;
    mappings.cannot_park = 1;
    hs_cache_drop();
}

/* Whether this run has mapped code. Slots that ld.so has bound to it must not be kept. */
int hs_mappings_have_code(void)
{
    return mappings.mapped_code;
}

/* Whether a page of this range lies in a mapping that this run has made. */
int hs_mappings_overlap(uintptr_t from, size_t size)
{
    const uintptr_t low = from & -PAGE, high = low + round_up(size);
    const int taken = take_lock(), found = taken && !mappings.lost && low < high && covered(low, high) != 0;
    give_lock(taken);
    return found;
}

/* Makes a call that maps, and records its effect. */
long hs_mappings_call(const struct hs_system_call *call)
{
    const uintptr_t at = (uintptr_t)call->a;
    const size_t size = (size_t)call->b;
    switch (call->number) {
    case SYS_brk: return move_break(at);
    case SYS_mmap: return map_memory(at, size, call->c, call->d, call->e, call->f);
    case SYS_munmap: return unmap_memory(at, size);
    case SYS_mremap: return remap_memory(at, size, (size_t)call->c, call->d, (uintptr_t)call->e);
    case SYS_mprotect: return protect_memory(at, size, call->c);
    default: return advise_memory(at, size, call->c);
    }
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
    return (round_up(mappings.kernel_end) - hs_memory_heap().first_end + mappings.base_stack - hs_memory_stack_low()) / PAGE;
}

/* Whether a mapping holds pages that wait for the next run. */
static int waits(const struct hs_mapping *map)
{
    if (memcmp(map->access, "rw-p", sizeof map->access) != 0)
        return 0;
    return hs_cache_has(map->from, map->to) || (map->from >= PARK && map->to <= PARK + PARK_BYTES);
}

static int is_in(const struct hs_mapping *map, uintptr_t from, uintptr_t to)
{
    return map->from >= from && map->to <= to;
}

/* The next mapping that does not wait. The kernel may keep the heap in pieces, and the place of the strings, of which a tool can change
 * nothing but the content unless that ends the process (calls.c). */
static const char *next_of_tool(const char *at, struct hs_mapping *out)
{
    const struct hs_place strings = hs_strings_place();
    const uintptr_t place = (uintptr_t)strings.from;
    do
        at = hs_maps_next(at, out);
    while (at && (waits(out) || is_in(out, mappings.heap_start, mappings.present) || is_in(out, place, place + strings.size)));
    return at;
}

static int keep_base(void)
{
    struct hs_mapping map;
    const char *at = hs_maps_read();
    mappings.base_count = 0;
    while (at && (at = next_of_tool(at, &map))) {
        if (mappings.base_count == BASE_MAX)
            return -1;
        mappings.base[mappings.base_count++] = map;
    }
    return mappings.base_count ? 0 : -1;
}

/* Notes the mappings anew, when the runtime itself has changed them. */
void hs_mappings_note_base(void)
{
    if (keep_base() != 0)
        mappings.lost = 1;
}

/* Whether the list of mappings is another than when the worker began, but for the heap; the stack begins as in the snapshot. */
int hs_mappings_differ(void)
{
    struct hs_mapping map;
    const char *at = hs_maps_read();
    for (size_t i = 0; i < mappings.base_count; i++) {
        if (!at || !(at = next_of_tool(at, &map)))
            return 1;
        const int is_stack = strcmp(map.path, "[stack]") == 0;
        if (memcmp(map.access, mappings.base[i].access, sizeof map.access) != 0)
            return 1;
        const uintptr_t from = is_stack ? hs_memory_stack_saved() : mappings.base[i].from;
        if (map.from != from || map.to != mappings.base[i].to)
            return 1;
    }
    return !at || next_of_tool(at, &map) != NULL || hs_cache_differs();
}

/* Begins to follow, in a new worker. */
int hs_mappings_open(void)
{
    mappings.process = (int)HS_SYS(SYS_getpid);
    mappings.heap_start = hs_memory_heap().start;
    mappings.given_end = mappings.kernel_end = mappings.highest = (uintptr_t)HS_SYS(SYS_brk, 0);
    mappings.present = round_up(mappings.kernel_end);
    /* The place has to be free. */
    const long made = HS_SYS(SYS_mmap, PARK, PARK_BYTES, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (made != (long)PARK)
        return -1;
    HS_SYS(SYS_munmap, PARK, PARK_BYTES);
    mappings.base_stack = hs_memory_stack_low();
    mappings.base_pages = sum_of_mappings() - grown_pages();
    return mappings.base_pages ? keep_base() : -1;
}

/* The process has another number from now on. */
void hs_mappings_renumber(void)
{
    mappings.process = (int)HS_SYS(SYS_getpid);
}

/* The same in a worker's clone. Pages that wait are the other process's: to copy them would cost more than new ones. Those of the page
 * cache were left behind by the kernel (MADV_WIPEONFORK). */
void hs_mappings_open_again(void)
{
    const uintptr_t shift = PARK - mappings.heap_start, top = round_up(mappings.kernel_end);
    hs_mappings_renumber();
    if (mappings.present < top)
        HS_SYS(SYS_madvise, mappings.present + shift, top - mappings.present, MADV_DONTNEED);
}

/* Whether a heap's page that waits is not zero. */
int hs_mappings_heap_differs(void)
{
    const uintptr_t shift = PARK - mappings.heap_start, top = round_up(mappings.kernel_end);
    return mappings.present < top && !hs_memory_is_zero((char *)mappings.present + shift, (char *)top + shift);
}

/* Gives back the part of the heap that exceeds the kept size. */
static void trim_heap(void)
{
    const uintptr_t end = hs_memory_heap().end + HEAP_KEPT;
    if (mappings.kernel_end <= end)
        return;
    set_present(mappings.kernel_end);
    mappings.kernel_end = (uintptr_t)HS_SYS(SYS_brk, end);
    mappings.present = round_up(mappings.kernel_end);
}

static void reset_heap(void)
{
    const struct hs_heap heap = hs_memory_heap();
    trim_heap();
    if (mappings.kernel_end < heap.end) {
        mappings.kernel_end = (uintptr_t)HS_SYS(SYS_brk, heap.end);
        mappings.present = round_up(mappings.kernel_end);
    }
    const uintptr_t highest = round_up(mappings.highest), last = round_up(mappings.kernel_end), top = highest < last ? highest : last;
    /* A run may write to the whole last page, wherever in it the break is. Memory that the tool gave back was zeroed at that time. */
    const uintptr_t end = top < mappings.present ? top : mappings.present;
    if (end > heap.end)
        hs_zero(heap.end, end);
    mappings.given_end = mappings.highest = heap.given;
    set_present(heap.end > heap.given ? heap.end : heap.given);
}

/* Whether this run has mapped, or changed, anything but the heap, or that by too much; up to where libc was given it. What a heap has
 * shrunk by is not in its place, and could not be saved. */
int hs_mappings_touched(uintptr_t *given)
{
    const uintptr_t least = hs_memory_heap().first_end;
    *given = mappings.given_end;
    return mappings.count != 0 || mappings.lost || mappings.given_end < least || mappings.given_end > least + HEAP_KEPT / 2;
}

/* Makes the heap as it was in the snapshot that is meant now. */
void hs_mappings_reset_heap(void)
{
    mappings.highest = mappings.highest > mappings.given_end ? mappings.highest : mappings.given_end;
    reset_heap();
    mappings.mapped_code = 0;
}

/* Whether something has changed that cannot be undone. A thread that was ended may have held the lock, and not have noted
 * what it had done. Unseen changes show in the sum, which the runner looks up (hs_mappings_pages). */
int hs_mappings_lost(void)
{
    return mappings.lost || mappings.lock;
}

/* Unmaps what a run has mapped, or keeps its pages; the heap is reset by itself. */
int hs_mappings_undo(void)
{
#ifdef HS_WITHOUT_MAPPINGS
    mappings.count = 0;
#endif
    for (size_t i = 0; i < mappings.count; i++)
        if (!(mappings.ranges[i].is_plain && hs_cache_take(mappings.ranges[i].from, mappings.ranges[i].to)) &&
            HS_SYS(SYS_munmap, mappings.ranges[i].from, mappings.ranges[i].to - mappings.ranges[i].from) != 0)
            return -1;
    mappings.count = 0;
    mappings.cannot_park = 0;
    trim_heap();
    return 0;
}

/* How many pages all mappings have, after they were undone, if nothing was mapped or unmapped by a way that is not seen. */
unsigned long hs_mappings_pages(void)
{
    return mappings.base_pages + grown_pages() + hs_cache_pages();
}

/* Whether something was: for a run that is audited, which would find a difference that is nobody's fault. */
int hs_mappings_unseen(void)
{
    return sum_of_mappings() != hs_mappings_pages();
}

#endif
