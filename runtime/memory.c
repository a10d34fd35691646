/* Saves the memory that a run of main can change, and puts it back.
 *
 * All writable private memory is compared, page by page: there is little of it (1 to 3 MiB in LLVM's tools, whose data
 * is read-only after relocation), and comparing is faster here than asking the kernel what was written, which costs a
 * fault for each page's first write. The saved pages are made in the template, once for all its workers.
 *
 * What the kernel itself writes into a process is left alone: the thread's number, and the area of restartable sequences.
 * The runtime's own data is not saved, since it is what does the putting back.
 */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <unistd.h>

#include "runtime.h"

#if HS_REWIND

#define PAGE 4096ul
#define REGIONS_MAX 512
/* A tool that has more before main is only copied. */
#define SAVED_MAX (64ul << 20)

struct region {
    uintptr_t from, to;
    char *saved;
};

static struct region regions[REGIONS_MAX];
static size_t region_count;
static uintptr_t own_low, own_high;
static uintptr_t stack_low, stack_page;
static uintptr_t heap_start, heap_end, heap_break;

struct hole {
    uintptr_t from, to;
};
static struct hole holes[2];

static int find_own(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    const uintptr_t here = (uintptr_t)&regions;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + part->p_vaddr, high = low + part->p_memsz;
        if (part->p_type == PT_LOAD && here >= low && here < high) {
            own_low = low & -PAGE;
            own_high = (high + PAGE - 1) & -PAGE;
            return 1;
        }
    }
    return 0;
}

static int add(uintptr_t from, uintptr_t to)
{
    if (from >= to)
        return 0;
    if (region_count == REGIONS_MAX)
        return -1;
    regions[region_count++] = (struct region){from, to, NULL};
    return 0;
}

/* Adds what lies outside the holes, which are in order. */
static int add_around(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < 2; i++) {
        if (holes[i].to <= from || holes[i].from >= to)
            continue;
        if (add(from, holes[i].from) != 0)
            return -1;
        from = holes[i].to;
    }
    return add(from, to);
}

static void find_holes(void)
{
    uintptr_t number = (uintptr_t)hs_child_number();
    struct hole tid = {number, number + sizeof(int)}, rseq = {0, 0};
    if (__rseq_size) {
        rseq.from = (uintptr_t)__builtin_thread_pointer() + (uintptr_t)__rseq_offset;
        rseq.to = rseq.from + sizeof(struct rseq);
    }
    int swapped = rseq.from < tid.from;
    holes[0] = swapped ? rseq : tid;
    holes[1] = swapped ? tid : rseq;
}

static int add_mapping(const struct hs_mapping *map)
{
    const uintptr_t sp = hs_frame.stack;
    if (map->access[1] != 'w' || map->access[3] != 'p')
        return 0;
    if (sp >= map->from && sp < map->to) {
        stack_low = map->from;
        stack_page = sp & -PAGE;
        return add(stack_page, map->to);
    }
    if (strcmp(map->path, "[heap]") == 0) {
        heap_start = map->from;
        heap_end = map->to;
    }
    if (map->to > own_low && map->from < own_high)
        return add(map->from, own_low) != 0 || add(own_high, map->to) != 0 ? -1 : 0;
    return add_around(map->from, map->to);
}

struct hs_heap hs_memory_heap(void)
{
    return (struct hs_heap){heap_start, heap_end, heap_break};
}

/* Saves everything; -1 if there is too much of it. */
int hs_memory_save(void)
{
    struct hs_mapping map;
    size_t total = 0;
    region_count = 0;
    heap_end = stack_page = 0;
    find_holes();
    dl_iterate_phdr(find_own, NULL);
    const char *at = hs_maps_read();
    if (!at || !own_high)
        return -1;
    while ((at = hs_maps_next(at, &map)))
        if (add_mapping(&map) != 0)
            return -1;
    for (size_t i = 0; i < region_count; i++)
        total += regions[i].to - regions[i].from;
    if (total > SAVED_MAX || !stack_page)
        return -1;
    heap_break = (uintptr_t)sbrk(0);
    if (!heap_end)
        heap_start = heap_end = heap_break;
    char *saved = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (saved == MAP_FAILED)
        return -1;
    for (size_t i = 0; i < region_count; i++) {
        size_t size = regions[i].to - regions[i].from;
        regions[i].saved = memcpy(saved, (void *)regions[i].from, size);
        saved += size;
    }
    return 0;
}

/* Where a word is saved; a place of its own if it is not. */
static void **saved_place(void **place)
{
    static const struct region *last = regions;
    const uintptr_t at = (uintptr_t)place;
    if (at < last->from || at >= last->to) {
        for (last = regions; last < regions + region_count && (at < last->from || at >= last->to); last++)
            ;
        if (last == regions + region_count) {
            last = regions;
            return place;
        }
    }
    return (void **)(last->saved + (at - last->from));
}

static void *saved_word(void **place)
{
    return *saved_place(place);
}

static void keep_word(void **place)
{
    *saved_place(place) = *place;
}

/* Takes over what ld.so has bound in this run. */
void hs_memory_learn(void)
{
    hs_bind_learn(saved_word, keep_word);
}

static size_t piece(uintptr_t at, uintptr_t to)
{
    uintptr_t end = (at & -PAGE) + PAGE;
    return (end < to ? end : to) - at;
}

/* How far the stack reaches down: it never shrinks, and mincore fails below its end. */
uintptr_t hs_memory_stack_low(void)
{
    unsigned char one;
    while (HS_SYS(SYS_mincore, stack_low - PAGE, PAGE, &one) == 0)
        stack_low -= PAGE;
    return stack_low;
}

/* Pages of the stack below main's frame, which nobody has used in a fresh process. */
static uint32_t clear_stack(void)
{
    static unsigned char present[16384];
    uint32_t count = 0;
    for (uintptr_t at = hs_memory_stack_low(); at < stack_page;) {
        size_t size = stack_page - at < sizeof present * PAGE ? stack_page - at : sizeof present * PAGE;
        if (HS_SYS(SYS_mincore, at, size, present) != 0)
            break;
        for (size_t page = 0; page < size / PAGE; page++)
            if (present[page] & 1) {
                memset((void *)(at + page * PAGE), 0, PAGE);
                count++;
            }
        at += size;
    }
    return count;
}

/* Puts everything back; returns the number of pages that had changed. */
uint32_t hs_memory_restore(void)
{
    uint32_t count = 0;
    for (size_t i = 0; i < region_count; i++) {
        const struct region *region = &regions[i];
        for (uintptr_t at = region->from; at < region->to;) {
            size_t size = piece(at, region->to);
            const char *saved = region->saved + (at - region->from);
            if (memcmp((void *)at, saved, size) != 0) {
                memcpy((void *)at, saved, size);
                count++;
            }
            at += size;
        }
    }
    return count + clear_stack();
}

static int is_zero(const char *from, const char *to)
{
    return from >= to || (*from == 0 && memcmp(from, from + 1, (size_t)(to - from) - 1) == 0);
}

/* Whether anything is not as it was saved. */
int hs_memory_differs(void)
{
    for (size_t i = 0; i < region_count; i++)
        if (memcmp((void *)regions[i].from, regions[i].saved, regions[i].to - regions[i].from) != 0)
            return 1;
    if (!is_zero((char *)stack_low, (char *)stack_page))
        return 1;
    return !is_zero((char *)heap_end, (char *)hs_mappings_heap_top());
}

#endif
