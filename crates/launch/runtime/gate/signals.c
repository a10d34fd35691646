/* Shows signals to the tool as it has set them, while SIGSYS belongs to the gate (gate.c).
 *
 * SIGSYS is never blocked in a run, since a dispatched call would then end the process. If the tool blocks it, that is recorded here, and
 * shown in its masks and in those of its actions.
 *
 * The kernel reads and writes the tool's memory before this code does: a bad pointer is the tool's error.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "runtime.h"

#if HS_RESETS

#define SIGSYS_BIT (1ull << (SIGSYS - 1))
/* Threads at a time, beside the first, that may block SIGSYS. */
#define THREADS_MAX 64

/* SIGSYS as the tool has it: blocked in the first thread if `blocks`, and in each thread of `blocking`. In the kernel it is blocked nowhere
 * in a run. All is empty when a run begins. */
static struct {
    void *first; /* the first thread's pointer */
    int process;
    int blocks;              /* the first thread blocks SIGSYS */
    void *blocking[THREADS_MAX]; /* others that do, by their pointers */
    uint64_t masking;        /* bit n-1: the action of signal n blocks it */
    int cannot_copy;         /* the system forbids copies from and to the own process */
} signals;

static long copy(void *own, long theirs, size_t size, long call)
{
    const struct iovec local = {own, size}, remote = {(void *)theirs, size};
    return HS_SYS(call, signals.process, &local, 1, &remote, 1, 0);
}

/* Reads memory of the tool's that may not be mapped; returns whether it was. */
int hs_signals_fetch(void *to, long from, size_t size)
{
    if (signals.cannot_copy) {
        memcpy(to, (const void *)from, size);
        return 1;
    }
    return copy(to, from, size, SYS_process_vm_readv) == (long)size;
}

static int store(long to, const void *from, size_t size)
{
    if (signals.cannot_copy) {
        memcpy((void *)to, from, size);
        return 1;
    }
    return copy((void *)from, to, size, SYS_process_vm_writev) == (long)size;
}

/* Before each run. */
void hs_signals_begin(int process)
{
    char one = 0, other;
    signals.first = __builtin_thread_pointer();
    signals.blocks = 0;
    signals.masking = 0;
    memset(signals.blocking, 0, sizeof signals.blocking);
    if (signals.process == process)
        return;
    signals.process = process;
    signals.cannot_copy = copy(&other, (long)&one, 1, SYS_process_vm_readv) != 1;
}

/* Where this thread notes that it blocks SIGSYS; NULL if it does not. */
static void **find_thread(void *thread)
{
    for (void **at = signals.blocking; at < signals.blocking + THREADS_MAX; at++)
        if (__atomic_load_n(at, __ATOMIC_RELAXED) == thread)
            return at;
    return NULL;
}

/* Whether the calling thread blocks SIGSYS, as it believes. */
int hs_signals_blocks(void)
{
    void *const thread = __builtin_thread_pointer();
    return thread == signals.first ? signals.blocks : find_thread(thread) != NULL;
}

void hs_signals_set_blocks(int blocks)
{
    void *const thread = __builtin_thread_pointer();
    void **at = find_thread(thread);
    if (thread == signals.first) {
        signals.blocks = blocks;
        return;
    }
    if (at && !blocks)
        __atomic_store_n(at, NULL, __ATOMIC_RELAXED);
    for (at = signals.blocking; blocks && !find_thread(thread) && at < signals.blocking + THREADS_MAX; at++) {
        void *none = NULL;
        if (__atomic_compare_exchange_n(at, &none, thread, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return;
    }
    if (blocks && !find_thread(thread))
        hs_call_mark();
}

/* A vfork's child shares this memory, but its signals are its own. */
int hs_signals_are_own(void)
{
    return !(hs_call_seen() & HS_SEEN_CHILDREN) || HS_SYS(SYS_getpid) == signals.process;
}

static enum hs_call_outcome done(struct hs_system_call *call, long result)
{
    call->number = result;
    return HS_CALL_DONE;
}

/* The action for SIGSYS itself is kept by the gate. */
static long set_own_action(long given, long old)
{
    struct hs_action action, before;
    if (given && !hs_signals_fetch(&action, given, sizeof action))
        return -EFAULT;
    hs_gate_action(given ? &action : NULL, &before);
    return old && !store(old, &before, sizeof before) ? -EFAULT : 0;
}

/* Whether something lies on the first thread's stack, where it can be read: above `low`, below the place of libc's call of main. */
static int is_on_stack(long address, uintptr_t low)
{
    return __builtin_thread_pointer() == signals.first && (uintptr_t)address >= low &&
           (uintptr_t)address + sizeof(struct hs_action) <= hs_frame.stack && low < hs_frame.stack;
}

/* rt_sigaction. */
enum hs_call_outcome hs_signals_action(struct hs_system_call *call, uintptr_t stack)
{
    const int number = (int)call->a;
    struct hs_action action;
    if (call->d != HS_SET_BYTES || number < 1 || number > 64 || !hs_signals_are_own())
        return HS_CALL_NATIVE;
    const uint64_t bit = 1ull << (number - 1), was = signals.masking & bit;
    if (call->b)
        hs_call_note_action(number);
    if (number == SIGSYS)
        return done(call, set_own_action(call->b, call->c));
    if (is_on_stack(call->b, stack))
        memcpy(&action, (const void *)call->b, sizeof action);
    else if (call->b && !hs_signals_fetch(&action, call->b, sizeof action))
        return done(call, -EFAULT);
    const int masks = call->b && action.mask & SIGSYS_BIT;
    if (!was && !masks)
        return HS_CALL_NATIVE;
    if (call->b)
        __atomic_store_n(&signals.masking, masks ? signals.masking | bit : signals.masking & ~bit, __ATOMIC_RELAXED);
    action.mask &= ~SIGSYS_BIT;
    const long result = HS_SYS(SYS_rt_sigaction, number, call->b ? &action : NULL, call->c, HS_SET_BYTES);
    if (result == 0 && call->c && was)
        ((struct hs_action *)call->c)->mask |= SIGSYS_BIT;
    return done(call, result);
}

/* rt_sigprocmask. The kernel has what the tool believes while it answers. From a handler the mask is that of the frame by which it
 * returns. */
enum hs_call_outcome hs_signals_mask(struct hs_system_call *call, void *context)
{
    const uint64_t own = SIGSYS_BIT;
    uint64_t mask = 0;
    if (call->d != HS_SET_BYTES || !hs_signals_are_own())
        return HS_CALL_NATIVE;
    /* In a handler whose action blocks SIGSYS it is not shown to be blocked. */
    if (call->c && signals.masking)
        hs_call_mark();
    if (hs_signals_blocks())
        HS_SYS(SYS_rt_sigprocmask, SIG_BLOCK, &own, 0, HS_SET_BYTES);
    const long result = HS_SYS(SYS_rt_sigprocmask, call->a, call->b, call->c, HS_SET_BYTES);
    HS_SYS(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mask, HS_SET_BYTES);
    if (hs_signals_blocks() != ((mask & own) != 0))
        hs_signals_set_blocks((mask & own) != 0);
    if (mask & own)
        HS_SYS(SYS_rt_sigprocmask, SIG_UNBLOCK, &own, 0, HS_SET_BYTES);
    if (context)
        *(uint64_t *)&((ucontext_t *)context)->uc_sigmask = mask & ~own;
    return done(call, result);
}

/* rt_sigreturn: a handler may have changed the mask that it returns to. */
enum hs_call_outcome hs_signals_return(void *context)
{
    uint64_t *mask = (uint64_t *)&((ucontext_t *)context)->uc_sigmask;
    if (*mask & SIGSYS_BIT)
        hs_signals_set_blocks(1);
    *mask &= ~SIGSYS_BIT;
    return HS_CALL_LEAVES;
}

/* A call that waits under a mask of its own, at `mask`. */
enum hs_call_outcome hs_signals_wait(struct hs_system_call *call, long mask)
{
    uint64_t changed;
    if (!mask || !hs_signals_fetch(&changed, mask, sizeof changed) || !(changed & SIGSYS_BIT))
        return HS_CALL_NATIVE;
    changed &= ~SIGSYS_BIT;
    const struct {
        const uint64_t *mask;
        size_t size;
    } both = {&changed, HS_SET_BYTES};
    switch (call->number) {
    case SYS_rt_sigsuspend:
        return done(call, HS_SYS(SYS_rt_sigsuspend, &changed, HS_SET_BYTES));
    case SYS_ppoll:
        return done(call, HS_SYS(SYS_ppoll, call->a, call->b, call->c, &changed, HS_SET_BYTES));
    case SYS_pselect6:
        return done(call, HS_SYS(SYS_pselect6, call->a, call->b, call->c, call->d, call->e, &both));
    default:
        return done(call, HS_SYS(call->number, call->a, call->b, call->c, call->d, &changed, HS_SET_BYTES));
    }
}

/* pselect6, whose last argument points at a pointer to the mask. */
enum hs_call_outcome hs_signals_select(struct hs_system_call *call)
{
    long mask;
    if (!call->f || !hs_signals_fetch(&mask, call->f, sizeof mask))
        return HS_CALL_NATIVE;
    return hs_signals_wait(call, mask);
}

/* For the rest of the run, the kernel has what the tool believes; `context` is the frame of the handler that it is in, if any. */
void hs_signals_hand_over(void *context)
{
    const uint64_t own = SIGSYS_BIT;
    if (hs_signals_blocks() && context)
        *(uint64_t *)&((ucontext_t *)context)->uc_sigmask |= own;
    else if (hs_signals_blocks())
        HS_SYS(SYS_rt_sigprocmask, SIG_BLOCK, &own, 0, HS_SET_BYTES);
}

#endif
