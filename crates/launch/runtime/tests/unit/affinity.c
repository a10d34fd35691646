/* Tests of runtime/fork/affinity.c: a process that was bound to one processor is free again. */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

#include "runtime.h"
#include "unit.h"

static cpu_set_t allowed(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CHECK_EQUAL(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
}

static void bind_to_one(const cpu_set_t *of)
{
    cpu_set_t one;
    int number = 0;
    while (!CPU_ISSET(number, of))
        number++;
    CPU_ZERO(&one);
    CPU_SET(number, &one);
    CHECK_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
}

static void frees_itself_to_what_was_noted(void)
{
    const cpu_set_t before = allowed();
    hs_affinity_open();
    bind_to_one(&before);
    CHECK_EQUAL(hs_affinity_free(0), 0);
    const cpu_set_t after = allowed();
    CHECK(CPU_EQUAL(&before, &after));
}

static void frees_itself_to_all_processors(void)
{
    const cpu_set_t before = allowed();
    hs_affinity_open();
    bind_to_one(&before);
    CHECK_EQUAL(hs_affinity_free(HS_REQUEST_ANYWHERE), 0);
    const cpu_set_t after = allowed();
    cpu_set_t both;
    CPU_AND(&both, &before, &after);
    CHECK(CPU_EQUAL(&both, &before));
    CHECK_EQUAL(sched_setaffinity(0, sizeof before, &before), 0);
}

#if HS_RESETS
static void moves_to_another_processor(void)
{
    const cpu_set_t before = allowed();
    hs_affinity_open();
    bind_to_one(&before);
    const int then = sched_getcpu(), is_bound = hs_affinity_move();
    CHECK_EQUAL(is_bound, CPU_COUNT(&before) > 1);
    CHECK_EQUAL(sched_getcpu() != then, is_bound);
    CHECK_EQUAL(hs_affinity_free(0), 0);
    const cpu_set_t after = allowed();
    CHECK(CPU_EQUAL(&before, &after));
}
#endif

const struct unit_test tests_of_affinity[] = {
    {"affinity: frees itself to what was noted", frees_itself_to_what_was_noted},
    {"affinity: frees itself to all processors", frees_itself_to_all_processors},
#if HS_RESETS
    {"affinity: moves to another processor", moves_to_another_processor},
#endif
    {NULL, NULL},
};
