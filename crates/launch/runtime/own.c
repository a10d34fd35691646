/* Memory of the runtime's own, far from everything else.
 *
 * The kernel places a new mapping right below the last one. Were the runtime's there, then a tool's block would lie below it, and not
 * below libc's read-only pages: an overrun would not be a fault, and would write into what other runs are reset to. So each mapping has a
 * fixed place, with pages around it that nobody has. A zygote hands its places down to its forks.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime.h"

#define PAGE 4096ul
/* Below the places where pages wait (page_cache.c, mappings.c). */
#define FIRST 0x1d4a00000000ul
#define END 0x1d4b00000000ul
#define APART (16 * PAGE)

/* Where the last of these places ends (mappings.c). */
#define ALL_END 0x1d4d00000000ul

/* From here on nothing is taken. */
static uintptr_t next = FIRST;

/* Maps memory that can be read and written, as mmap does; MAP_FAILED if the place is not free. */
void *hs_own_map(size_t size, int flags, int fd)
{
    const size_t whole = (size + PAGE - 1) & -PAGE;
    if (whole > END - next - APART)
        return MAP_FAILED;
    const long made = HS_SYS(SYS_mmap, next, whole, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, fd, 0);
    if (made != (long)next) {
        /* An older kernel takes the address for a hint. */
        if (made > 0)
            HS_SYS(SYS_munmap, made, whole);
        return MAP_FAILED;
    }
    next += whole + APART;
    return (void *)made;
}

/* All places that the runtime may take. */
struct hs_place hs_own_places(void)
{
    return (struct hs_place){(char *)FIRST, ALL_END - FIRST};
}

/* Whether a range meets memory of the runtime's own, or places that it may take. */
int hs_own_has(uintptr_t from, size_t size)
{
    return from < ALL_END && (from >= FIRST || size > FIRST - from);
}
