/* A successor: the process that goes on in the place of a worker whose run has seen the process's number.
 *
 * No later run may have that number, and a number cannot be changed. So the worker clones itself with CLONE_VM once main has ended and
 * nothing of the run is left but memory: the clone has the same memory, without a copy of any page table, and a number of its own. The
 * worker then ends, with the tool's status, by its registers alone: the clone already uses its stack.
 *
 * The kernel writes to memory for a thread: its number when it begins, zero when it ends, and its processor in between (restartable
 * sequences). The worker gives all of that up before it clones itself, and the successor registers anew. What else a clone does not
 * inherit is set again: the signal that tells of the runner's death, the stack for signals, the dispatch of the gate.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <unistd.h>

#include "runtime.h"

#if HS_RESETS

/* linux/rseq.h: the shortest area that the kernel takes, and the flag by which it forgets one. */
#define AREA_LEAST 32u
#define FORGET 1

/* The kernel clears it in place of the thread's number when the worker ends. */
static int nobody;

/* Registers libc's area for restartable sequences, or has the kernel forget it: with the length that libc has given, or it fails. */
static long sequences(int flags)
{
    const unsigned length = __rseq_size > AREA_LEAST ? __rseq_size : AREA_LEAST;
    return HS_SYS(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, length, flags, RSEQ_SIG);
}

static void give_up(const struct hs_thread *thread)
{
    HS_SYS(SYS_set_tid_address, &nobody);
    HS_SYS(SYS_set_robust_list, 0, thread->robust_size);
}

static void take_up(const struct hs_thread *thread)
{
    HS_SYS(SYS_set_robust_list, thread->robust_list, thread->robust_size);
    HS_SYS(SYS_set_tid_address, thread->cleared);
}

/* Makes the successor, which continues in `work` on the stack below `top`, and has the kernel write its number to `number`; ends this
 * process with `status`. Returns only if there is no successor: then all is as before. The caller blocks all signals. */
void hs_successor_make(volatile int32_t *number, int status, void *top, void (*work)(void))
{
    const unsigned long flags =
        CLONE_VM | CLONE_PARENT | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
    const struct hs_thread *thread = hs_child_thread();
    /* Areas that libc does not know of stay unknown: then there is no successor. */
    if (!__rseq_size || sequences(FORGET) != 0)
        return;
    give_up(thread);
    hs_clone_and_end(flags, (int32_t *)number, thread->number, status, top, work);
    take_up(thread);
    sequences(0);
}

/* The successor's first step: it registers with the kernel as a process of its own, which ends with the runner and is in no job's process
 * group. Returns -1 if that is not possible. */
int hs_successor_begin(int runner)
{
    take_up(hs_child_thread());
    HS_SYS(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    /* The runner may have died before its death could be signalled. */
    if (HS_SYS(SYS_getppid) != runner || HS_SYS(SYS_setpgid, 0, 0) != 0)
        return -1;
    if (sequences(0) != 0 || hs_state_take_stack() != 0 || hs_gate_follow(1) != 0)
        return -1;
    hs_mappings_take();
    return 0;
}

#endif
