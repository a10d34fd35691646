/* Tests of runtime/reset/page_cache.c with real mappings: pages come back zero, no more wait than may, and their places are as its head
 * comment says. Its state is private, so it is included. */
#include "reset/page_cache.c"
#include "unit.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uintptr_t map(size_t pages)
{
    void *made = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(made != MAP_FAILED);
    return (uintptr_t)made;
}

/* A block of so many pages, each written to. */
static uintptr_t used(size_t pages)
{
    const uintptr_t at = map(pages);
    memset((void *)at, 0xa5, pages * PAGE);
    return at;
}

static int take(uintptr_t at, size_t pages)
{
    return hs_cache_take(at, at + pages * PAGE);
}

static int is_mapped(uintptr_t at)
{
    unsigned char exists;
    return HS_SYS(SYS_mincore, at, PAGE, &exists) == 0;
}

static int is_zero(uintptr_t at, size_t pages)
{
    return hs_memory_is_zero((char *)at, (char *)at + pages * PAGE);
}

/* As the comment at the state says. */
static void check_state(void)
{
    uintptr_t sum = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        const struct block *block = &cache.blocks[i];
        const uintptr_t place = PLACE + i * STRIDE;
        sum += size_of(block);
        if (size_of(block)) {
            CHECK(block->from >= place && block->to <= place + STRIDE);
            CHECK(is_mapped(block->from) && is_mapped(block->to - PAGE));
            CHECK(hs_cache_has(block->from, block->to));
            CHECK(block->dirty || is_zero(block->from, size_of(block) / PAGE));
        }
    }
    CHECK_EQUAL(sum, cache.bytes);
    CHECK(sum <= MOST);
    CHECK_EQUAL(hs_cache_pages(), sum / PAGE);
}

static void gives_back_zero(void)
{
    const uintptr_t at = used(32);
    CHECK(take(at, 32));
    CHECK(!is_mapped(at));
    CHECK(hs_cache_differs());
    check_state();
    const uintptr_t next = map(32);
    CHECK_EQUAL(hs_cache_give(next, 32 * PAGE), 0);
    CHECK(is_zero(next, 32));
    CHECK_EQUAL(hs_cache_pages(), 0);
    check_state();
}

static void cleans_what_waits(void)
{
    CHECK(take(used(32), 32) && take(used(17), 17));
    hs_cache_clean();
    CHECK(!hs_cache_differs());
    for (size_t i = 0; i < SLOTS; i++)
        CHECK(!cache.blocks[i].dirty);
    check_state();
}

static void gives_a_part_of_the_smallest_that_suffices(void)
{
    CHECK(take(used(100), 100) && take(used(40), 40) && take(used(20), 20));
    const uintptr_t at = map(30);
    CHECK_EQUAL(hs_cache_give(at, 30 * PAGE), 0);
    CHECK(is_zero(at, 30));
    CHECK_EQUAL(hs_cache_pages(), 100 + 10 + 20);
    check_state();
}

/* Where nothing fits, the fresh mapping stays as it is. */
static void leaves_other_sizes_alone(void)
{
    const uintptr_t small = used(15), large = used(MOST / PAGE + 1);
    CHECK(!take(small, 15) && !take(large, MOST / PAGE + 1));
    CHECK(is_mapped(small) && is_mapped(large));
    CHECK(take(used(20), 20));
    const uintptr_t at = map(21);
    CHECK_EQUAL(hs_cache_give(at, 21 * PAGE), 0);
    CHECK_EQUAL(hs_cache_give(small, 15 * PAGE), 0);
    CHECK_EQUAL(*(unsigned char *)small, 0xa5);
    CHECK(is_mapped(at));
    CHECK_EQUAL(hs_cache_pages(), 20);
}

static void refuses_what_is_not_private_memory(void)
{
    const int fd = memfd_create("unit", MFD_CLOEXEC);
    CHECK_EQUAL(ftruncate(fd, 32 * PAGE), 0);
    const int kinds[] = {MAP_PRIVATE, MAP_SHARED};
    for (size_t i = 0; i < 2; i++) {
        void *file = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, kinds[i], fd, 0);
        CHECK(!take((uintptr_t)file, 32));
        CHECK(is_mapped((uintptr_t)file));
    }
    void *shared = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(!take((uintptr_t)shared, 32));
    CHECK_EQUAL(hs_cache_pages(), 0);
}

static void drops_the_oldest(void)
{
    const size_t third = MOST / PAGE / 3 + 1;
    CHECK(take(used(third), third) && take(used(third + 1), third + 1) && take(used(third + 2), third + 2));
    CHECK_EQUAL(hs_cache_pages(), 2 * third + 3);
    check_state();
    CHECK(hs_cache_drop());
    CHECK(!hs_cache_drop());
    for (size_t i = 0; i < SLOTS + 3; i++)
        CHECK(take(used(16 + i), 16 + i));
    size_t expected = 0;
    for (size_t i = 3; i < SLOTS + 3; i++)
        expected += 16 + i;
    CHECK_EQUAL(hs_cache_pages(), expected);
    check_state();
}

static void makes_way_for_the_tool(void)
{
    CHECK(take(used(32), 32));
    hs_cache_avoid(PLACE - 2 * PAGE, PLACE);
    hs_cache_avoid(PLACE + SLOTS * STRIDE, PLACE + SLOTS * STRIDE + PAGE);
    CHECK_EQUAL(hs_cache_pages(), 32);
    hs_cache_avoid(PLACE - PAGE, PLACE + PAGE);
    CHECK_EQUAL(hs_cache_pages(), 0);
    for (size_t i = 0; i < SLOTS; i++)
        CHECK(!is_mapped(PLACE + i * STRIDE));
    /* Something is there now. */
    CHECK(mmap((void *)(PLACE + STRIDE), PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
          MAP_FAILED);
    const uintptr_t at = used(32);
    CHECK(!take(at, 32));
    CHECK_EQUAL(*(unsigned char *)at, 0xa5);
    CHECK(is_mapped(PLACE + STRIDE));
}

static void a_child_gets_zeros_of_what_waits(void)
{
    CHECK(take(used(32), 32));
    const struct block *block = find(32 * PAGE);
    const pid_t child = fork();
    if (child == 0)
        _exit(!is_zero(block->from, 32));
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    CHECK(!is_zero(block->from, 32));
}

/* What was given is the tool's own memory again, which its children have copies of. */
static void a_child_has_what_was_given(void)
{
    CHECK(take(used(32), 32));
    const uintptr_t at = map(32);
    CHECK_EQUAL(hs_cache_give(at, 32 * PAGE), 0);
    memset((void *)at, 7, 32 * PAGE);
    const pid_t child = fork();
    if (child == 0)
        _exit(*(unsigned char *)(at + 31 * PAGE) != 7);
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}

static void keeps_its_state_whatever_comes(void)
{
    for (int i = 0; i < 2000; i++) {
        const size_t pages = LEAST / PAGE + unit_random(200);
        const uintptr_t at = unit_random(2) ? used(pages) : map(pages);
        if (unit_random(2)) {
            CHECK(take(at, pages));
            CHECK(!is_mapped(at));
        } else {
            memset((void *)at, 0, pages * PAGE);
            CHECK_EQUAL(hs_cache_give(at, pages * PAGE), 0);
            CHECK(is_zero(at, pages));
            munmap((void *)at, pages * PAGE);
        }
        if (unit_random(20) == 0)
            hs_cache_clean();
        check_state();
    }
}

const struct unit_test tests_of_page_cache[] = {
    {"page_cache: gives back zero", gives_back_zero},
    {"page_cache: cleans what waits", cleans_what_waits},
    {"page_cache: gives a part of the smallest that suffices", gives_a_part_of_the_smallest_that_suffices},
    {"page_cache: leaves other sizes alone", leaves_other_sizes_alone},
    {"page_cache: refuses what is not private memory", refuses_what_is_not_private_memory},
    {"page_cache: drops the oldest", drops_the_oldest},
    {"page_cache: makes way for the tool", makes_way_for_the_tool},
    {"page_cache: a child gets zeros of what waits", a_child_gets_zeros_of_what_waits},
    {"page_cache: a child has what was given", a_child_has_what_was_given},
    {"page_cache: keeps its state whatever comes", keeps_its_state_whatever_comes},
    {NULL, NULL},
};
