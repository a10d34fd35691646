/* The page cache of a worker: keeps pages that a run has mapped and unmapped, so that the next run need not fault them in again.
 *
 * A tool's allocator maps a large block and unmaps it when it is freed. In a small run of llc, the faults on that one block take a tenth
 * of the time. So its pages, with their entries in the page table, are moved aside instead of being unmapped, and later moved to where
 * the kernel has placed another block of at most that size. The kernel's choice of place stays the same, since the pages wait far from
 * everything that it chooses by itself. They are given out all zero, as the kernel gives pages.
 *
 * mappings.c knows which mappings are plain memory and may be kept. It also holds the lock.
 */
#define _GNU_SOURCE
/* Code that the gate calls keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime.h"

#if HS_RESETS

#define PAGE 4096ul
#define SLOTS 16
/* Where a block waits. No hint that is in use anywhere leads here, nor does the kernel's search, from above or below. */
#define PLACE 0x1d4b00000000ul
#define STRIDE (16ul << 20)
/* Moving fewer pages costs as much as faulting them in. */
#define LEAST (16 * PAGE)
#define MOST (8ul << 20)

struct block {
    uintptr_t from, to; /* the same: none */
    int dirty;
    unsigned long since;
};

/* Unless it is empty, block i lies in [PLACE + i * STRIDE, + STRIDE), and is private memory without a file that no child gets. It is
 * zero unless it is `dirty`. `bytes` is the sum of the sizes, at most MOST. mappings.c holds its lock around each call. */
static struct {
    struct block blocks[SLOTS];
    uintptr_t bytes;
    unsigned long clock; /* `since` of the last block */
    int usable;          /* the places are known to be free */
} cache;

static size_t size_of(const struct block *block)
{
    return block->to - block->from;
}

static int is_usable(void)
{
    if (!cache.usable) {
        long made = HS_SYS(SYS_mmap, PLACE, SLOTS * STRIDE, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (made > 0)
            HS_SYS(SYS_munmap, made, SLOTS * STRIDE);
        cache.usable = made == (long)PLACE;
    }
    return cache.usable;
}

static void drop(struct block *block)
{
    HS_SYS(SYS_munmap, block->from, size_of(block));
    cache.bytes -= size_of(block);
    *block = (struct block){0};
}

/* A slot for a block of this size. The oldest blocks are dropped to make room. */
static struct block *make_room(size_t size)
{
    for (;;) {
        struct block *free = NULL, *oldest = NULL;
        for (struct block *block = cache.blocks; block < cache.blocks + SLOTS; block++)
            if (!size_of(block))
                free = block;
            else if (!oldest || block->since < oldest->since)
                oldest = block;
        if (free && cache.bytes + size <= MOST)
            return free;
        drop(oldest);
    }
}

/* Takes the pages of an unused block instead of unmapping it; returns whether it did. MADV_WIPEONFORK fails on anything but private
 * memory without a file, so it detects a mapping that was replaced unseen. It also spares forked children a copy. */
int hs_kept_take(uintptr_t from, uintptr_t to)
{
    const size_t size = to - from;
    if (size < LEAST || size > MOST || !is_usable() || HS_SYS(SYS_madvise, from, size, MADV_WIPEONFORK) != 0)
        return 0;
    struct block *block = make_room(size);
    const uintptr_t place = PLACE + (uintptr_t)(block - cache.blocks) * STRIDE;
    if (HS_SYS(SYS_mremap, from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place) != (long)place)
        return 0;
    *block = (struct block){place, place + size, 1, ++cache.clock};
    cache.bytes += size;
    return 1;
}

/* The block of just that size, or else the smallest that is larger. */
static struct block *find(size_t size)
{
    struct block *best = NULL;
    for (struct block *block = cache.blocks; block < cache.blocks + SLOTS; block++)
        if (size_of(block) >= size && (!best || size_of(block) < size_of(best)))
            best = block;
    return best;
}

/* Puts kept pages where the kernel has just mapped fresh memory; -1 if that is mapped no longer. */
int hs_kept_give(uintptr_t at, size_t size)
{
    struct block *block = size >= LEAST && size <= MOST ? find(size) : NULL;
    if (!block || (block->dirty && !hs_memory_clear(block->from, block->from + size)))
        return 0;
    if (HS_SYS(SYS_madvise, block->from, size, MADV_KEEPONFORK) == 0 &&
        HS_SYS(SYS_mremap, block->from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == (long)at) {
        block->from += size;
        cache.bytes -= size;
        return 0;
    }
    drop(block);
    long again = HS_SYS(SYS_mmap, at, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return again == (long)at || again == -EEXIST ? 0 : -1;
}

/* Drops all blocks; returns whether there were any. */
int hs_kept_drop(void)
{
    const int had = cache.bytes != 0;
    for (struct block *block = cache.blocks; block < cache.blocks + SLOTS; block++)
        if (size_of(block))
            drop(block);
    return had;
}

/* Drops all blocks if the tool wants to map something where blocks wait. */
void hs_kept_avoid(uintptr_t from, uintptr_t to)
{
    if (to <= PLACE || from >= PLACE + SLOTS * STRIDE)
        return;
    hs_kept_drop();
    cache.usable = 0;
}

/* Makes all of them zero. */
void hs_kept_clean(void)
{
#ifdef HS_WITHOUT_KEPT
    return;
#endif
    for (struct block *block = cache.blocks; block < cache.blocks + SLOTS; block++)
        if (block->dirty && size_of(block)) {
            if (hs_memory_clear(block->from, block->to))
                block->dirty = 0;
            else
                drop(block);
        }
}

/* How many pages are mapped for it. */
unsigned long hs_kept_pages(void)
{
    return cache.bytes / PAGE;
}

/* Whether a mapping is one of these. */
int hs_kept_has(uintptr_t from, uintptr_t to)
{
    for (const struct block *block = cache.blocks; block < cache.blocks + SLOTS; block++)
        if (size_of(block) && block->from == from && block->to == to)
            return 1;
    return 0;
}

/* Whether a kept page is not zero. */
int hs_kept_differs(void)
{
    for (const struct block *block = cache.blocks; block < cache.blocks + SLOTS; block++)
        if (size_of(block) && !hs_memory_is_zero((char *)block->from, (char *)block->to))
            return 1;
    return 0;
}

#endif
