/* Tests of runtime/deferred/pointers.c against a small memory and strings of its own. */
#include "runtime.h"

#if HS_RESETS

#include <string.h>

static int fake_each_word(uintptr_t stack, uintptr_t given, struct hs_sought sought, int (*visit)(uint64_t *word));
static int fake_name_of(uint64_t word, uint64_t *name);
#define hs_memory_each_word fake_each_word
#define hs_memory_stack_touched(stack) (stack)
#define hs_strings_name_of fake_name_of
#define hs_strings_sought() ((struct hs_sought){0, ~0ull, 0})
#define hs_strings_is_name(word) ((word) >> 48 == NAME)
#define hs_strings_address(name) (((name) & 0xffff) + NEW)
#define hs_strings_size_behind() 4096
#define hs_strings_are_laid_at(place) ((const uint64_t *)(place) >= laid && (const uint64_t *)(place) < laid + LAID)
#define hs_slots_set_flags_anew hs_flags_are_set_anew
#define LAID 3
#define NAME 0x5a17ull
/* The strings of a dry run, and of the run that is served. */
#define OLD 0x700000ull
#define NEW 0x900000ull
static const uint64_t *laid;
#include "deferred/pointers.c"
#include "unit.h"

#define WORDS 64
static uint64_t memory[WORDS];
static struct hs_arrival at;
static struct hs_pointers row;

static int fake_each_word(uintptr_t stack, uintptr_t given, struct hs_sought sought, int (*visit)(uint64_t *word))
{
    int failed = 0;
    (void)stack, (void)given, (void)sought;
    for (size_t i = 0; i < WORDS && !failed; i++)
        failed = visit(&memory[i]);
    return failed;
}

static int fake_name_of(uint64_t word, uint64_t *name)
{
    if (word >> 48 == NAME)
        return -1;
    *name = NAME << 48 | (word - OLD);
    return word - OLD < 0x10000;
}

static void pointers_get_names_and_other_addresses(void)
{
    memory[3] = OLD + 5;
    memory[9] = OLD + 0x10000;
    at.general[7] = OLD + 7;
    CHECK_EQUAL(hs_pointers_rename(&row, &at, 0), 0);
    CHECK(memory[3] == (NAME << 48 | 5) && memory[9] == OLD + 0x10000 && at.general[7] == (NAME << 48 | 7));
    hs_pointers_apply(&row);
    hs_pointers_apply_to_registers(&row, &at);
    CHECK(memory[3] == NEW + 5 && memory[9] == OLD + 0x10000 && at.general[7] == NEW + 7);
}

static void a_number_that_looks_like_a_name_is_noticed(void)
{
    memory[WORDS - 1] = NAME << 48;
    CHECK_EQUAL(hs_pointers_rename(&row, &at, 0), -1);
    memory[WORDS - 1] = 0;
    at.general[0] = NAME << 48;
    CHECK_EQUAL(hs_pointers_rename(&row, &at, 0), -1);
}

/* The kernel's random bytes are among it: one in 30,000 dry runs was a fault of hotstart. */
static void what_a_request_lays_looks_like_anything(void)
{
    const uint64_t words[LAID] = {NAME << 48, OLD + 1, NAME << 48};
    memcpy(&memory[20], words, sizeof words);
    laid = &memory[20];
    CHECK_EQUAL(hs_pointers_rename(&row, &at, 0), 0);
    CHECK(memcmp(laid, words, sizeof words) == 0 && row.count == 0);
    memory[20 + LAID] = NAME << 48;
    CHECK_EQUAL(hs_pointers_rename(&row, &at, 0), -1);
}

/* Where the extended state says which parts are in use, and where the upper halves of AVX begin. */
enum { PRESENT = 512, AVX = 576 };

static void set_parts(struct hs_arrival *arrival, uint64_t parts)
{
    memcpy(arrival->extended + PRESENT, &parts, sizeof parts);
}

static void parts_that_are_as_new_may_be_in_use_or_not(void)
{
    static struct hs_arrival then, now;
    struct hs_pointers saved = {0}, none = {0};
    set_parts(&then, 0xa2);
    set_parts(&now, 0xa2);
    CHECK_EQUAL(hs_pointers_compare_registers(&saved, &then, &none, &now), HS_AGREES);
    set_parts(&now, 0xa3);
    CHECK_EQUAL(hs_pointers_compare_registers(&saved, &then, &none, &now), HS_DISAGREES);
    memcpy(now.extended, &(uint16_t){0x37f}, sizeof(uint16_t));
    CHECK_EQUAL(hs_pointers_compare_registers(&saved, &then, &none, &now), HS_AGREES);
    set_parts(&now, 0xa7);
    CHECK_EQUAL(hs_pointers_compare_registers(&saved, &then, &none, &now), HS_DRIFTED);
    CHECK_EQUAL(hs_pointers_compare_registers(&saved, &now, &none, &then), HS_DRIFTED);
    now.extended[AVX] = 1;
    CHECK_EQUAL(hs_pointers_compare_registers(&saved, &then, &none, &now), HS_DISAGREES);
}

const struct unit_test tests_of_pointers[] = {
    {"pointers: parts that are as new may be in use or not", parts_that_are_as_new_may_be_in_use_or_not},
    {"pointers: they get names, and other addresses", pointers_get_names_and_other_addresses},
    {"pointers: a number that looks like a name is noticed", a_number_that_looks_like_a_name_is_noticed},
    {"pointers: what a request lays looks like anything", what_a_request_lays_looks_like_anything},
    {NULL, NULL},
};

#else

#include "unit.h"

const struct unit_test tests_of_pointers[] = {{NULL, NULL}};

#endif
