/* The processor on which a request is taken up.
 *
 * Who asks waits for the answer: its processor is about to be free, and the request is in its caches. The kernel, which does
 * not know that, wakes the process that was asked on another processor if one is idle, and waking that takes many times as
 * long as the switch. So the runner binds whom it asks to its own processor, and before anything is done with the request it
 * is free to go wherever the tool could go: nobody can see that it was not. (The runner has tried on itself which of the two
 * ways back leaves no trace. In the root cpuset a process may use processors that are not there yet, too, but is told of
 * those that are; `anywhere` gives it all that its cpuset has, also if that has changed since.)
 */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "runtime.h"

static unsigned long noted[1024], anywhere[1024];
static long noted_bytes;

/* Notes where a process of the tool may run. */
void hs_place_open(void)
{
    noted_bytes = HS_SYS(SYS_sched_getaffinity, 0, sizeof noted, noted);
    memset(anywhere, 0xff, sizeof anywhere);
}

/* May run there again, or wherever its cpuset lets it; -1 if the system refuses. */
int hs_place_free(int to_anywhere)
{
    const long bytes = to_anywhere ? (long)sizeof anywhere : noted_bytes;
    return bytes > 0 && HS_SYS(SYS_sched_setaffinity, 0, bytes, to_anywhere ? anywhere : noted) == 0 ? 0 : -1;
}
