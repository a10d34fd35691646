/* Affinity: a request is taken up on the processor of its sender.
 *
 * The sender is about to wait, so its processor becomes free, and its caches hold the request. The kernel does not know that: it wakes
 * the receiver on another processor if one is idle, which takes many times as long as a switch. So the runner binds the receiver to its
 * own processor. The receiver restores its affinity before it does anything for the request, so that no tool can see the difference.
 *
 * There are two ways to restore it, and one of them would be visible. The runner has tried on itself which one. In the root cpuset a
 * process may also use processors that are not there yet, but the kernel lists only those that are. `anywhere` allows all that the
 * process's cpuset has, even if that has changed since.
 */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "runtime.h"

/* Written by hs_affinity_open only, in the zygote. Until then `bytes` is 0, and nothing can be restored. */
static struct {
    unsigned long noted[1024], anywhere[1024];
    long bytes; /* of `noted`, as the kernel gave it; negative if it refused */
} affinity;

/* Notes where a process of the tool may run. */
void hs_affinity_open(void)
{
    affinity.bytes = HS_SYS(SYS_sched_getaffinity, 0, sizeof affinity.noted, affinity.noted);
    memset(affinity.anywhere, 0xff, sizeof affinity.anywhere);
}

/* May run there again, or wherever its cpuset lets it; -1 if the system refuses. */
int hs_affinity_free(int to_anywhere)
{
    const long bytes = to_anywhere ? (long)sizeof affinity.anywhere : affinity.bytes;
    return bytes > 0 && HS_SYS(SYS_sched_setaffinity, 0, bytes, to_anywhere ? affinity.anywhere : affinity.noted) == 0 ? 0 : -1;
}

#if HS_RESETS

#define BITS (8 * sizeof(unsigned long))

static int may_use(size_t processor)
{
    return affinity.noted[processor / BITS] >> processor % BITS & 1;
}

/* How many processors before this one the tool may use. */
static unsigned usable_before(size_t processor)
{
    unsigned count = 0;
    for (size_t word = 0; word < processor / BITS; word++)
        count += (unsigned)__builtin_popcountl(affinity.noted[word]);
    for (size_t other = processor / BITS * BITS; other < processor; other++)
        count += (unsigned)may_use(other);
    return count;
}

static int bind_to(size_t processor)
{
    static unsigned long only[sizeof affinity.noted / sizeof *affinity.noted];
    only[processor / BITS] = 1ul << processor % BITS;
    const long done = HS_SYS(SYS_sched_setaffinity, 0, affinity.bytes, only);
    only[processor / BITS] = 0;
    return done == 0;
}

/* Binds this thread to another processor, if the tool may use two: of 2^n, to one whose place among them has no bit of the old one's.
 * Returns whether it is bound. */
int hs_affinity_move(void)
{
    unsigned now;
    if (affinity.bytes <= 0 || HS_SYS(SYS_getcpu, &now, 0, 0) != 0)
        return 0;
    const size_t end = (size_t)affinity.bytes * 8;
    const unsigned count = usable_before(end), place = usable_before(now), opposite = count - 1 - place;
    if (count < 2 || place >= count)
        return 0;
    unsigned left = opposite == place ? place + 1 : opposite;
    size_t processor = 0;
    while (!may_use(processor) || left-- > 0)
        processor++;
    return bind_to(processor);
}

#endif
