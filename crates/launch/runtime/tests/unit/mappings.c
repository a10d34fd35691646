/* Tests of runtime/reset/mappings.c in this very process: its break, which the sanitizers do not use, and mappings that are made as a
 * tool would make them. Its state is private, so it is included; the snapshot (memory.c) is answered here. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"

static struct hs_heap fake_heap(void);
static uintptr_t fake_stack_low(void);
#define hs_memory_heap fake_heap
static uintptr_t fake_saved(uintptr_t from, uintptr_t to);
#define hs_memory_stack_low fake_stack_low
#define hs_memory_stack_saved fake_stack_low
#define hs_memory_saved fake_saved
#include "reset/mappings.c"
#include "unit.h"

#define PAGES(count) ((count) * PAGE)

static struct hs_heap heap;
static uint32_t seen;
static uintptr_t saved_from, saved_to;

static struct hs_heap fake_heap(void)
{
    return heap;
}

static uintptr_t fake_stack_low(void)
{
    struct hs_mapping map;
    for (const char *at = hs_maps_read(); at && (at = hs_maps_next(at, &map));)
        if (strcmp(map.path, "[stack]") == 0)
            return map.from;
    return 0;
}

static uintptr_t fake_saved(uintptr_t from, uintptr_t to)
{
    from = from > saved_from ? from : saved_from;
    to = to < saved_to ? to : saved_to;
    return from < to ? to - from : 0;
}

uint32_t hs_call_seen(void)
{
    return seen;
}

static void open_worker(void)
{
    heap.start = (uintptr_t)HS_SYS(SYS_brk, 0);
    CHECK_EQUAL(heap.start % PAGE, 0);
    heap.end = heap.first_end = heap.start + PAGES(4);
    heap.given = heap.start + PAGES(2) + 100;
    CHECK_EQUAL(HS_SYS(SYS_brk, heap.end), heap.end);
    CHECK_EQUAL(hs_mappings_open(), 0);
    hs_mappings_reset_heap();
}

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    return hs_mappings_call(&(struct hs_system_call){number, a, b, c, d, e, f});
}

static uintptr_t map_with(uintptr_t at, size_t pages, long access, long flags)
{
    return (uintptr_t)call(SYS_mmap, (long)at, (long)PAGES(pages), access, flags, -1, 0);
}

static uintptr_t map(size_t pages)
{
    const uintptr_t made = map_with(0, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    CHECK(!failed((long)made));
    return made;
}

static int is_mapped(uintptr_t at)
{
    unsigned char exists;
    return HS_SYS(SYS_mincore, at & -PAGE, PAGE, &exists) == 0;
}

static int is_zero(uintptr_t from, uintptr_t to)
{
    return hs_memory_is_zero((char *)from, (char *)to);
}

static void fill(uintptr_t from, uintptr_t to, int byte)
{
    if (from < to)
        memset((void *)from, byte, to - from);
}

/* What a worker does at the end of a run; everything must be as it began. */
static void end_run(void)
{
    CHECK(!hs_mappings_lost());
    CHECK_EQUAL(hs_mappings_undo(), 0);
    hs_mappings_reset_heap();
    CHECK(!hs_mappings_unseen());
    hs_cache_clean();
    CHECK(!hs_mappings_differ());
    CHECK(!hs_mappings_heap_differs());
}

/* Against a map of pages. */
static void the_list_is_what_was_mapped(void)
{
    enum { SPACE = 64 };
    unsigned char made[SPACE] = {0};
    for (int turn = 0; turn < 5000; turn++) {
        const uintptr_t from = unit_random(SPACE), to = from + 1 + unit_random((uint32_t)(SPACE - from));
        uintptr_t expected = 0;
        for (uintptr_t i = from; i < to; i++)
            expected += made[i];
        CHECK_EQUAL(covered(from, to), expected);
        const int maps = unit_random(2) == 0;
        take_out(from, to);
        if (maps)
            add(from, to, 1);
        memset(made + from, maps, to - from);
        CHECK(is_plain(from, to) == maps);
    }
    CHECK(!mappings.lost);
}

static void undoes_whatever_a_run_maps(void)
{
    open_worker();
    for (int run = 0; run < 20; run++) {
        uintptr_t at[40];
        size_t pages[40], count = 0;
        for (int step = 0; step < 100; step++) {
            const size_t which = count ? unit_random((uint32_t)count) : 0;
            switch (unit_random(5)) {
            case 0:
            case 1:
                if (count == 40)
                    break;
                pages[count] = 1 + unit_random(40);
                at[count] = map(pages[count]);
                CHECK(is_zero(at[count], at[count] + PAGES(pages[count])));
                fill(at[count], at[count] + PAGES(pages[count]), 0x5a);
                count++;
                break;
            case 2:
                if (!count)
                    break;
                CHECK_EQUAL(call(SYS_munmap, (long)at[which], (long)PAGES(pages[which]), 0, 0, 0, 0), 0);
                at[which] = at[--count];
                pages[which] = pages[count];
                break;
            case 3:
                if (!count)
                    break;
                at[which] = (uintptr_t)call(SYS_mremap, (long)at[which], (long)PAGES(pages[which]),
                                            (long)PAGES(pages[which] + 1), MREMAP_MAYMOVE, 0, 0);
                CHECK_EQUAL(*(char *)at[which], 0x5a);
                fill(at[which], at[which] + PAGES(++pages[which]), 0x5a);
                break;
            default:
                if (count)
                    call(SYS_mprotect, (long)at[which], PAGE, PROT_READ | PROT_WRITE, 0, 0, 0);
            }
        }
        end_run();
        for (size_t i = 0; i < count; i++)
            CHECK(!is_mapped(at[i]));
    }
}

static void a_part_is_unmapped_and_the_rest_undone(void)
{
    open_worker();
    const uintptr_t at = map(10);
    CHECK_EQUAL(call(SYS_munmap, (long)at + (long)PAGES(3), (long)PAGES(2), 0, 0, 0, 0), 0);
    CHECK(!is_mapped(at + PAGES(4)) && is_mapped(at + PAGES(5)));
    CHECK_EQUAL(covered(at, at + PAGES(10)), PAGES(8));
    end_run();
    CHECK(!is_mapped(at) && !is_mapped(at + PAGES(9)));
}

/* The kernel rounds an address down, and a size up. */
static void knows_what_a_hint_overlaps(void)
{
    open_worker();
    const uintptr_t at = map(4);
    call(SYS_munmap, (long)at + (long)PAGES(2), PAGE, 0, 0, 0, 0);
    CHECK(hs_mappings_overlap(at, 1));
    CHECK(hs_mappings_overlap(at + PAGES(2) - 1, 1));
    CHECK(!hs_mappings_overlap(at + PAGES(2) + 1, PAGE));
    CHECK(hs_mappings_overlap(at + PAGES(2) + 1, PAGE + 1));
    CHECK(!hs_mappings_overlap(at, 0));
    CHECK(!hs_mappings_overlap(at, -PAGES(1)));
    const uintptr_t base = (uintptr_t)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(!hs_mappings_overlap(base, PAGE));
    munmap((void *)base, PAGE);
    end_run();
    CHECK(!hs_mappings_overlap(at, 1));
}

/* A run may write behind an uneven break, up to the end of its page. */
static void the_breaks_last_page_is_zero_for_the_next_run(void)
{
    open_worker();
    const uintptr_t uneven = heap.end + PAGES(3) + 100, end = round_up(uneven);
    CHECK_EQUAL(call(SYS_brk, (long)uneven, 0, 0, 0, 0, 0), uneven);
    fill(heap.end, end, 0x5a);
    end_run();
    CHECK_EQUAL(call(SYS_brk, (long)end, 0, 0, 0, 0, 0), end);
    CHECK(is_zero(heap.end, end));
    end_run();
}

/* What a run has mapped where a part of the heap was is not restored, though it was saved. */
static void no_memory_counts_twice_as_restored(void)
{
    open_worker();
    const uintptr_t base = (uintptr_t)mmap(NULL, PAGES(3), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    saved_from = base;
    saved_to = base + PAGES(2);
    CHECK(is_restored(base, base + PAGES(2)));
    add(base, base + PAGE, 0);
    CHECK(!is_restored(base, base + PAGES(3)));
    take_out(base, base + PAGE);
    munmap((void *)base, PAGES(3));
    saved_from = saved_to = 0;
    end_run();
}

/* A large block waits for the next run, unless something was done to it that a fresh one would not have. */
static void keeps_large_plain_blocks(void)
{
    open_worker();
    const uintptr_t plain = map(32), special = map(33);
    fill(plain, plain + PAGES(32), 1);
    fill(special, special + PAGES(33), 1);
    call(SYS_madvise, (long)special, PAGE, MADV_DONTFORK, 0, 0, 0);
    call(SYS_munmap, (long)plain, (long)PAGES(32), 0, 0, 0, 0);
    call(SYS_munmap, (long)special, (long)PAGES(33), 0, 0, 0, 0);
    CHECK_EQUAL(hs_cache_pages(), 32);
    const uintptr_t again = map(32);
    CHECK(is_zero(again, again + PAGES(32)));
    CHECK_EQUAL(hs_cache_pages(), 0);
    /* It may have lent them to a pipe. */
    seen = HS_SEEN_UNKNOWN;
    call(SYS_munmap, (long)again, (long)PAGES(32), 0, 0, 0, 0);
    CHECK_EQUAL(hs_cache_pages(), 0);
    end_run();
}

static uintptr_t base_page;

static void change_by(int kind)
{
    const long base = (long)base_page;
    switch (kind) {
    case 0: call(SYS_munmap, base, PAGE, 0, 0, 0, 0); break;
    case 1: call(SYS_mprotect, base, PAGE, PROT_READ, 0, 0, 0); break;
    case 2: call(SYS_madvise, base, PAGE, MADV_DONTFORK, 0, 0, 0); break;
    case 3: call(SYS_mremap, base, PAGE, 2 * PAGE, MREMAP_MAYMOVE, 0, 0); break;
    case 4: map_with(base_page, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED); break;
    case 5: map_with(0, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN); break;
    case 6: map_with(PARK + PAGE, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED); break;
    case 7: call(SYS_mremap, (long)map(1), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0, 0); break;
    default:
        /* Side by side; each is a range of its own. */
        for (size_t i = 0; i <= RANGES_MAX; i++)
            map(1);
    }
}

static void what_cannot_be_undone_is_lost(void)
{
    open_worker();
    for (int kind = 0; kind < 9; kind++) {
        base_page = (uintptr_t)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mappings.lost = 0;
        CHECK(!hs_mappings_lost());
        change_by(kind);
        CHECK_EQUAL(hs_mappings_lost(), 1);
    }
}

static int is_lost_by(uintptr_t at, size_t pages, long advice)
{
    mappings.lost = 0;
    call(SYS_madvise, (long)at, (long)PAGES(pages), advice, 0, 0, 0);
    return hs_mappings_lost();
}

/* Of memory from before main, pages may be dropped where the reset restores them; of what the run has mapped, anything. */
static void advice_is_for_memory_that_is_restored(void)
{
    static const long advice[] = {MADV_FREE, MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT, MADV_DONTFORK, MADV_WIPEONFORK};
    open_worker();
    const uintptr_t base = (uintptr_t)mmap(NULL, PAGES(4), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    saved_from = base + PAGES(1);
    saved_to = base + PAGES(3);
    CHECK(is_lost_by(base, 1, MADV_DONTNEED));
    CHECK(!is_lost_by(base + PAGES(1), 2, MADV_DONTNEED));
    CHECK(is_lost_by(base + PAGES(1), 3, MADV_DONTNEED));
    for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
        CHECK(is_lost_by(base + PAGES(1), 1, advice[i]));
    const uintptr_t made = map(4);
    CHECK(!is_lost_by(made, 4, MADV_DONTNEED));
    for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
        CHECK(!is_lost_by(made, 4, advice[i]));
    /* The heap beyond the snapshot's end is made zero. */
    call(SYS_brk, (long)(heap.end + PAGES(4)), 0, 0, 0, 0, 0);
    CHECK(!is_lost_by(heap.end, 4, MADV_DONTNEED));
    CHECK(is_lost_by(heap.end, 5, MADV_DONTNEED));
    CHECK(is_lost_by(heap.end - PAGE, 2, MADV_DONTNEED));
    CHECK(is_lost_by(heap.end, 1, MADV_PAGEOUT));
    mappings.lost = 0;
}

static void mappings_by_another_way_are_noticed(void)
{
    open_worker();
    const long made = HS_SYS(SYS_mmap, 0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(hs_mappings_unseen());
    CHECK(hs_mappings_differ());
    HS_SYS(SYS_munmap, made, PAGE);
    CHECK(!hs_mappings_unseen());
    CHECK(!hs_mappings_differ());
    hs_mappings_note_base();
    CHECK(!hs_mappings_lost());
}

static void code_is_noted_for_one_run(void)
{
    open_worker();
    map(1);
    CHECK(!hs_mappings_have_code());
    map_with(0, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS);
    CHECK(hs_mappings_have_code());
    end_run();
    CHECK(!hs_mappings_have_code());
}

static uintptr_t move_to(uintptr_t wanted)
{
    return (uintptr_t)call(SYS_brk, (long)wanted, 0, 0, 0, 0, 0);
}

/* The tool sees a heap that reads as zero where it grows, holds what was written, and has nothing mapped beyond its end. */
static void the_heap_is_as_a_fresh_one(void)
{
    enum { MOST = 64 };
    static unsigned char wanted[MOST * 4096];
    open_worker();
    for (int run = 0; run < 10; run++) {
        uintptr_t end = heap.given;
        CHECK_EQUAL(move_to(0), end);
        memset(wanted, 0, sizeof wanted);
        for (int step = 0; step < 100; step++) {
            const uintptr_t next = heap.start + unit_random(PAGES(MOST));
            CHECK_EQUAL(move_to(next), next);
            /* The kernel takes whole pages away. */
            if (round_up(next) < end)
                memset(wanted + (round_up(next) - heap.start), 0, round_up(end) - round_up(next));
            end = next;
            CHECK(!is_mapped(round_up(end)));
            CHECK(!hs_mappings_heap_differs());
            CHECK_EQUAL(memcmp((void *)heap.start, wanted, end - heap.start), 0);
            if (end > heap.start) {
                const uintptr_t from = heap.start + unit_random((uint32_t)(end - heap.start));
                const int byte = (int)unit_random(256);
                fill(from, end, byte);
                memset(wanted + (from - heap.start), byte, end - from);
            }
        }
        /* The snapshot's part is restored by memory.c. */
        CHECK(!hs_mappings_lost());
        move_to(heap.end);
        fill(heap.start, heap.end, 0);
        end_run();
        CHECK_EQUAL(move_to(0), heap.given);
        CHECK(!is_mapped(heap.end));
    }
}

/* A run is not saved later than main if it has mapped anything, or if its heap has shrunk, or has grown by more than may be kept. */
static void a_heap_that_grows_a_little_is_no_touch(void)
{
    uintptr_t given;
    open_worker();
    CHECK(hs_mappings_touched(&given));
    CHECK_EQUAL(given, heap.given);
    move_to(heap.first_end);
    CHECK(!hs_mappings_touched(&given));
    move_to(heap.first_end + HEAP_KEPT / 2);
    CHECK(!hs_mappings_touched(&given));
    CHECK_EQUAL(given, heap.first_end + HEAP_KEPT / 2);
    move_to(heap.first_end + HEAP_KEPT / 2 + 1);
    CHECK(hs_mappings_touched(&given));
    move_to(heap.first_end);
    map(1);
    CHECK(hs_mappings_touched(&given));
}

static void the_heap_keeps_no_more_than_it_may(void)
{
    open_worker();
    CHECK_EQUAL(move_to(heap.end + HEAP_KEPT + PAGES(100)), heap.end + HEAP_KEPT + PAGES(100));
    fill(heap.end, heap.end + PAGES(50), 3);
    end_run();
    CHECK_EQUAL(mappings.kernel_end, heap.end + HEAP_KEPT);
    CHECK_EQUAL(HS_SYS(SYS_brk, 0), heap.end + HEAP_KEPT);
}

static void the_break_is_refused_where_the_kernel_would(void)
{
    open_worker();
    const uintptr_t other = heap.end + PAGES(10);
    CHECK_EQUAL(move_to(heap.start - 1), heap.given);
    CHECK_EQUAL(move_to(heap.end + PAGES(20)), heap.end + PAGES(20));
    CHECK_EQUAL(move_to(heap.end), heap.end);
    /* Where the kernel's break is, but the tool's is not. */
    CHECK_EQUAL(map_with(other, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE), other);
    CHECK_EQUAL(move_to(other + PAGE), heap.end);
    CHECK_EQUAL(move_to(other - PAGE), other - PAGE);
    CHECK(!hs_mappings_lost());
}

static void a_break_made_real_is_the_kernels(void)
{
    open_worker();
    move_to(heap.end + PAGES(30));
    move_to(heap.end + PAGES(3) + 5);
    CHECK(HS_SYS(SYS_brk, 0) != (long)(heap.end + PAGES(3) + 5));
    hs_mappings_make_real(1);
    CHECK_EQUAL(HS_SYS(SYS_brk, 0), heap.end + PAGES(3) + 5);
    CHECK_EQUAL(move_to(heap.end + PAGES(6)), heap.end + PAGES(6));
    CHECK_EQUAL(HS_SYS(SYS_brk, 0), heap.end + PAGES(6));
    end_run();
    CHECK(!mappings.cannot_park);
}

/* A handler that interrupts its own thread would wait for itself. */
static void a_thread_that_has_the_lock_does_not_wait(void)
{
    open_worker();
    mappings.lock = (int)HS_SYS(SYS_gettid);
    map(1);
    CHECK(hs_mappings_lost());
}

/* A child has the lock of a thread that it does not have; the list is none of its affair. */
static void a_child_needs_no_list(void)
{
    open_worker();
    mappings.lock = 1;
    mappings.process--;
    const size_t before = mappings.count;
    CHECK(is_mapped(map(1)));
    CHECK_EQUAL(mappings.lock, 1);
    CHECK(!mappings.lost);
    CHECK_EQUAL(mappings.count, before + 1);
}

static void *map_and_unmap(void *unused)
{
    for (int i = 0; i < 400; i++) {
        const uintptr_t at = map(20);
        fill(at, at + PAGE, 1);
        call(SYS_munmap, (long)at, (long)PAGES(20), 0, 0, 0, 0);
    }
    return unused;
}

static void threads_change_the_list_one_at_a_time(void)
{
    pthread_t threads[4];
    open_worker();
    for (int i = 0; i < 4; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, map_and_unmap, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(!hs_mappings_lost());
    CHECK_EQUAL(mappings.count, 0);
}

const struct unit_test tests_of_mappings[] = {
    {"mappings: the list is what was mapped", the_list_is_what_was_mapped},
    {"mappings: undoes whatever a run maps", undoes_whatever_a_run_maps},
    {"mappings: a part is unmapped and the rest undone", a_part_is_unmapped_and_the_rest_undone},
    {"mappings: knows what a hint overlaps", knows_what_a_hint_overlaps},
    {"mappings: the break's last page is zero for the next run", the_breaks_last_page_is_zero_for_the_next_run},
    {"mappings: no memory counts twice as restored", no_memory_counts_twice_as_restored},
    {"mappings: keeps large plain blocks", keeps_large_plain_blocks},
    {"mappings: what cannot be undone is lost", what_cannot_be_undone_is_lost},
    {"mappings: advice is for memory that is restored", advice_is_for_memory_that_is_restored},
    {"mappings: mappings by another way are noticed", mappings_by_another_way_are_noticed},
    {"mappings: code is noted for one run", code_is_noted_for_one_run},
    {"mappings: a heap that grows a little is no touch", a_heap_that_grows_a_little_is_no_touch},
    {"mappings: the heap is as a fresh one", the_heap_is_as_a_fresh_one},
    {"mappings: the heap keeps no more than it may", the_heap_keeps_no_more_than_it_may},
    {"mappings: the break is refused where the kernel would", the_break_is_refused_where_the_kernel_would},
    {"mappings: a break made real is the kernel's", a_break_made_real_is_the_kernels},
    {"mappings: a thread that has the lock does not wait", a_thread_that_has_the_lock_does_not_wait},
    {"mappings: a child needs no list", a_child_needs_no_list},
    {"mappings: threads change the list one at a time", threads_change_the_list_one_at_a_time},
    {NULL, NULL},
};
