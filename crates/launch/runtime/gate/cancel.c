/* Cancels threads at the calls that the gate handles.
 *
 * Since glibc 2.41 the signal by which libc cancels a thread acts only if it finds the thread at one system call of libc's, or right before
 * it: then nothing has been done yet. That call comes to the gate by SIGSYS. So the signal is blocked meanwhile, and comes when the thread
 * is at the call again. If the runtime makes the call, as it does with `accept`, the signal is let in for as long as nothing has been done,
 * and libc's handler finds the thread where the tool made the call. Such a run is doubtful.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "runtime.h"

#if HS_RESETS

/* The signal, and the bit of a thread's state that tells that the thread is cancelled (glibc, nptl/descr.h). */
#define CANCELLATION 32
#define IS_CANCELLED 8
/* Threads that make such a call in a run. In a pool of threads each one that waits does. */
#define CALLS_MAX 512
/* The thread's state is less than so far behind its pointer. */
#define THREAD_BYTES 4096

static const uint64_t cancellation = 1ull << (CANCELLATION - 1);

/* Threads of which the gate has handled such a call, by their pointers, and the frame by which one came that is handled now. */
static struct {
    void *thread;
    ucontext_t *context; /* NULL if it is another call that is handled */
} calls[CALLS_MAX];
static int call_count; /* places in use */

/* Finds the calling thread's place; -1 if it has none. */
static int find(void *thread)
{
    const int count = __atomic_load_n(&call_count, __ATOMIC_ACQUIRE);
    for (int i = 0; i < count && i < CALLS_MAX; i++)
        if (__atomic_load_n(&calls[i].thread, __ATOMIC_RELAXED) == thread)
            return i;
    return -1;
}

/* Takes a place for the calling thread; -1 if there is none. */
static int take(void *thread)
{
    int at = find(thread);
    if (at < 0 && __atomic_load_n(&call_count, __ATOMIC_RELAXED) < CALLS_MAX)
        at = __atomic_fetch_add(&call_count, 1, __ATOMIC_ACQ_REL);
    if (at < 0 || at >= CALLS_MAX)
        return -1;
    __atomic_store_n(&calls[at].thread, thread, __ATOMIC_RELAXED);
    return at;
}

static int is_cancellable(uintptr_t back)
{
    /* mov %r11, 8(%rsp); syscall; ret */
    static const unsigned char code[] = {0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05, 0xc3};
    const uintptr_t from = back + 1 - sizeof code;
    return hs_gate_is_libcs(from, sizeof code) && memcmp((const void *)from, code, sizeof code) == 0;
}

/* Has the signal wait until the frame is left. libc has left the address of the thread's state there: if the thread was cancelled since
 * libc looked at that, the signal may have come while the thread was on its way here. */
static void hold_back(const ucontext_t *frame)
{
    const volatile int *const state = *(const volatile int *const *)((uintptr_t)frame->uc_mcontext.gregs[REG_RSP] + 8);
    /* Code of the tool's may jump to libc's call with something else there. */
    const int is_known = (uintptr_t)state - (uintptr_t)__builtin_thread_pointer() < THREAD_BYTES;
    HS_SYS(SYS_rt_sigprocmask, SIG_BLOCK, &cancellation, 0, HS_SET_BYTES);
    if (is_known && *state & IS_CANCELLED)
        HS_SYS(SYS_tgkill, HS_SYS(SYS_getpid), HS_SYS(SYS_gettid), CANCELLATION);
}

/* The gate begins to handle a call, which has come by this frame, or by a slot if that is NULL. Returns what `hs_cancel_end` is told when
 * it has been handled: a handler of the tool's may have interrupted another one. */
void *hs_cancel_begin(void *frame)
{
    ucontext_t *const context = frame && is_cancellable((uintptr_t)((ucontext_t *)frame)->uc_mcontext.gregs[REG_RIP]) ? frame : NULL;
    if (!context && !__atomic_load_n(&call_count, __ATOMIC_RELAXED))
        return NULL;
    void *const thread = __builtin_thread_pointer();
    const int at = context ? take(thread) : find(thread);
    if (context)
        hold_back(context);
    if (at < 0) {
        if (context)
            hs_call_mark();
        return NULL;
    }
    void *const before = calls[at].context;
    calls[at].context = context;
    return before;
}

void hs_cancel_end(void *before)
{
    const int at = __atomic_load_n(&call_count, __ATOMIC_RELAXED) ? find(__builtin_thread_pointer()) : -1;
    if (at >= 0)
        calls[at].context = before;
}

/* Unblocks signals and makes a call. Up to the call's instruction nothing has been done, and rbx has the context. */
long hs_cancel_let_in(const struct hs_system_call *call, const void *context, const uint64_t *signals) HS_HIDDEN;
extern const char hs_cancel_from[] HS_HIDDEN, hs_cancel_call[] HS_HIDDEN;
__asm__(".pushsection .text\n\t.globl hs_cancel_let_in, hs_cancel_from, hs_cancel_call\n\t"
        ".hidden hs_cancel_let_in, hs_cancel_from, hs_cancel_call\nhs_cancel_let_in:\n\t.cfi_startproc\n\t"
        "push %rbx\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_offset rbx, -16\n\t"
        "push %r12\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_offset r12, -24\n\tmov %rsi, %rbx\n\tmov %rdi, %r12\n\t"
        "mov $14, %eax\n\tmov $1, %edi\n\tmov %rdx, %rsi\n\txor %edx, %edx\n\tmov $8, %r10d\n\tsyscall\n"
        "hs_cancel_from:\n\tmov (%r12), %rax\n\tmov 8(%r12), %rdi\n\tmov 16(%r12), %rsi\n\tmov 24(%r12), %rdx\n\t"
        "mov 32(%r12), %r10\n\tmov 40(%r12), %r8\n\tmov 48(%r12), %r9\n"
        "hs_cancel_call:\n\tsyscall\n\tpop %r12\n\tpop %rbx\n\tret\n\t.cfi_endproc\n\t.popsection");
_Static_assert(SYS_rt_sigprocmask == 14 && SIG_UNBLOCK == 1 && HS_SET_BYTES == 8, "as hs_cancel_let_in has it");
_Static_assert(__builtin_offsetof(struct hs_system_call, f) == 48, "as hs_cancel_let_in has it");

/* Makes a call in the tool's place. */
long hs_call_make(const struct hs_system_call *call)
{
    const int at = __atomic_load_n(&call_count, __ATOMIC_RELAXED) ? find(__builtin_thread_pointer()) : -1;
    if (at < 0 || !calls[at].context)
        return HS_SYS(call->number, call->a, call->b, call->c, call->d, call->e, call->f);
    const long result = hs_cancel_let_in(call, calls[at].context, &cancellation);
    HS_SYS(SYS_rt_sigprocmask, SIG_BLOCK, &cancellation, 0, HS_SET_BYTES);
    return result;
}

/* A signal has found the thread in the runtime: if it is the one that cancels, and nothing has been done, its handler finds the thread
 * where the tool made the call. If that does not cancel the thread, it makes the call again. */
void hs_cancel_show_call(void *context, int number)
{
    greg_t *const regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uintptr_t at = (uintptr_t)regs[REG_RIP];
    if (number != CANCELLATION || at < (uintptr_t)hs_cancel_from || at > (uintptr_t)hs_cancel_call)
        return;
    const ucontext_t *const frame = (const ucontext_t *)regs[REG_RBX];
    memcpy(regs, frame->uc_mcontext.gregs, sizeof frame->uc_mcontext.gregs);
    regs[REG_RIP] -= 2;
}

/* Before each run. */
void hs_cancel_forget(void)
{
    const size_t used = call_count < CALLS_MAX ? (size_t)call_count : CALLS_MAX;
    memset(calls, 0, used * sizeof *calls);
    call_count = 0;
}

#endif
