/* Makes the stack below main's frame what it is in a process that was started without the runtime: zero where that is zero, and the same
 * numbers.
 *
 * A program may read what its stack had before. ld.so has left things there: it keeps the list of preloaded libraries in a frame of 4 KiB,
 * and calls deeper than that one, in a zygote only. An observer has noted what cold processes have there (observe/residue.rs).
 */
#include "runtime.h"

#define PAGE 4096ul
#define BITS 64
/* From this bit on, a number has its place. */
#define PLACE 48

static int may_write(uintptr_t at, uintptr_t low)
{
    return at >= low && at < hs_stack_free;
}

/* Done once, at the first request; `low` is the lowest address that may have been written before. */
void hs_residue_clear(const struct hs_job *job, uintptr_t low)
{
    static int is_done;
    const uint32_t all = job->head->residue_count;
    if (is_done || !all || !low || job->residue[0] >= all || job->residue[0] > HS_RESIDUE_BITS)
        return;
    is_done = 1;
#ifndef HS_WITHOUT_RESIDUE
    const uint64_t *const bits = job->residue + 1, *const numbers = bits + job->residue[0];
    const uint32_t count = (uint32_t)job->residue[0] * BITS;
    uintptr_t at = hs_frame.stack;
    for (uint32_t i = 0; i < count && at > low; i++) {
        at -= sizeof(uint64_t);
        const int is_left = bits[i / BITS] >> i % BITS & 1;
        uint64_t *word = (uint64_t *)at;
        /* What a cold process has there is not known: most often an address on the stack. */
        if (may_write(at, low) && is_left != (*word != 0))
            *word = is_left ? at : 0;
    }
    /* Each below its place. */
    for (const uint64_t *number = numbers; number < job->residue + all; number++) {
        const uintptr_t place = hs_frame.stack - (1 + (*number >> PLACE)) * sizeof(uint64_t);
        if (may_write(place, low))
            *(uint64_t *)place = *number & ((1ull << PLACE) - 1);
    }
    const uintptr_t page = at & -PAGE;
    if (page > low)
        hs_zero(page, at);
    hs_memory_clear(low, page > low ? page : low);
#endif
}
