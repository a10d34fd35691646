/* Tests of runtime/deferred/pays.c. */
#include "runtime.h"
#include "unit.h"

#include "deferred/pays.c"

static unsigned after(uint64_t gain, uint64_t cost)
{
    pays.gain = gain;
    pays.cost = cost;
    return hs_pays_after();
}

static void what_gains_little_waits_longer(void)
{
    CHECK_EQUAL(after(0, 0), 1);
    /* opt, clang and a tool that does nothing, in nanoseconds. */
    CHECK_EQUAL(after(700000, 1300000), 1);
    CHECK_EQUAL(after(45000, 700000), 4);
    CHECK_EQUAL(after(1000, 1000000), LATEST);
}

static void the_least_counts(void)
{
    pays.gain = pays.cost = 0;
    hs_pays_begin();
    hs_pays_arrived();
    hs_pays_end();
    CHECK(pays.gain > 0 && pays.cost >= pays.gain);
    const uint64_t least = pays.gain;
    hs_pays_begin();
    while (used() - pays.began <= least)
        ;
    hs_pays_arrived();
    CHECK_EQUAL(pays.gain, least);
}

static void one_other_request_does_not_count(void)
{
    served = 2;
    CHECK(hs_pays_to_wait_there());
    hs_pays_note_request(1);
    hs_pays_note_request(0);
    CHECK(hs_pays_to_wait_there());
    hs_pays_note_request(0);
    CHECK(!hs_pays_to_wait_there());
    for (int i = 0; i < 5; i++)
        hs_pays_note_request(0);
    hs_pays_note_request(1);
    hs_pays_note_request(1);
    CHECK(hs_pays_to_wait_there());
}

const struct unit_test tests_of_pays[] = {
    {"pays: what gains little waits longer", what_gains_little_waits_longer},
    {"pays: the least counts", the_least_counts},
    {"pays: one other request does not count", one_other_request_does_not_count},
    {NULL, NULL},
};
