/* Puts large text on large pages.
 *
 * LLVM's tools have 100 MB of text, of which each run touches a few MB in many places. With small pages of the file, a fork takes a fault
 * for each place, and the address translation of a worker misses all the time. Here the text is copied once into anonymous memory on
 * large pages, which is moved to the address of the mapping. All forks and workers of the zygote share it. The bytes are the same, and
 * the line in /proc/self/maps is another.
 *
 * A worker that makes clones keeps the small pages of the file. The kernel copies the page table of a file's mapping to a clone only if
 * the process has a page of its own there, so each large one gets one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "runtime.h"

#define LARGE (2ul << 20)

static int replace(uintptr_t from, size_t size)
{
    /* One large page more than needed, to find an aligned place in it. */
    char *space = mmap(NULL, size + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        return -1;
    uintptr_t copy = ((uintptr_t)space + LARGE - 1) & -LARGE;
    if (madvise((void *)copy, size, MADV_HUGEPAGE) != 0)
        return munmap(space, size + LARGE);
    memcpy((void *)copy, (void *)from, size);
    if (mprotect((void *)copy, size, PROT_READ | PROT_EXEC) != 0 ||
        mremap((void *)copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)from) == MAP_FAILED)
        return munmap(space, size + LARGE);
    if (copy > (uintptr_t)space)
        munmap(space, copy - (uintptr_t)space);
    munmap((void *)(copy + size), (uintptr_t)space + LARGE - copy);
    return 0;
}

/* What was replaced. */
static struct {
    uintptr_t from[16];
    size_t size[16], count;
} large;

/* Whether a part of this range is. */
int hs_text_is_replaced(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < large.count; i++)
        if (from < large.from[i] + large.size[i] && to > large.from[i])
            return 1;
    return 0;
}

void hs_text_enlarge(void)
{
    struct hs_mapping map;
    const char *at = hs_maps_read();
    while (at && (at = hs_maps_next(at, &map)) && large.count < 16) {
        if (memcmp(map.access, "r-xp", 4) != 0 || map.path[0] != '/')
            continue;
        uintptr_t low = (map.from + LARGE - 1) & -LARGE, high = map.to & -LARGE;
        if (low + LARGE >= high)
            continue;
        large.from[large.count] = low;
        large.size[large.count++] = high - low;
    }
    for (size_t i = 0; i < large.count; i++)
        replace(large.from[i], large.size[i]);
}

#if HS_RESETS
/* Has clones of this process find the pages of large files that it has used, where each would be a fault. A page is written with what it
 * has, past its protection, so that all mappings stay as they are. Where the system forbids that, clones take the faults. */
void hs_text_share(void)
{
    struct hs_mapping map;
    const int own = (int)HS_SYS(SYS_open, "/proc/self/mem", O_RDWR | O_CLOEXEC);
    const char *at = own >= 0 ? hs_maps_read() : NULL;
    while (at && (at = hs_maps_next(at, &map))) {
        const int is_fixed = map.access[0] == 'r' && map.access[1] == '-' && map.access[3] == 'p' && map.path[0] == '/';
        if (is_fixed && map.to - map.from >= LARGE)
            HS_SYS(SYS_pwrite64, own, map.from, 1, map.from);
    }
    HS_SYS(SYS_close, own);
}
#endif
