/* The differences between deferred snapshots: the words, and their places, in which a snapshot differs from the one saved whole.
 *
 * Snapshots for different numbers of arguments differ in few words. memory.c saves one of them whole; of each other one these words are
 * kept, in the order in which memory.c compares.
 */
#define _GNU_SOURCE
#include "runtime.h"

#if HS_RESETS

#define WORDS_MAX 32768

/* Each delta is a row of `words` below `used`, in the order of their places' regions; rows do not overlap. */
static struct {
    struct {
        uint32_t *place;
        uint32_t value;
    } words[WORDS_MAX];
    uint32_t used;
    /* The comparison that is under way. */
    struct {
        struct hs_delta *delta;
        uint32_t next;
    } now;
} deltas;

void hs_delta_forget(void)
{
    deltas.used = 0;
}

/* What each request writes anew, where the kernel has laid its own. */
static int is_of_request(const void *place)
{
    return hs_strings_are_laid_at(place);
}

static int collect(uint32_t *place, uint32_t saved)
{
    (void)saved;
    if (is_of_request(place))
        return 0;
    if (deltas.used == WORDS_MAX || deltas.now.delta->count == HS_DELTA_MAX)
        return 1;
    deltas.words[deltas.used].place = place;
    deltas.words[deltas.used++].value = *place;
    deltas.now.delta->count++;
    return 0;
}

static int check(uint32_t *place, uint32_t saved)
{
    (void)saved;
    if (is_of_request(place))
        return 0;
    if (deltas.now.next == deltas.now.delta->count)
        return 1;
    const uint32_t at = deltas.now.delta->first + deltas.now.next++;
    return deltas.words[at].place != place || deltas.words[at].value != *place;
}

static void begin(struct hs_delta *delta)
{
    deltas.now.delta = delta;
    deltas.now.next = 0;
}

/* Collects what memory has that the saved snapshot has not; -1 if there is too much of it. */
int hs_delta_take(struct hs_delta *delta)
{
    *delta = (struct hs_delta){deltas.used, 0};
    begin(delta);
    if (hs_memory_compare_point(collect))
        return 0;
    deltas.used = delta->first;
    return -1;
}

/* Whether memory is as the saved snapshot, but for just these words. */
int hs_delta_matches(struct hs_delta *delta)
{
    begin(delta);
    return hs_memory_compare_point(check) && deltas.now.next == delta->count;
}

/* Makes memory that is as the saved snapshot as the other. */
void hs_delta_apply(const struct hs_delta *delta)
{
    for (uint32_t i = delta->first; i < delta->first + delta->count; i++)
        *deltas.words[i].place = deltas.words[i].value;
}

#endif
