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

/* Written by hs_place_open only, in the zygote. Until then `bytes` is 0, and nothing can be restored. */
static struct {
    unsigned long noted[1024], anywhere[1024];
    long bytes; /* of `noted`, as the kernel gave it; negative if it refused */
} place;

/* Notes where a process of the tool may run. */
void hs_place_open(void)
{
    place.bytes = HS_SYS(SYS_sched_getaffinity, 0, sizeof place.noted, place.noted);
    memset(place.anywhere, 0xff, sizeof place.anywhere);
}

/* May run there again, or wherever its cpuset lets it; -1 if the system refuses. */
int hs_place_free(int to_anywhere)
{
    const long bytes = to_anywhere ? (long)sizeof place.anywhere : place.bytes;
    return bytes > 0 && HS_SYS(SYS_sched_setaffinity, 0, bytes, to_anywhere ? place.anywhere : place.noted) == 0 ? 0 : -1;
}
