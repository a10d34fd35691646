/* Tests of runtime/deferred/delta.c against a small memory of its own, in place of the process's (memory.c). */
#include "runtime.h"

static uintptr_t fake_point_stack(void);
static int fake_compare_point(int (*differs)(uint32_t *place, uint32_t saved));
#define hs_memory_point_stack fake_point_stack
#define hs_memory_compare_point fake_compare_point
#define hs_strings_random fake_random
static char *fake_random(void);
#include "deferred/delta.c"
#include "unit.h"

#include <string.h>

#define WORDS 4096
#define BIG (HS_DELTA_MAX + 1)

/* What memory holds, and what the snapshot that was saved whole has. In the middle is the saved part of the stack. */
static uint32_t memory[BIG], saved[BIG];
static size_t size = WORDS;
/* Words of the array of pointers, and those that random bytes lie in. */
#define OF_REQUEST (8 + HS_RANDOM_BYTES / 4 + 1)
enum { STACK_LOW = 1024, STACK = 2048, STACK_WORDS = RED_ZONE / 4 };

static uintptr_t fake_point_stack(void)
{
    return (uintptr_t)&memory[STACK_LOW];
}

static int fake_compare_point(int (*differs)(uint32_t *place, uint32_t saved))
{
    int found = 0;
    for (size_t i = 0; i < size; i++)
        if (memory[i] != saved[i])
            found |= differs(&memory[i], saved[i]);
    return !found;
}

/* Two arguments; the array of pointers is at the end of memory. */
static const struct hs_start start = {2, (char **)&memory[4000], NULL};
static const uintptr_t stack = (uintptr_t)&memory[STACK];

/* The kernel's random bytes begin within a word. */
static char *fake_random(void)
{
    return (char *)&memory[4010] + 1;
}

static void change(size_t count)
{
    for (size_t i = 0; i < count; i++)
        memory[unit_random(1000)] = unit_random(1u << 31);
}

static int is_as(const uint32_t *wanted)
{
    return memcmp(memory, wanted, size * sizeof *memory) == 0;
}

static void applies_what_it_took(void)
{
    uint32_t wanted[2][WORDS];
    struct hs_delta deltas_of[2];
    for (int i = 0; i < 2; i++) {
        memcpy(memory, saved, sizeof memory);
        change(40);
        memcpy(wanted[i], memory, sizeof wanted[i]);
        CHECK_EQUAL(hs_delta_take(&deltas_of[i], &start, stack), 0);
        CHECK(hs_delta_matches(&deltas_of[i], &start, stack));
    }
    CHECK_EQUAL(deltas_of[1].first, deltas_of[0].count);
    for (int i = 0; i < 2; i++) {
        memcpy(memory, saved, sizeof memory);
        hs_delta_apply(&deltas_of[i]);
        CHECK(is_as(wanted[i]));
        CHECK(hs_delta_matches(&deltas_of[i], &start, stack));
        CHECK(!hs_delta_matches(&deltas_of[!i], &start, stack));
    }
}

static void any_word_more_or_less_or_other_is_no_match(void)
{
    struct hs_delta delta;
    change(40);
    CHECK_EQUAL(hs_delta_take(&delta, &start, stack), 0);
    for (size_t i = 0; i < 1000; i++) {
        const uint32_t before = memory[i];
        memory[i]++;
        CHECK(!hs_delta_matches(&delta, &start, stack));
        memory[i] = saved[i];
        CHECK_EQUAL(hs_delta_matches(&delta, &start, stack), before == saved[i]);
        memory[i] = before;
    }
    CHECK(hs_delta_matches(&delta, &start, stack));
}

static void the_request_and_what_is_below_the_stack_do_not_count(void)
{
    struct hs_delta delta;
    for (size_t i = STACK_LOW; i < STACK - STACK_WORDS; i++)
        memory[i] = 1;
    /* Two pointers and those to the end of both arrays, of two words each. */
    for (size_t i = 4000; i < 4000 + 2 * 4; i++)
        memory[i] = 1;
    for (size_t i = 4010; i <= 4010 + HS_RANDOM_BYTES / 4; i++)
        memory[i] = 1;
    CHECK_EQUAL(hs_delta_take(&delta, &start, stack), 0);
    CHECK_EQUAL(delta.count, 0);
    memory[5]++;
    memory[STACK_LOW - 1]++;
    memory[STACK - STACK_WORDS]++;
    memory[4000 - 1]++;
    memory[4000 + 2 * 4]++;
    memory[4010 - 1]++;
    memory[4010 + HS_RANDOM_BYTES / 4 + 1]++;
    CHECK(!hs_delta_matches(&delta, &start, stack));
    CHECK_EQUAL(hs_delta_take(&delta, &start, stack), 0);
    CHECK_EQUAL(delta.count, 7);
}

static void a_stack_deeper_than_what_is_saved_is_refused(void)
{
    struct hs_delta delta;
    const uintptr_t lowest = (uintptr_t)&memory[STACK_LOW] + RED_ZONE;
    CHECK_EQUAL(hs_delta_take(&delta, &start, lowest), 0);
    CHECK(hs_delta_matches(&delta, &start, lowest));
    CHECK_EQUAL(hs_delta_take(&delta, &start, lowest - 1), -1);
    CHECK(!hs_delta_matches(&delta, &start, lowest - 1));
}

static void too_much_leaves_room_as_it_was(void)
{
    struct hs_delta delta, other;
    size = BIG;
    memory[0] = 1;
    CHECK_EQUAL(hs_delta_take(&delta, &start, (uintptr_t)&memory[STACK_LOW] + RED_ZONE), 0);
    for (size_t i = 0; i < BIG; i++)
        memory[i] = 2;
    /* All but those of the request. */
    CHECK_EQUAL(hs_delta_take(&other, &start, (uintptr_t)&memory[STACK_LOW] + RED_ZONE), 0);
    CHECK_EQUAL(other.count, BIG - OF_REQUEST);
    for (int i = 0; deltas.used + BIG - OF_REQUEST <= WORDS_MAX; i++)
        CHECK_EQUAL(hs_delta_take(&other, &start, (uintptr_t)&memory[STACK_LOW] + RED_ZONE), 0);
    const uint32_t used = deltas.used;
    CHECK_EQUAL(hs_delta_take(&other, &start, (uintptr_t)&memory[STACK_LOW] + RED_ZONE), -1);
    CHECK_EQUAL(deltas.used, used);
    memcpy(memory, saved, sizeof memory);
    hs_delta_apply(&delta);
    CHECK_EQUAL(memory[0], 1);
    hs_delta_forget();
    CHECK_EQUAL(deltas.used, 0);
}

const struct unit_test tests_of_delta[] = {
    {"delta: applies what it took", applies_what_it_took},
    {"delta: any word more or less or other is no match", any_word_more_or_less_or_other_is_no_match},
    {"delta: the request and what is below the stack do not count", the_request_and_what_is_below_the_stack_do_not_count},
    {"delta: a stack deeper than what is saved is refused", a_stack_deeper_than_what_is_saved_is_refused},
    {"delta: too much leaves room as it was", too_much_leaves_room_as_it_was},
    {NULL, NULL},
};
