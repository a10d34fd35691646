/* Tests of runtime/deferred/delta.c against a small memory of its own, in place of the process's (memory.c). */
#include "runtime.h"

static int fake_compare_point(int (*differs)(uint32_t *place, uint32_t saved));
static int fake_are_laid_at(const void *place);
#define hs_memory_compare_point fake_compare_point
#define hs_strings_are_laid_at fake_are_laid_at
#include "deferred/delta.c"
#include "unit.h"

#include <string.h>

#define WORDS 4096
#define BIG (HS_DELTA_MAX + 1)

/* What memory holds, and what the snapshot that was saved whole has. */
static uint32_t memory[BIG], saved[BIG];
static size_t size = WORDS;
/* Words that a request lays. */
#define OF_REQUEST 8
/* Whether there is anything where the snapshot has no stack, which has to be empty. */
static int is_below;

static int fake_compare_point(int (*differs)(uint32_t *place, uint32_t saved))
{
    int found = is_below;
    for (size_t i = 0; i < size; i++)
        if (memory[i] != saved[i])
            found |= differs(&memory[i], saved[i]);
    return !found;
}

/* What the request lays is at the end of memory. */
static int fake_are_laid_at(const void *place)
{
    return place >= (const void *)&memory[4000] && place < (const void *)&memory[4000 + OF_REQUEST];
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
        CHECK_EQUAL(hs_delta_take(&deltas_of[i]), 0);
        CHECK(hs_delta_matches(&deltas_of[i]));
    }
    CHECK_EQUAL(deltas_of[1].first, deltas_of[0].count);
    for (int i = 0; i < 2; i++) {
        memcpy(memory, saved, sizeof memory);
        hs_delta_apply(&deltas_of[i]);
        CHECK(is_as(wanted[i]));
        CHECK(hs_delta_matches(&deltas_of[i]));
        CHECK(!hs_delta_matches(&deltas_of[!i]));
    }
}

static void any_word_more_or_less_or_other_is_no_match(void)
{
    struct hs_delta delta;
    change(40);
    CHECK_EQUAL(hs_delta_take(&delta), 0);
    for (size_t i = 0; i < 1000; i++) {
        const uint32_t before = memory[i];
        memory[i]++;
        CHECK(!hs_delta_matches(&delta));
        memory[i] = saved[i];
        CHECK_EQUAL(hs_delta_matches(&delta), before == saved[i]);
        memory[i] = before;
    }
    CHECK(hs_delta_matches(&delta));
}

static void the_request_does_not_count(void)
{
    struct hs_delta delta;
    for (size_t i = 4000; i < 4000 + OF_REQUEST; i++)
        memory[i] = 1;
    CHECK_EQUAL(hs_delta_take(&delta), 0);
    CHECK_EQUAL(delta.count, 0);
    memory[5]++;
    memory[4000 - 1]++;
    memory[4000 + OF_REQUEST]++;
    CHECK(!hs_delta_matches(&delta));
    CHECK_EQUAL(hs_delta_take(&delta), 0);
    CHECK_EQUAL(delta.count, 3);
}

static void anything_below_the_stack_is_refused(void)
{
    struct hs_delta delta, other;
    CHECK_EQUAL(hs_delta_take(&delta), 0);
    CHECK(hs_delta_matches(&delta));
    is_below = 1;
    CHECK_EQUAL(hs_delta_take(&other), -1);
    CHECK(!hs_delta_matches(&delta));
    is_below = 0;
    CHECK(hs_delta_matches(&delta));
}

static void too_much_leaves_room_as_it_was(void)
{
    struct hs_delta delta, other;
    size = BIG;
    memory[0] = 1;
    CHECK_EQUAL(hs_delta_take(&delta), 0);
    for (size_t i = 0; i < BIG; i++)
        memory[i] = 2;
    /* All but those of the request. */
    CHECK_EQUAL(hs_delta_take(&other), 0);
    CHECK_EQUAL(other.count, BIG - OF_REQUEST);
    for (int i = 0; deltas.used + BIG - OF_REQUEST <= WORDS_MAX; i++)
        CHECK_EQUAL(hs_delta_take(&other), 0);
    const uint32_t used = deltas.used;
    CHECK_EQUAL(hs_delta_take(&other), -1);
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
    {"delta: the request does not count", the_request_does_not_count},
    {"delta: anything below the stack is refused", anything_below_the_stack_is_refused},
    {"delta: too much leaves room as it was", too_much_leaves_room_as_it_was},
    {NULL, NULL},
};
