/* Which pages exist: what was mapped a moment ago has none until they are touched. */
#include "act.h"

#undef FAMILY
#define FAMILY "resident"

#define PAGE 4096ul
#define BLOCK (1ul << 20)
#define LARGE (6ul << 20)

static int count_resident(char *from, size_t size)
{
    static unsigned char pages[LARGE / PAGE];
    int count = 0;
    if (mincore(from, size, pages) != 0)
        return -errno;
    for (size_t i = 0; i < size / PAGE; i++)
        count += pages[i] & 1;
    return count;
}

/* The same as another file of the kernel's tells it. */
static int count_mapped(char *from, size_t size)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), count = 0;
    for (size_t at = 0; at < size; at += PAGE) {
        uint64_t entry = 0;
        if (pread(fd, &entry, sizeof entry, (off_t)(((uintptr_t)from + at) / PAGE * sizeof entry)) != sizeof entry)
            count = -100000;
        count += entry >> 63 || entry >> 62 & 1;
    }
    close(fd);
    return count;
}

static char *map_new(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static char *page_of_break(intptr_t size)
{
    char *from = sbrk(size + (intptr_t)PAGE);
    return from == (void *)-1 ? NULL : (char *)(((uintptr_t)from + PAGE - 1) & -PAGE);
}

DISTURB(resident_left)
{
    char *block = map_new(BLOCK), *large = map_new(LARGE);
    memset(block, 1, BLOCK);
    memset(large, 1, LARGE);
    SAY2("%ld %ld", munmap(block, BLOCK), munmap(large, LARGE));
}

DISTURB(resident_left_by_break)
{
    char *block = page_of_break(BLOCK);
    if (block)
        memset(block, 1, BLOCK);
    say("filled %d", block != NULL);
}

OBSERVE(resident_block)
{
    char *block = map_new(BLOCK);
    say("new %d", count_resident(block, BLOCK));
    block[3 * PAGE] = 1;
    say("one %d", count_resident(block, BLOCK));
    munmap(block, BLOCK);
}

OBSERVE(resident_large_block)
{
    char *block = map_new(LARGE);
    say("new %d", count_resident(block, LARGE));
    munmap(block, LARGE);
}

MIXED(resident_again)
{
    char *block = map_new(BLOCK);
    memset(block, 1, BLOCK);
    munmap(block, BLOCK);
    block = map_new(BLOCK);
    say("new %d any %d", count_resident(block, BLOCK), any_set(block, BLOCK));
    munmap(block, BLOCK);
}

MIXED(resident_grown)
{
    char *block = map_new(BLOCK), *grown = mremap(block, BLOCK, 2 * BLOCK, MREMAP_MAYMOVE);
    say("new %d", grown == MAP_FAILED ? -1 : count_resident(grown, 2 * BLOCK));
}

OBSERVE(resident_break)
{
    char *block = page_of_break(BLOCK);
    say("new %d", block ? count_resident(block, BLOCK) : -1);
}

MIXED(resident_break_again)
{
    char *block = page_of_break(BLOCK);
    if (!block)
        return say("none");
    memset(block, 1, BLOCK);
    sbrk(-(intptr_t)(BLOCK + PAGE));
    block = page_of_break(BLOCK);
    say("new %d any %d", block ? count_resident(block, BLOCK) : -1, block ? any_set(block, BLOCK) : -1);
}

OBSERVE(resident_by_call)
{
    static unsigned char pages[BLOCK / PAGE];
    char *block = (char *)RAW(SYS_mmap, 0, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say_result("mincore", RAW(SYS_mincore, block, BLOCK, pages));
    say("any %d", any_set(pages, sizeof pages));
    munmap(block, BLOCK);
}

OBSERVE(resident_by_map)
{
    char *block = map_new(BLOCK), *heap = page_of_break(BLOCK);
    say("block %d break %d", count_mapped(block, BLOCK), heap ? count_mapped(heap, BLOCK) : -1);
    munmap(block, BLOCK);
}

/* Pages that were read only show the kernel's own page. */
MIXED(resident_discarded)
{
    char *block = map_new(BLOCK);
    memset(block, 1, BLOCK);
    madvise(block, BLOCK, MADV_DONTNEED);
    say("left %d", count_resident(block, BLOCK));
    munmap(block, BLOCK);
}

OBSERVE(resident_in_child)
{
    char *block = map_new(BLOCK);
    pid_t child = fork();
    if (child == 0)
        _exit(count_resident(block, BLOCK) != 0);
    say_child(child);
    munmap(block, BLOCK);
}

OBSERVE(resident_stack)
{
    const char *here = __builtin_frame_address(0);
    char *from = (char *)(((uintptr_t)here - (90 << 10)) & -PAGE);
    say("below %d", count_resident(from, 4 * PAGE));
}
