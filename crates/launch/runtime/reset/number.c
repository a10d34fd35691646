/* A process number of its own for a run.
 *
 * A tool may look at its number: for the name of a file, as a key, as a seed. A number that it has looked at must not come again, and a
 * number should be as new as that of a process that begins with the run. So before such a run the persistent process makes another one
 * that takes over its memory (CLONE_VM), and ends. No page is copied. What the kernel keeps of a process besides is that of a new one: its
 * number, its age, its CPU time.
 *
 * The new process is the runner's child, as the old one was, and belongs to the same group. The kernel notes its number in the page that is
 * shared with the runner before it runs. It goes on only when the old one is gone, so no two processes ever share memory or descriptors
 * while the tool's code runs.
 *
 * libc keeps the number, too: in the thread's block, which the kernel writes anew, and in locks while they are held. So dry runs have
 * made-up numbers there (point.c). What they agree on has nothing of the number in it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime.h"

#if HS_RESETS

/* The bits that a lock has for the number of its owner (FUTEX_TID_MASK). */
#define NUMBER_BITS 0x3fffffffu

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
static int settle(const struct hs_job *job)
{
    hs_child_take_memory();
    hs_memory_join_rseq();
    HS_SYS(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    if (HS_SYS(SYS_getppid) != job->head->runner || (job->head->pgid == HS_GROUP_OWN && HS_SYS(SYS_setpgid, 0, 0) != 0))
        return -1;
    hs_mappings_renumber();
    return hs_state_renew_stack() == 0 ? hs_gate_open_again() : -1;
}

/* Goes on as another process, with another number. Returns in that, or -1 in either of them: it has to end then. */
int hs_number_renew(volatile int32_t *cell, const struct hs_job *job)
{
    const uint64_t all = ~0ull;
    uint64_t before = 0;
    const int old = (int)HS_SYS(SYS_getpid);
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, HS_SET_BYTES);
    hs_memory_leave_rseq();
    hs_child_leave_memory();
    if (hs_child_hand_over(cell) != 0 || await_end(old) != 0 || settle(job) != 0)
        return -1;
    HS_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, HS_SET_BYTES);
    return 0;
}

/* What stands for the number in a dry run: in two that follow each other, each bit has both values. */
int hs_number_made_up(unsigned turn)
{
    const unsigned mixed = (turn / 2 + 1) * 0x9e3779b1u;
    const unsigned number = (turn % 2 ? ~mixed : mixed) & NUMBER_BITS;
    return number ? (int)number : 1;
}

#endif
