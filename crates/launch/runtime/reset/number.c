/* A process number of its own for a run.
 *
 * A tool may look at its number: for the name of a file, as a key, as a seed. A number that it has looked at must not come again, and a
 * number should be as new as that of a process that begins with the run. So before such a run the persistent process makes another one
 * that takes over its memory (CLONE_VM), and ends. No page is copied. What the kernel keeps of a process besides is that of a new one: its
 * number, its age, its CPU time.
 *
 * The new process is the runner's child, as the old one was, and belongs to the same group. The kernel notes its number in the page that
 * is shared with the runner before it runs. It goes on only when the old one is gone, so no two processes ever share memory or descriptors
 * while the tool's code runs.
 *
 * A run that has looked at its number hands over again at its end, before that is told: nobody may find a process with the number then.
 * (LLVM asks whether the process that has made a lock's file is there.)
 *
 * libc keeps the number, too: in the thread's block, which the kernel writes anew, and in locks while they are held. So a deferred snapshot
 * may contain it, and is not used from then on (point.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime.h"

#if HS_RESETS

/* Waits until a process is gone, but for its status, which is its parent's to ask for. */
static int await_end(int process)
{
    const int fd = (int)HS_SYS(SYS_pidfd_open, process, 0);
    struct pollfd end = {fd, POLLIN, 0};
    long found;
    if (fd < 0)
        return -1;
    do
        found = HS_SYS(SYS_ppoll, &end, 1, 0, 0, 0);
    while (found == -EINTR);
    HS_SYS(SYS_close, fd);
    return found == 1 ? 0 : -1;
}

/* What a new process has to be told of the memory that it has, and what its parent and the gate expect. */
static int settle(int runner, int leads)
{
    hs_child_take_memory();
    hs_memory_join_rseq();
    HS_SYS(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    if (HS_SYS(SYS_getppid) != runner || (leads && HS_SYS(SYS_setpgid, 0, 0) != 0))
        return -1;
    hs_mappings_renumber();
    return hs_state_renew_stack() == 0 ? hs_gate_open_again() : -1;
}

/* Goes on as another process, with another number: the leader of a process group, or in the group of the old one. Returns 0 in that
 * process, 1 if there is none and all is as before, and -1 in one that is of no use and has to end. */
int hs_number_renew(volatile int32_t *cell, int runner, int leads)
{
    const uint64_t all = ~0ull;
    uint64_t before = 0;
    const int old = (int)HS_SYS(SYS_getpid);
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, HS_SET_BYTES);
    hs_memory_leave_rseq();
    hs_child_leave_memory();
    const long failed = hs_child_hand_over(cell);
    if (failed) {
        hs_child_take_memory();
        hs_memory_join_rseq();
    } else if (await_end(old) != 0 || settle(runner, leads) != 0)
        return -1;
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, HS_SET_BYTES);
    return failed != 0;
}

#endif
