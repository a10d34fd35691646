/* Makes the stack around main's frame what it is in a process that was started without the runtime: zero where that is zero, and the same
 * numbers. Above the frame, libc has frames of its own, with words that it has never written.
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

/* Above main's frame, what depends on the request is given with each request (hs_frame_give). */
static void write_above(const uint64_t *above, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uintptr_t at = hs_frame.stack + i * sizeof(uint64_t);
        const uint64_t value = above[i] & ((1ull << PLACE) - 1);
        uint64_t *const word = (uint64_t *)at;
        switch (above[i] >> PLACE) {
        case HS_ABOVE_NUMBER:
            *word = value;
            hs_frame_is_constant(word);
            break;
        case HS_ABOVE_PLACE: *word = hs_frame.stack + value; break;
        case HS_ABOVE_SOMETHING:
            if (*word == 0)
                *word = at;
            break;
        default: break;
        }
    }
}

/* Done once, at the first request; `low` is the lowest address that may have been written before. */
void hs_residue_clear(const struct hs_job *job, uintptr_t low)
{
    static int is_done;
    const uint32_t all = job->head->residue_count;
    if (is_done || !all || !low)
        return;
    const uint32_t parts = (uint32_t)job->residue[0], words = (uint32_t)(job->residue[0] >> 32);
    if (parts > HS_RESIDUE_BITS || words > HS_RESIDUE_ABOVE || parts + words >= all)
        return;
    is_done = 1;
#ifndef HS_WITHOUT_ABOVE
    write_above(job->residue + 1 + parts, words);
#endif
#ifndef HS_WITHOUT_RESIDUE
    const uint64_t *const bits = job->residue + 1, *const numbers = bits + parts + words;
    const uint32_t count = parts * BITS;
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
