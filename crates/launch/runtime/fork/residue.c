/* Makes the stack below main's frame zero where it is zero in a process that was started without the runtime.
 *
 * A program may read what its stack had before. ld.so has left things there: it keeps the list of preloaded libraries in a frame of 4 KiB,
 * and calls deeper than that one, in a zygote only. An observer has noted which words a cold process has zero (observe/residue.rs).
 */
#include "runtime.h"

#define PAGE 4096ul
#define BITS 64

/* Done once, at the first request; `low` is the lowest address that may have been written before. */
void hs_residue_clear(const struct hs_job *job, uintptr_t low)
{
    static int is_done;
    const uint32_t count = job->head->residue_count * BITS;
    if (is_done || !count || !low)
        return;
    is_done = 1;
#ifndef HS_WITHOUT_RESIDUE
    uintptr_t at = hs_frame.stack;
    for (uint32_t i = 0; i < count && at > low; i++) {
        at -= sizeof(uint64_t);
        const int is_left = job->residue[i / BITS] >> i % BITS & 1;
        uint64_t *word = (uint64_t *)at;
        /* What a cold process has there is not known: most often an address on the stack. */
        if (at < hs_stack_free && is_left != (*word != 0))
            *word = is_left ? at : 0;
    }
    const uintptr_t page = at & -PAGE;
    if (page > low)
        hs_zero(page, at);
    hs_memory_clear(low, page > low ? page : low);
#endif
}
