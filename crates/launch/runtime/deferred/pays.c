/* When a number of arguments is worth a deferred snapshot of its own.
 *
 * A snapshot takes four dry runs. Each costs what main takes to the place, a comparison of all memory and a reset. What a run gains is
 * main's part. For opt that is most of a dry run, so that a snapshot pays after eight runs; clang comes to its place after 45
 * microseconds of a dry run of 700, and needs sixty runs. How often a number of arguments will come is not known: most come often or
 * once. So one is learned when its runs have lost a small part of what its snapshot costs: for clang after four of them, of which three
 * dry runs follow each other. CPU time is counted, as others may use the processors.
 */
#define _GNU_SOURCE
#include <time.h>

#include "runtime.h"

#if HS_RESETS

/* A number is learned after 1/EARLY of the runs after which its snapshot has paid. One that has come four times mostly comes often.
 * With 4 here, 11 % of clang's runs would begin at main; a small folder takes 6 % longer with 14 (docs/lab/measurements.md). */
#define EARLY 14
/* Runs after which any number is learned. */
#define LATEST 32

/* The least that was seen, in nanoseconds; 0 before the first dry run. */
static struct {
    uint64_t began, gain, cost;
} pays;

/* A counter: up for a request that a snapshot serves, down for any other. Between two runs a process is reset to where the next one is
 * likely to begin. If that begins elsewhere, it is reset once more. */
static unsigned served = 2;
#define SERVED_MAX 3

static uint64_t used(void)
{
    struct timespec now = {0};
    HS_SYS(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void note(uint64_t *least)
{
    const uint64_t now = used() - pays.began;
    if (!*least || now < *least)
        *least = now ? now : 1;
}

/* A dry run begins, comes to its place, and is over. */
void hs_pays_begin(void)
{
    pays.began = used();
}

void hs_pays_arrived(void)
{
    note(&pays.gain);
}

void hs_pays_end(void)
{
    note(&pays.cost);
}

/* How many runs with one number of arguments there are to be before that is learned. */
unsigned hs_pays_after(void)
{
    const uint64_t runs = pays.gain ? HS_DRY_PLACES * pays.cost / pays.gain / EARLY : 1;
    return runs < 1 ? 1 : runs > LATEST ? LATEST : (unsigned)runs;
}

/* A request has come that a snapshot serves, or none does. */
void hs_pays_note_request(int is_served)
{
    if (is_served && served < SERVED_MAX)
        served++;
    if (!is_served && served > 0)
        served--;
}

/* Whether the next request is likely to be served. */
int hs_pays_to_wait_there(void)
{
    return served > SERVED_MAX / 2;
}

#endif
