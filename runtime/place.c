/* The processor on which a request is taken up.
 *
 * Who asks waits for the answer: its processor is about to be free, and the request is in its caches. The kernel, which does
 * not know that, wakes the process that was asked on another processor if one is idle, and waking that takes many times as
 * long as the switch. So the runner binds whom it asks to its own processor, and before anything is done with the request it
 * is free to go wherever the tool could go: nobody can see that it was not.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "runtime.h"

static unsigned long allowed[1024];
static long allowed_bytes;

/* Notes where a process of the tool may run. */
void hs_place_open(void)
{
    allowed_bytes = HS_SYS(SYS_sched_getaffinity, 0, sizeof allowed, allowed);
}

/* May run there again; -1 if the system refuses. */
int hs_place_free(void)
{
    return allowed_bytes > 0 && HS_SYS(SYS_sched_setaffinity, 0, allowed_bytes, allowed) == 0 ? 0 : -1;
}
