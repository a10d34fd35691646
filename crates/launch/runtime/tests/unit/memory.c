/* Tests of runtime/reset/memory.c on mappings of the test's own, which it is told are all that there are: everything else here
 * belongs to the sanitizers. Its state is private, so it is included. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"

static const char *fake_read(void);
static const char *fake_next(const char *at, struct hs_mapping *out);
static void fake_learn(void *(*before)(void **place), void (*keep)(void **place));
#define hs_maps_read fake_read
#define hs_maps_next fake_next
#define hs_bind_learn fake_learn
#include "reset/memory.c"
#include "unit.h"

struct hs_place hs_strings_place(void)
{
    return (struct hs_place){NULL, 0};
}

#define PAGES(count) ((count) * PAGE)

struct hs_frame hs_frame;

/* The mappings that the runtime is to see. */
static struct hs_mapping listed[REGIONS_MAX + 8];
static size_t list_count;

static const char *fake_read(void)
{
    return (const char *)listed;
}

static const char *fake_next(const char *at, struct hs_mapping *out)
{
    const struct hs_mapping *map = (const struct hs_mapping *)(const void *)at;
    if (map == listed + list_count)
        return NULL;
    *out = *map;
    return (const char *)(map + 1);
}

static void list(char *from, size_t size, const char *access, const char *path)
{
    struct hs_mapping *map = &listed[list_count++];
    *map = (struct hs_mapping){.from = (uintptr_t)from, .to = (uintptr_t)from + size, .path = path};
    memcpy(map->access, access, sizeof map->access);
}

static char *map_at(uintptr_t place, size_t pages)
{
    char *made = mmap((void *)place, PAGES(pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(made != MAP_FAILED);
    return made;
}

static char *map(size_t pages)
{
    return map_at(0, pages);
}

/* The kernel's word for the thread's number. */
static int *number;

int *hs_child_number(void)
{
    return number;
}

void *hs_own_map(size_t size, int flags, int fd)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
}

/* A tool with so many pages of data, the number somewhere among them; a stack that is in use from its middle on, with nothing mapped
 * below, and what the loader has left below the part in use; and a heap of which libc has half. */
enum { DATA = 40, STACK = 64, HEAP = 8, IN_USE = 32 };
#define LEFT 5000
static char *data, *stack, *heap;
/* In this order, as in a process. The kernel maps nothing near it by itself. */
#define DATA_PLACE 0x1c0000000000ul
#define HEAP_PLACE 0x1c8000000000ul
#define STACK_PLACE 0x1d0000000000ul

static void random_bytes(char *at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (char)unit_random(256);
}

static void tool(void)
{
    data = map_at(DATA_PLACE, DATA);
    stack = mmap((void *)STACK_PLACE, PAGES(STACK), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(stack == (char *)STACK_PLACE);
    heap = map_at(HEAP_PLACE, HEAP);
    random_bytes(data, PAGES(DATA));
    random_bytes(heap, PAGES(HEAP));
    random_bytes(stack + PAGES(IN_USE) - LEFT, PAGES(STACK - IN_USE) + LEFT);
    number = (int *)(data + PAGES(3) + 200);
    hs_frame.stack = (uintptr_t)stack + PAGES(IN_USE) + 1000;
    list(data, PAGES(DATA), "rw-p", "/bin/tool");
    list(heap, PAGES(HEAP), "rw-p", "[heap]");
    list(stack, PAGES(STACK), "rw-p", "[stack]");
}

static char copies[3][PAGES(STACK)];

static void copy(void)
{
    memcpy(copies[0], data, PAGES(DATA));
    memcpy(copies[1], heap, PAGES(HEAP));
    memcpy(copies[2], stack, PAGES(STACK));
}

static int is_as_copied(void)
{
    return memcmp(copies[0], data, PAGES(DATA)) == 0 && memcmp(copies[1], heap, PAGES(HEAP)) == 0 &&
           memcmp(copies[2], stack, PAGES(STACK)) == 0;
}

/* Writes anywhere, but to the thread's number. */
static void run(void)
{
    for (int i = unit_random(30); i >= 0; i--) {
        const int kept = *number;
        data[unit_random(PAGES(DATA))]++;
        heap[unit_random(PAGES(HEAP))]++;
        stack[unit_random(PAGES(STACK))]++;
        *number = kept;
    }
}

static void puts_back_whatever_a_run_writes(void)
{
    tool();
    copy();
    CHECK_EQUAL(hs_memory_save(), 0);
    CHECK(!hs_memory_differs());
    for (int i = 0; i < 200; i++) {
        run();
        CHECK(hs_memory_differs());
        hs_memory_restore();
        CHECK(is_as_copied());
        CHECK(!hs_memory_differs());
    }
}

/* A piece that many runs have changed is copied from then on: it is right all the same, and the count goes no further. */
static void counts_changes_up_to_a_bound(void)
{
    tool();
    copy();
    CHECK_EQUAL(hs_memory_save(), 0);
    const struct region *region = &now()->regions[0];
    CHECK_EQUAL(region->from, (uintptr_t)data);
    const unsigned char *dirtied = now()->dirtied + region->first;
    for (int i = 1; i < ALWAYS + 3; i++) {
        data[5] ^= 1;
        hs_memory_restore();
        CHECK(is_as_copied());
        CHECK_EQUAL(dirtied[0], i < ALWAYS ? i : ALWAYS);
        CHECK_EQUAL(dirtied[1], 0);
    }
}

static void leaves_what_the_kernel_writes(void)
{
    tool();
    *number = 1;
    CHECK_EQUAL(hs_memory_save(), 0);
    *number = 2;
    CHECK(!hs_memory_differs());
    hs_memory_restore();
    CHECK_EQUAL(*number, 2);
    ((char *)number)[-1]++;
    CHECK(hs_memory_differs());
    hs_memory_restore();
    ((char *)number)[sizeof *number]++;
    CHECK(hs_memory_differs());
}

static void saves_no_memory_of_its_own(void)
{
    tool();
    dl_iterate_phdr(find_own, NULL);
    const uintptr_t low = memory.own_low, high = memory.own_high;
    CHECK((uintptr_t)&memory >= low && (uintptr_t)&memory < high);
    list((char *)low - PAGE, high - low + PAGES(2), "rw-p", "/memfd:hotstart-runtime");
    /* Only the list of regions: there need not be anything around it. */
    find_holes();
    for (size_t i = 0; i < list_count; i++)
        CHECK_EQUAL(add_mapping(&listed[i]), 0);
    for (size_t i = 0; i < now()->count; i++)
        CHECK(now()->regions[i].to <= low || now()->regions[i].from >= high);
    CHECK_EQUAL(now()->regions[now()->count - 1].to, high + PAGE);
    CHECK_EQUAL(now()->regions[now()->count - 2].from, low - PAGE);
}

static void saves_only_what_a_run_can_write_and_nobody_else(void)
{
    tool();
    CHECK_EQUAL(hs_memory_save(), 0);
    const size_t count = now()->count;
    char *more = map(1);
    list(more, PAGE, "r--p", "/bin/tool");
    list(more, PAGE, "r-xp", "/bin/tool");
    list(more, PAGE, "rw-s", "/dev/shm/shared");
    CHECK_EQUAL(hs_memory_save(), 0);
    CHECK_EQUAL(now()->count, count);
    list(more, PAGE, "rw-p", "");
    CHECK_EQUAL(hs_memory_save(), 0);
    CHECK_EQUAL(now()->count, count + 1);
}

static void refuses_too_much(void)
{
    tool();
    char *large = mmap(NULL, SAVED_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    list(large, SAVED_MAX, "rw-p", "");
    CHECK_EQUAL(hs_memory_save(), -1);
    list_count--;
    CHECK_EQUAL(hs_memory_save(), 0);
    for (size_t i = now()->count; i < REGIONS_MAX; i++)
        list(large + PAGES(2 * i), PAGE, "rw-p", "");
    CHECK_EQUAL(hs_memory_save(), 0);
    CHECK_EQUAL(now()->count, REGIONS_MAX);
    list(large, PAGE, "rw-p", "");
    CHECK_EQUAL(hs_memory_save(), -1);
}

static void refuses_a_process_without_a_stack(void)
{
    tool();
    list_count--;
    CHECK_EQUAL(hs_memory_save(), -1);
}

/* Against a map of bytes. */
static void adds_what_lies_around_the_holes(void)
{
    enum { SPACE = 64 };
    for (int turn = 0; turn < 2000; turn++) {
        unsigned char wanted[SPACE] = {0}, found[SPACE] = {0};
        uintptr_t at[4];
        for (int i = 0; i < 4; i++)
            at[i] = unit_random(SPACE / 4) + (uintptr_t)i * (SPACE / 4);
        memory.holes[0] = (struct hole){at[0], at[1]};
        memory.holes[1] = (struct hole){at[2], at[3]};
        const uintptr_t from = unit_random(SPACE), to = from + unit_random((uint32_t)(SPACE - from));
        for (uintptr_t i = from; i < to; i++)
            wanted[i] = !(i >= at[0] && i < at[1]) && !(i >= at[2] && i < at[3]);
        now()->count = 0;
        CHECK_EQUAL(add_around(from, to), 0);
        for (size_t i = 0; i < now()->count; i++)
            for (uintptr_t byte = now()->regions[i].from; byte < now()->regions[i].to; byte++)
                found[byte]++;
        CHECK_EQUAL(memcmp(wanted, found, SPACE), 0);
    }
}

static int is_present(char *page)
{
    unsigned char exists;
    CHECK_EQUAL(mincore(page, PAGE, &exists), 0);
    return exists & 1;
}

static void clears_pages_and_makes_none(void)
{
    char *area = map(16);
    madvise(area, PAGES(16), MADV_NOHUGEPAGE);
    for (int page = 0; page < 16; page += 3)
        area[PAGES(page) + 77] = 1;
    CHECK(hs_memory_clear((uintptr_t)area, (uintptr_t)area + PAGES(16)));
    for (int page = 0; page < 16; page++)
        CHECK_EQUAL(is_present(area + PAGES(page)), page % 3 == 0);
    CHECK(hs_memory_is_zero(area, area + PAGES(16)));
    munmap(area + PAGES(8), PAGE);
    CHECK(!hs_memory_clear((uintptr_t)area, (uintptr_t)area + PAGES(16)));
    CHECK(hs_memory_clear((uintptr_t)area, (uintptr_t)area));
}

static void finds_any_byte_that_is_not_zero(void)
{
    char bytes[100] = {0};
    CHECK(hs_memory_is_zero(bytes, bytes));
    CHECK(hs_memory_is_zero(bytes, bytes + 100));
    for (int i = 0; i < 100; i++) {
        bytes[i] = 1;
        CHECK(!hs_memory_is_zero(bytes, bytes + 100));
        CHECK(hs_memory_is_zero(bytes, bytes + i));
        CHECK(hs_memory_is_zero(bytes + i + 1, bytes + 100));
        bytes[i] = 0;
    }
}

/* A tool that is saved at main, then changed by what it does until it first looks at its request, and saved there. */
static uintptr_t deeper;

static void save_both(void)
{
    tool();
    CHECK_EQUAL(hs_memory_open_point(), 0);
    CHECK_EQUAL(hs_memory_save(), 0);
    deeper = hs_frame.stack - PAGES(5) - 160;
    data[17]++;
    random_bytes((char *)deeper, hs_frame.stack - deeper);
    CHECK_EQUAL(hs_memory_save_point(deeper, (uintptr_t)heap + PAGES(HEAP) - 100), 0);
}

static void puts_back_either_snapshot(void)
{
    tool();
    copy();
    CHECK_EQUAL(hs_memory_open_point(), 0);
    CHECK_EQUAL(hs_memory_save(), 0);
    deeper = hs_frame.stack - PAGES(5) - 160;
    data[17]++;
    random_bytes((char *)deeper, hs_frame.stack - deeper);
    const char later = data[17], on_stack = *(char *)deeper;
    CHECK_EQUAL(hs_memory_save_point(deeper, (uintptr_t)heap + 100), 0);
    for (int i = 0; i < 60; i++) {
        run();
        const int to_point = unit_random(2);
        hs_memory_choose(to_point ? HS_AT_POINT : HS_AT_MAIN);
        hs_memory_restore();
        CHECK(!hs_memory_differs());
        if (to_point) {
            CHECK_EQUAL(data[17], later);
            CHECK_EQUAL(*(char *)deeper, on_stack);
            CHECK(hs_memory_is_zero(stack, (char *)deeper));
        } else {
            CHECK(is_as_copied());
        }
    }
}

static void the_point_has_the_heap_that_came_since(void)
{
    tool();
    munmap(heap + PAGES(4), PAGES(HEAP - 4));
    listed[1].to = (uintptr_t)heap + PAGES(4);
    CHECK_EQUAL(hs_memory_open_point(), 0);
    CHECK_EQUAL(hs_memory_save(), 0);
    const uintptr_t end = (uintptr_t)heap + PAGES(4);
    CHECK(mmap((void *)end, PAGES(2), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)end);
    ((char *)end)[5000] = 7;
    CHECK_EQUAL(hs_memory_save_point(hs_frame.stack, end + 5100), 0);
    CHECK_EQUAL(hs_memory_heap().end, end);
    hs_memory_choose(HS_AT_POINT);
    const struct hs_heap found = hs_memory_heap();
    CHECK_EQUAL(found.start, (uintptr_t)heap);
    CHECK_EQUAL(found.end, end + PAGES(2));
    CHECK_EQUAL(found.given, end + 5100);
    CHECK_EQUAL(found.first_end, end);
    ((char *)end)[5000] = 8;
    hs_memory_restore();
    CHECK_EQUAL(((char *)end)[5000], 7);
}

static int is_mapped(const char *at)
{
    return HS_SYS(SYS_msync, at, PAGE, MS_ASYNC) == 0;
}

/* However deep a run was in it. */
static void the_stack_begins_where_it_did(void)
{
    tool();
    copy();
    CHECK_EQUAL(hs_memory_save(), 0);
    for (int i = 0; i < 20; i++) {
        const size_t depth = unit_random(40);
        stack[-(long)PAGES(depth)] = 1;
        CHECK_EQUAL(hs_memory_stack_low(), (uintptr_t)stack - PAGES(depth));
        hs_memory_restore();
        CHECK(!is_mapped(stack - PAGE));
        CHECK_EQUAL(hs_memory_stack_low(), (uintptr_t)stack);
        CHECK(is_as_copied() && !hs_memory_differs());
    }
}

/* Where a run is deeper at the point than the stack was at main, that is so in runs that begin there, and only in these. */
static void the_stack_is_as_deep_as_at_the_point(void)
{
    tool();
    copy();
    CHECK_EQUAL(hs_memory_open_point(), 0);
    CHECK_EQUAL(hs_memory_save(), 0);
    char *const low = stack - PAGES(3);
    *low = 7;
    CHECK(!hs_memory_stack_is_at_point());
    CHECK_EQUAL(hs_memory_save_point((uintptr_t)low, (uintptr_t)heap + PAGES(HEAP)), 0);
    CHECK(hs_memory_stack_is_at_point());
    for (int i = 0; i < 20; i++) {
        hs_memory_choose(unit_random(2) ? HS_AT_POINT : HS_AT_MAIN);
        hs_memory_restore();
        CHECK_EQUAL(is_mapped(low), now() == &memory.snapshots[HS_AT_POINT]);
        CHECK(!is_mapped(low - PAGE));
        CHECK_EQUAL(hs_memory_stack_saved(), hs_memory_stack_low());
        CHECK(is_mapped(low) ? *low == 7 : is_as_copied());
        stack[-(long)PAGES(unit_random(9))] = 1;
    }
}

/* Another mapping right below is not the stack's. */
static void the_stack_ends_where_another_mapping_begins(void)
{
    tool();
    char *other = mmap(stack - PAGES(2), PAGES(2), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(other == stack - PAGES(2));
    list_count = 0;
    list(other, PAGES(2), "---p", "");
    list(stack, PAGES(STACK), "rw-p", "[stack]");
    CHECK_EQUAL(hs_memory_save(), 0);
    CHECK_EQUAL(hs_memory_stack_low(), (uintptr_t)stack);
    hs_memory_restore();
    CHECK(is_mapped(other));
}

/* The page with the thread's number is not restored as a whole, nor is what the tool cannot write. */
static void knows_what_it_restores(void)
{
    tool();
    CHECK_EQUAL(hs_memory_save(), 0);
    const uintptr_t from = (uintptr_t)data, low = (uintptr_t)stack;
    CHECK_EQUAL(hs_memory_saved(from, from + PAGES(3)), PAGES(3));
    CHECK_EQUAL(hs_memory_saved(from, from + PAGES(DATA)), PAGES(DATA) - sizeof *number);
    CHECK_EQUAL(hs_memory_saved(low, low + PAGES(STACK)), PAGES(STACK));
    CHECK_EQUAL(hs_memory_saved(low - PAGE, low + PAGE), PAGE);
    CHECK_EQUAL(hs_memory_saved((uintptr_t)copies, (uintptr_t)(copies + 1)), 0);
}

static uint32_t *differing[8];
static size_t differing_count;

static int collect_place(uint32_t *place, uint32_t saved)
{
    CHECK(*place != saved);
    if (differing_count < 8)
        differing[differing_count++] = place;
    return 0;
}

static int refuse(uint32_t *place, uint32_t saved)
{
    (void)place, (void)saved;
    return 1;
}

static void compares_word_by_word_with_the_point(void)
{
    save_both();
    CHECK(hs_memory_compare_point(collect_place));
    CHECK_EQUAL(differing_count, 0);
    data[4 * 50 + 1]++;
    heap[4 * 9]++;
    *(char *)(deeper & ~7ul) += 1;
    CHECK(hs_memory_compare_point(collect_place));
    CHECK_EQUAL(differing_count, 3);
    CHECK(differing[0] == (uint32_t *)(data + 4 * 50));
    CHECK(!hs_memory_compare_point(refuse));
}

static void *asked[1];

static void fake_learn(void *(*before)(void **place), void (*keep)(void **place))
{
    void **slot = (void **)(data + 800);
    asked[0] = before(slot);
    keep(slot);
}

/* Takes over in both snapshots what ld.so has bound. */
static void learns_what_was_bound(void)
{
    save_both();
    void **slot = (void **)(data + 800), *before = *slot;
    *slot = &asked;
    hs_memory_learn();
    CHECK(asked[0] == before);
    for (int level = 0; level < HS_LEVELS; level++) {
        hs_memory_choose(level);
        *slot = NULL;
        hs_memory_restore();
        CHECK(*slot == &asked);
    }
    /* What is saved nowhere keeps its own word. */
    void *elsewhere = data;
    keep_word(&elsewhere);
    CHECK(saved_word(&elsewhere) == data && elsewhere == data);
}

#define WORDS 100
static unsigned visits[WORDS];
static uint64_t words[WORDS];

static int note_visit(uint64_t *word)
{
    visits[word - words]++;
    return *word == 99;
}

static void visits_each_word_that_is_sought(void)
{
    const struct hs_sought sought = {1000, 50, 0x5a17};
    const uint64_t of_interest[] = {1000, 1049, 0x5a17ull << 48, 0x5a17ull << 48 | 7}, others[] = {0, 999, 1050, 0x5a18ull << 48, 0x5a17};
    for (int i = 0; i < 200; i++) {
        const size_t from = unit_random(40), to = from + unit_random(60);
        memset(visits, 0, sizeof visits);
        for (size_t at = 0; at < WORDS; at++)
            words[at] = unit_random(9) ? others[unit_random(5)] : of_interest[unit_random(4)];
        /* What is not aligned belongs to no word. */
        const uintptr_t begin = (uintptr_t)&words[from] - unit_random(8), end = (uintptr_t)&words[to] + unit_random(8);
        CHECK_EQUAL(each_word_in(begin, end, sought, note_visit), 0);
        for (size_t at = 0; at < WORDS; at++)
            CHECK_EQUAL(visits[at], at >= from && at < to && is_sought(words[at], sought));
        for (size_t at = 0; at < 4; at++)
            CHECK(is_sought(of_interest[at], sought));
        for (size_t at = 0; at < 5; at++)
            CHECK(!is_sought(others[at], sought));
    }
    /* It ends with the first call that fails. */
    memset(visits, 0, sizeof visits);
    memset(words, 0, sizeof words);
    words[20] = words[21] = 99;
    CHECK_EQUAL(each_word_in((uintptr_t)words, (uintptr_t)(words + WORDS), (struct hs_sought){99, 1, 1}, note_visit), 1);
    CHECK_EQUAL(visits[20], 1);
    CHECK_EQUAL(visits[21], 0);
}

const struct unit_test tests_of_memory[] = {
    {"memory: puts back whatever a run writes", puts_back_whatever_a_run_writes},
    {"memory: counts changes up to a bound", counts_changes_up_to_a_bound},
    {"memory: leaves what the kernel writes", leaves_what_the_kernel_writes},
    {"memory: saves no memory of its own", saves_no_memory_of_its_own},
    {"memory: saves only what a run can write and nobody else", saves_only_what_a_run_can_write_and_nobody_else},
    {"memory: refuses too much", refuses_too_much},
    {"memory: refuses a process without a stack", refuses_a_process_without_a_stack},
    {"memory: adds what lies around the holes", adds_what_lies_around_the_holes},
    {"memory: clears pages and makes none", clears_pages_and_makes_none},
    {"memory: finds any byte that is not zero", finds_any_byte_that_is_not_zero},
    {"memory: puts back either snapshot", puts_back_either_snapshot},
    {"memory: the point has the heap that came since", the_point_has_the_heap_that_came_since},
    {"memory: the stack begins where it did", the_stack_begins_where_it_did},
    {"memory: the stack is as deep as at the point", the_stack_is_as_deep_as_at_the_point},
    {"memory: the stack ends where another mapping begins", the_stack_ends_where_another_mapping_begins},
    {"memory: knows what it restores", knows_what_it_restores},
    {"memory: compares word by word with the point", compares_word_by_word_with_the_point},
    {"memory: learns what was bound", learns_what_was_bound},
    {"memory: visits each word that is sought", visits_each_word_that_is_sought},
    {NULL, NULL},
};
