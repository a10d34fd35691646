/* Saves the memory that a run of main can change, and restores it.
 *
 * All writable private memory is compared page by page; pages that several runs have changed are copied without a comparison. LLVM's
 * tools have only 1 to 3 MiB of it, since their data is read-only after relocation. Comparing is faster than asking the kernel for
 * written pages, which costs a fault for the first write to each. The zygote saves the pages once for all its workers.
 *
 * Two areas that the kernel itself writes are not saved, but made anew: the thread's number, and the area of restartable sequences. The
 * runtime's own data is not saved, since it does the restoring.
 */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/auxv.h>
#include <sys/rseq.h>
#include <unistd.h>

#include "runtime.h"

#define PAGE 4096ul
/* linux/auxvec.h has it since 6.3, linux/rseq.h the other since 4.18. */
#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
#define RSEQ_FLAG_UNREGISTER 1

/* Makes whole pages zero; 0 if the kernel does not let it. Those that do not exist are not made; they are dropped, as they may
 * only have been written to swap space. */
HS_GENERAL int hs_memory_clear(uintptr_t from, uintptr_t to)
{
    static unsigned char exists[16384];
    while (from < to) {
        const size_t size = to - from < sizeof exists * PAGE ? to - from : sizeof exists * PAGE;
        if (HS_SYS(SYS_mincore, from, size, exists) != 0)
            return 0;
        for (size_t page = 0, end; page < size / PAGE; page = end) {
            const int present = exists[page] & 1;
            for (end = page + 1; end < size / PAGE && (exists[end] & 1) == present;)
                end++;
            void *at = (void *)(from + page * PAGE);
            if (present)
                hs_zero((uintptr_t)at, (uintptr_t)at + (end - page) * PAGE);
            else if (HS_SYS(SYS_madvise, at, (end - page) * PAGE, MADV_DONTNEED) != 0)
                return 0;
        }
        from += size;
    }
    return 1;
}

#if HS_RESETS

#define REGIONS_MAX 512
/* A tool that has more before main is only copied. */
#define SAVED_MAX (64ul << 20)
/* After this number of runs that changed a piece, it is copied without a comparison. In opt two of three pieces are. */
#define ALWAYS 4
/* Bytes of the stack that are saved below the part in use. The loader has left some there, and a tool may read them by mistake. */
#define SLACK (32 * 1024ul)

struct region {
    uintptr_t from, to;
    char *saved;
    size_t first; /* its first piece, in `dirtied` */
};

/* The memory to which a worker is reset. */
struct snapshot {
    struct region regions[REGIONS_MAX];
    size_t count, last;   /* where a word was found last */
    uintptr_t stack_page; /* the stack's regions begin here */
    uintptr_t stack_low;  /* its mapping begins here */
    uintptr_t heap_end;   /* the heap's end here */
    uintptr_t heap_given; /* up to here it was libc's */
    /* How often each piece of a region was found changed, up to ALWAYS. */
    unsigned char dirtied[SAVED_MAX / PAGE + 2 * REGIONS_MAX];
};

struct hole {
    uintptr_t from, to;
};

/* Of each snapshot that was saved, `regions` are disjoint, and hold none of the holes and nothing of the runtime's own data. That at
 * the point has the regions of that at main, and after these the stack and the heap that came since. `dirtied` has size / PAGE + 2
 * entries for each. */
static struct {
    struct snapshot snapshots[HS_LEVELS];
    enum hs_level level; /* the snapshot that is meant */
    uintptr_t own_low, own_high;
    uintptr_t stack_low;   /* the stack is mapped from here on at least */
    uintptr_t stack_floor; /* it grows down to here at most: there the mapping below it ends */
    uintptr_t heap_start;
    char *room;           /* for the second snapshot's pages */
    struct hole holes[2]; /* in order */
} memory;

static struct snapshot *now(void)
{
    return &memory.snapshots[memory.level];
}

static int find_own(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    const uintptr_t here = (uintptr_t)&memory.snapshots;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + part->p_vaddr, high = low + part->p_memsz;
        if (part->p_type == PT_LOAD && here >= low && here < high) {
            memory.own_low = low & -PAGE;
            memory.own_high = (high + PAGE - 1) & -PAGE;
            return 1;
        }
    }
    return 0;
}

static int add(uintptr_t from, uintptr_t to)
{
    if (from >= to)
        return 0;
    if (now()->count == REGIONS_MAX)
        return -1;
    now()->regions[now()->count++] = (struct region){from, to, NULL, 0};
    return 0;
}

/* Adds the parts outside the holes, which are in order. */
static int add_around(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < 2; i++) {
        if (memory.holes[i].to <= from || memory.holes[i].from >= to)
            continue;
        if (add(from, memory.holes[i].from) != 0)
            return -1;
        from = memory.holes[i].to;
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
    memory.holes[0] = swapped ? rseq : tid;
    memory.holes[1] = swapped ? tid : rseq;
}

/* How far the stack reaches down now, if the tool has mapped nothing right below it. */
uintptr_t hs_memory_stack_low(void)
{
    while (memory.stack_low > memory.stack_floor && HS_SYS(SYS_msync, memory.stack_low - PAGE, PAGE, MS_ASYNC) == 0)
        memory.stack_low -= PAGE;
    return memory.stack_low;
}

/* How far it is to reach down before the next run. */
uintptr_t hs_memory_stack_saved(void)
{
    return now()->stack_low;
}

/* Whether it reaches down as far as when it was saved at the point. */
int hs_memory_stack_is_at_point(void)
{
    return hs_memory_stack_low() == memory.snapshots[HS_AT_POINT].stack_low;
}

/* Has the stack begin where it is to: a run may ask what lies below, or map something there. */
static void cut_stack(void)
{
    const uintptr_t low = hs_memory_stack_low(), wanted = now()->stack_low;
    if (low < wanted && HS_SYS(SYS_munmap, low, wanted - low) != 0)
        return;
    /* Where it has not grown yet, a look has it grow. */
    if (low > wanted)
        (void)*(const volatile char *)wanted;
    memory.stack_low = wanted;
}

/* The stack as deep as another run may be in it. Its unused part is cleared or restored after each run, at the same cost. */
static uintptr_t below(uintptr_t page)
{
    const uintptr_t low = hs_memory_stack_low(), wanted = page - SLACK;
    return wanted > low ? wanted : low < page ? low : page;
}

static int add_mapping(const struct hs_mapping *map)
{
    const uintptr_t sp = hs_frame.stack;
    const struct hs_place strings = hs_strings_place();
    const uintptr_t begin = (uintptr_t)strings.from;
    if (map->access[1] != 'w' || map->access[3] != 'p' || (map->from < begin + strings.size && map->to > begin))
        return 0;
    if (sp >= map->from && sp < map->to) {
        memory.stack_low = now()->stack_low = map->from;
        now()->stack_page = below(sp & -PAGE);
        return add(now()->stack_page, map->to);
    }
    if (strcmp(map->path, "[heap]") == 0) {
        memory.heap_start = map->from;
        now()->heap_end = map->to;
    }
    if (map->to > memory.own_low && map->from < memory.own_high)
        return add(map->from, memory.own_low) != 0 || add(memory.own_high, map->to) != 0 ? -1 : 0;
    return add_around(map->from, map->to);
}

HS_GENERAL struct hs_heap hs_memory_heap(void)
{
    const struct snapshot *snapshot = &memory.snapshots[memory.level];
    return (struct hs_heap){memory.heap_start, snapshot->heap_end, snapshot->heap_given, memory.snapshots[HS_AT_MAIN].heap_end};
}

static size_t total_size(void)
{
    size_t total = 0;
    for (size_t i = 0; i < now()->count; i++)
        total += now()->regions[i].to - now()->regions[i].from;
    return total;
}

static void save_into(char *saved)
{
    size_t pieces = 0;
    for (size_t i = 0; i < now()->count; i++) {
        struct region *region = &now()->regions[i];
        size_t size = region->to - region->from;
        region->first = pieces;
        pieces += size / PAGE + 2;
        region->saved = memcpy(saved, (void *)region->from, size);
        saved += size;
    }
}

/* Saves everything; -1 if there is too much of it. */
int hs_memory_save(void)
{
    struct hs_mapping map;
    now()->count = 0;
    now()->heap_end = now()->stack_page = memory.stack_low = memory.stack_floor = 0;
    find_holes();
    dl_iterate_phdr(find_own, NULL);
    const char *at = hs_maps_read();
    if (!at || !memory.own_high)
        return -1;
    while ((at = hs_maps_next(at, &map))) {
        if (add_mapping(&map) != 0)
            return -1;
        if (!memory.stack_low)
            memory.stack_floor = map.to;
    }
    size_t total = total_size();
    if (total > SAVED_MAX || !now()->stack_page)
        return -1;
    now()->heap_given = (uintptr_t)sbrk(0);
    if (!now()->heap_end)
        memory.heap_start = now()->heap_end = now()->heap_given;
    char *saved = hs_own_map(total, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (saved == MAP_FAILED)
        return -1;
    save_into(saved);
    return 0;
}

/* Makes room for a second snapshot, before mappings are recorded. */
int hs_memory_open_point(void)
{
    memory.room = hs_own_map(SAVED_MAX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    return memory.room == MAP_FAILED ? -1 : 0;
}

/* Where runs since the last reset have first written to the stack, as a page: below main's, all was zero then. */
static uintptr_t touched_from(uintptr_t page)
{
    uintptr_t at = hs_memory_stack_low();
    while (at < page && hs_memory_is_zero((char *)at, (char *)at + PAGE))
        at += PAGE;
    return at;
}

/* What a run that is in use of the stack from `stack` on may find below that: earlier functions have left things there. */
uintptr_t hs_memory_stack_touched(uintptr_t stack)
{
    const uintptr_t page = below(stack & -PAGE), touched = touched_from(page);
    return touched < page ? touched : page;
}

/* Saves everything again, later in main: the same regions, the stack with what is left below `stack`, and the heap up to `given`; -1 if
 * there is too much of it. */
int hs_memory_save_point(uintptr_t stack, uintptr_t given)
{
    const struct snapshot *main = &memory.snapshots[HS_AT_MAIN];
    struct snapshot *point = &memory.snapshots[HS_AT_POINT];
    memory.level = HS_AT_POINT;
    *point = *main;
    point->stack_low = hs_memory_stack_low();
    point->stack_page = hs_memory_stack_touched(stack);
    point->heap_given = given;
    if (given > main->heap_end)
        point->heap_end = (given + PAGE - 1) & -PAGE;
    int failed = add(point->stack_page, main->stack_page) != 0 || add(main->heap_end, point->heap_end) != 0 ||
                 point->stack_page > main->stack_page || total_size() > SAVED_MAX;
    if (!failed)
        save_into(memory.room);
    memory.level = HS_AT_MAIN;
    return failed ? -1 : 0;
}

HS_GENERAL static uintptr_t common(uintptr_t from, uintptr_t to, uintptr_t low, uintptr_t high)
{
    low = low > from ? low : from;
    high = high < to ? high : to;
    return low < high ? high - low : 0;
}

/* How many bytes of from..to the reset makes what they were. */
HS_GENERAL uintptr_t hs_memory_saved(uintptr_t from, uintptr_t to)
{
    const struct snapshot *snapshot = &memory.snapshots[memory.level];
    uintptr_t sum = common(from, to, snapshot->stack_low, snapshot->stack_page);
    for (size_t i = 0; i < snapshot->count; i++)
        sum += common(from, to, snapshot->regions[i].from, snapshot->regions[i].to);
    return sum;
}

/* Says which snapshot is meant from now on. */
void hs_memory_choose(enum hs_level level)
{
    memory.level = level;
}

/* Calls `differs` for each word that is not as it was saved at the point; whether all calls returned 0, and nothing is below these. */
int hs_memory_compare_point(int (*differs)(uint32_t *place, uint32_t saved))
{
    const struct snapshot *point = &memory.snapshots[HS_AT_POINT];
    int found = !hs_memory_is_zero((char *)hs_memory_stack_low(), (char *)point->stack_page);
    for (size_t i = 0; i < point->count; i++) {
        const struct region *region = &point->regions[i];
        const size_t size = region->to - region->from;
        if (memcmp((void *)region->from, region->saved, size) == 0)
            continue;
        for (size_t at = 0; at < size; at += sizeof(uint32_t)) {
            uint32_t *place = (uint32_t *)(region->from + at), saved;
            memcpy(&saved, region->saved + at, sizeof saved);
            if (*place != saved)
                found |= differs(place, saved);
        }
    }
    return !found;
}

/* Words that are looked at together. Next to none of them is sought; a call for each would take most of the time of a dry run. */
#define TOGETHER 16

static int is_sought(uint64_t word, struct hs_sought sought)
{
    return (word - sought.from < sought.size) | (word >> 48 == sought.name);
}

static int each_sought(uint64_t *word, uint64_t *end, struct hs_sought sought, int (*visit)(uint64_t *word))
{
    int failed = 0;
    for (; word < end && !failed; word++)
        if (is_sought(*word, sought))
            failed = visit(word);
    return failed;
}

static int each_word_in(uintptr_t from, uintptr_t to, struct hs_sought sought, int (*visit)(uint64_t *word))
{
    uint64_t *word = (uint64_t *)((from + 7) & -8ul), *const end = (uint64_t *)(to & -8ul);
    int failed = 0;
    for (; word + TOGETHER <= end && !failed; word += TOGETHER) {
        int found = 0;
        for (size_t i = 0; i < TOGETHER; i++)
            found |= is_sought(word[i], sought);
        if (found)
            failed = each_sought(word, word + TOGETHER, sought, visit);
    }
    return failed ? failed : each_sought(word, end, sought, visit);
}

/* Calls `visit` for each aligned word that is sought and that a snapshot of this moment would have, with the stack from `stack` on and the
 * heap up to `given`, until a call does not return 0; what that returned. */
int hs_memory_each_word(uintptr_t stack, uintptr_t given, struct hs_sought sought, int (*visit)(uint64_t *word))
{
    const struct snapshot *main = &memory.snapshots[HS_AT_MAIN];
    int failed = 0;
    for (size_t i = 0; i < main->count && !failed; i++) {
        const struct region *region = &main->regions[i];
        const int has_stack = region->from == main->stack_page && stack > region->from;
        failed = each_word_in(has_stack ? stack : region->from, region->to, sought, visit);
    }
    if (!failed && stack < main->stack_page)
        failed = each_word_in(stack, main->stack_page, sought, visit);
    return failed ? failed : each_word_in(main->heap_end, given, sought, visit);
}

/* Where a word is saved; a place of its own if it is not. */
static void **saved_place(struct snapshot *snapshot, void **place)
{
    const uintptr_t at = (uintptr_t)place;
    for (size_t turn = 0; turn < snapshot->count; turn++) {
        const struct region *region = &snapshot->regions[snapshot->last];
        if (at >= region->from && at < region->to)
            return (void **)(region->saved + (at - region->from));
        snapshot->last = (snapshot->last + 1) % snapshot->count;
    }
    return place;
}

static void *saved_word(void **place)
{
    return *saved_place(now(), place);
}

static void keep_word(void **place)
{
    for (size_t level = 0; level < HS_LEVELS; level++)
        *saved_place(&memory.snapshots[level], place) = *place;
}

/* Takes over the slots that ld.so has bound in this run. */
void hs_memory_learn(void)
{
    hs_bind_learn(saved_word, keep_word);
}

static size_t piece(uintptr_t at, uintptr_t to)
{
    uintptr_t end = (at & -PAGE) + PAGE;
    return (end < to ? end : to) - at;
}

/* Sizes with which libc may have registered the area of restartable sequences: the first one, and that of later kernels' fields. */
static size_t rseq_size(struct rseq *area)
{
    static size_t known;
    /* In a dry run the auxiliary vector may be hidden. */
    if (known)
        return known;
    const size_t sizes[] = {sizeof *area, (getauxval(AT_RSEQ_FEATURE_SIZE) + sizeof *area - 1) & -sizeof *area, __rseq_size};
    for (size_t i = 0; !known && i < sizeof sizes / sizeof *sizes; i++)
        if (HS_SYS(SYS_rseq, area, sizes[i], RSEQ_FLAG_UNREGISTER, RSEQ_SIG) == 0) {
            HS_SYS(SYS_rseq, area, sizes[i], 0, RSEQ_SIG);
            known = sizes[i];
        }
    return known;
}

static struct rseq *rseq_area(void)
{
    return (struct rseq *)((uintptr_t)__builtin_thread_pointer() + (uintptr_t)__rseq_offset);
}

/* The kernel writes there no more. It knows the size from the first call on. */
void hs_memory_leave_rseq(void)
{
    struct rseq *const area = rseq_area();
    const size_t size = __rseq_size ? rseq_size(area) : 0;
    if (size)
        HS_SYS(SYS_rseq, area, size, RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
}

/* The kernel writes there again, as in a new process. */
void hs_memory_join_rseq(void)
{
    struct rseq *const area = rseq_area();
    const size_t size = __rseq_size ? rseq_size(area) : 0;
    if (!size)
        return;
    memset(area, 0, sizeof *area);
    HS_SYS(SYS_rseq, area, size, 0, RSEQ_SIG);
}

/* Makes what the kernel writes what it is in a new process: a run may have written there, too. */
void hs_memory_renew_kernels(void)
{
    *hs_child_number() = (int)HS_SYS(SYS_gettid);
    if (!__rseq_size)
        return;
    rseq_area()->rseq_cs = 0;
    hs_memory_leave_rseq();
    hs_memory_join_rseq();
}

/* The kernel's area as it was when a dry run began. */
static struct rseq noted_area;

void hs_memory_note_kernels(void)
{
    if (__rseq_size)
        memcpy(&noted_area, rseq_area(), sizeof noted_area);
}

/* Whether a number that the kernel writes is its own, and not the tool's. It changes when the thread moves to another processor. */
static int has_processor(const volatile struct rseq *area)
{
    unsigned processor, node;
    for (int turn = 0; turn < 4; turn++) {
        HS_SYS(SYS_getcpu, &processor, &node, NULL);
        if (area->cpu_id_start == processor && area->cpu_id == processor)
            return 1;
    }
    return 0;
}

/* Whether these bytes of the kernel's area are as they were. */
static int is_same(size_t from, size_t to)
{
    return memcmp((char *)rseq_area() + from, (char *)&noted_area + from, to - from) == 0;
}

/* What a dry run has done where the kernel writes. No snapshot holds these words. */
enum hs_kernels hs_memory_kernels(void)
{
    /* Behind the flags are the node and the thread's number in this process (mm_cid), which change with the processor. Behind these, the
     * kernel writes nothing. */
    const size_t call = offsetof(struct rseq, rseq_cs), node = offsetof(struct rseq, flags) + sizeof(uint32_t);
    const size_t last = node + 2 * sizeof(uint32_t);
    if (*hs_child_number() != (int)HS_SYS(SYS_gettid))
        return HS_KERNELS_WRITTEN;
    if (!__rseq_size)
        return HS_KERNELS_KEPT;
    if (!has_processor(rseq_area()) || !is_same(call, node) || !is_same(last, sizeof noted_area))
        return HS_KERNELS_WRITTEN;
    /* On another processor the kernel has written all of it anew. */
    const int is_kept = is_same(node, last) || rseq_area()->cpu_id != noted_area.cpu_id;
    return is_kept ? HS_KERNELS_KEPT : HS_KERNELS_MOVED;
}

/* Restores everything that was saved. */
void hs_memory_restore(void)
{
    struct snapshot *snapshot = now();
#ifndef HS_WITHOUT_DEPTH
    cut_stack();
#endif
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct region *region = &snapshot->regions[i];
        unsigned char *dirtied = snapshot->dirtied + region->first;
        for (uintptr_t at = region->from; at < region->to; dirtied++) {
            size_t size = piece(at, region->to);
            const char *saved = region->saved + (at - region->from);
#ifdef HS_WITHOUT_MEMORY
            at += size;
            continue;
#endif
            if (*dirtied == ALWAYS)
                memcpy((void *)at, saved, size);
            else if (memcmp((void *)at, saved, size) != 0) {
                memcpy((void *)at, saved, size);
                ++*dirtied;
            }
            at += size;
        }
    }
    /* The stack below what is saved, where nothing is in a fresh process. */
#ifndef HS_WITHOUT_STACK
    hs_memory_clear(hs_memory_stack_low(), snapshot->stack_page);
#endif
}

/* Copies the pages that runs change, in a process that shares them with its clone: all in one go, where each would be a fault. */
void hs_memory_make_present(void)
{
    for (size_t i = 0; i < now()->count; i++) {
        const struct region *region = &now()->regions[i];
        const unsigned char *dirtied = now()->dirtied + region->first;
        uintptr_t from = 0, at = region->from;
        for (; at < region->to; at += piece(at, region->to), dirtied++) {
            if (*dirtied && !from)
                from = at & -PAGE;
            if (!*dirtied && from) {
                HS_SYS(SYS_madvise, from, at - from, MADV_POPULATE_WRITE);
                from = 0;
            }
        }
        if (from)
            HS_SYS(SYS_madvise, from, at - from, MADV_POPULATE_WRITE);
    }
}

int hs_memory_is_zero(const char *from, const char *to)
{
    return from >= to || (*from == 0 && memcmp(from, from + 1, (size_t)(to - from) - 1) == 0);
}

/* Whether anything differs from the snapshot. */
int hs_memory_differs(void)
{
    for (size_t i = 0; i < now()->count; i++) {
        const struct region *region = &now()->regions[i];
        if (memcmp((void *)region->from, region->saved, region->to - region->from) != 0)
            return 1;
    }
    if (!hs_memory_is_zero((char *)memory.stack_low, (char *)now()->stack_page))
        return 1;
    return hs_mappings_heap_differs();
}

#endif
