/* Shows signals to the tool as it has set them, while SIGSYS belongs to the gate (gate.c).
 *
 * SIGSYS is never blocked in a run, since a dispatched call would then end the process. If the tool blocks it, that is recorded here, and
 * shown in its masks and in those of its actions.
 *
 * The kernel calls `enter` in place of the tool's handlers, which it leads to. A signal that comes while a thread is in the runtime would
 * show that: the handler finds addresses and frames that no other process has, and may leave by siglongjmp, an exception or the end of
 * the thread. Where the thread only makes the system call that it has asked for, in a slot for one, the handler finds it at the
 * instruction of libc that asked, as pthread_cancel wants it. Anywhere else the run is doubtful, and so it is in a watched run (watch.c).
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
/* The smallest signal stack that the kernel takes on x86-64; libc's MINSIGSTKSZ need not be a constant. */
#define KERNEL_MINSIGSTKSZ 2048
/* The processor's number of it. */
#define PAGE_FAULT 14
/* Threads at a time, beside the first, that may block SIGSYS. */
#define THREADS_MAX 64

/* SIGSYS as the tool has it: blocked in the first thread if `blocks`, and in each thread of `blocking`. In the kernel it is blocked nowhere
 * in a run. All is empty when a run begins. */
static struct {
    void *first; /* the first thread's pointer */
    int process;
    int blocks;              /* the first thread blocks SIGSYS */
    void *blocking[THREADS_MAX]; /* others that do, by their pointers */
    int cannot_copy;         /* the system forbids copies from and to the own process */
} signals;

/* The tool's handlers by signal, where the kernel has `enter`. */
HS_HIDDEN void *hs_signals_handlers[65];
/* Bit n-1: the tool's handler of signal n is to be told more of it (SA_SIGINFO), and `enter` is. */
__attribute__((used)) static uint64_t informed;
static uint64_t enter_informed;
/* Bit n-1: the tool's action of signal n blocks SIGSYS while its handler runs. */
__attribute__((used)) static uint64_t masking;
/* The first thread's pointer while the tool has not set its signal stack in this run. In a process from exec the kernel then tells handlers
 * a state of 0, but SS_DISABLE once anything has set it, as the runtime does. */
__attribute__((used)) static void *unstacked;
/* In this run one of them was told of a signal that a process has sent, and by which one. */
char hs_signals_came;
/* The kernel may tell handlers of a fault that is over: of the last one of this process. */
char hs_signals_faulted;

/* Some thread has blocked SIGSYS in this run. */
__attribute__((used)) static char hides;

/* A signal came while this thread was in the runtime, in a dry run, or where SIGSYS may be blocked: the handler's frame has the mask. Or
 * the handler is to run with SIGSYS blocked: its end, or the mask that it sets when it leaves otherwise, tells the mask behind it. Or
 * the signal is a SIGSEGV without an address: perhaps the tool's stack had no room for the frame of the gate's own signal. If the handler
 * is not to be told more, only the number of the last fault says so, and only if there was none before. */
__attribute__((used)) static void hs_signals_interrupt(void *context, int number, const siginfo_t *told)
{
    if (!hs_gate_is_worker())
        return;
    hs_stacks_note_depth();
    /* This function's frame is below the handler's. */
    if (!hs_stacks_have_room((uintptr_t)context))
        hs_call_mark();
    const int is_told = informed >> (number - 1) & 1;
    const int is_page = !hs_signals_faulted && ((ucontext_t *)context)->uc_mcontext.gregs[REG_TRAPNO] == PAGE_FAULT;
    if (number == SIGSEGV && !(is_told ? told->si_code != SI_KERNEL : is_page))
        hs_call_mark();
    if (hs_signals_blocks())
        *(uint64_t *)&((ucontext_t *)context)->uc_sigmask |= SIGSYS_BIT;
    if (masking >> (number - 1) & 1 && hs_signals_are_own())
        hs_signals_set_blocks(1);
    if (!hs_watch_is_on && (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] - hs_gate_text.low >= hs_gate_text.size)
        return;
    if (hs_watch_is_on)
        hs_point_interrupt(context, number, enter_informed & 1ull << (number - 1) ? &told->si_code : NULL);
    /* A tool that single-steps itself would make the call again from its site, trap here again, and so on for ever. */
    const int is_shown = number != SIGTRAP && hs_gate_show_site(context);
    if (!is_shown) {
        hs_call_mark();
        hs_cancel_show_call(context, number);
    }
}

/* Leads to the tool's handler, with nothing of its own on the stack, rax cleared as the kernel does, and the flags of arithmetic as the
 * interrupted code has left them; r11 is free in a handler. A frame has the state of the signal stack at 24, the instruction pointer at
 * 168, the flags at 176, and the last fault's error, number and address at 192, 200 and 216. `info` has the code at 8: those of signals
 * that processes send are not above 0. */
__attribute__((naked, used)) static void enter(void)
{
    __asm__("lea -1(%rdi), %eax\n\tbt %rax, informed(%rip)\n\tjnc 3f\n\tcmpl $0, 8(%rsi)\n\tjg 3f\n\t"
            "movb $1, hs_signals_came(%rip)\n3:\t"
            "mov %fs:0, %rax\n\tcmp unstacked(%rip), %rax\n\tjne 4f\n\t"
            "cmpl $2, 24(%rdx)\n\tjne 4f\n\tmovl $0, 24(%rdx)\n4:\t"
            "lea -1(%rdi), %eax\n\tbt %rax, masking(%rip)\n\tjc 1f\n\t"
            "cmpb $0, hs_watch_is_on(%rip)\n\tjne 1f\n\tcmpb $0, hides(%rip)\n\tjne 1f\n\t"
            "cmp $11, %edi\n\tjne 6f\n\tbtl $10, informed(%rip)\n\tjnc 1f\n\tcmpl $128, 8(%rsi)\n\tje 1f\n6:\t"
            "mov 168(%rdx), %rax\n\tsub hs_gate_text(%rip), %rax\n\tcmp hs_gate_text+8(%rip), %rax\n\tjb 1f\n"
            "2:\tmov 192(%rdx), %rax\n\tor 200(%rdx), %rax\n\tor 216(%rdx), %rax\n\tje 5f\n\tmovb $1, hs_signals_faulted(%rip)\n5:\t"
            "lea hs_signals_handlers(%rip), %rax\n\tmov (%rax,%rdi,8), %r11\n\t"
            /* Adding 127 overflows if bit 11 was set; then all other flags. */
            "btl $11, 176(%rdx)\n\tsetc %al\n\tadd $127, %al\n\tmov 176(%rdx), %ah\n\tsahf\n\tmov $0, %eax\n\tjmp *%r11\n"
            "1:\tpush %rdi\n\tpush %rsi\n\tpush %rdx\n\tpush %rcx\n\tpush %r8\n\tpush %r9\n\tpush %r10\n\tpush %r11\n\t"
            "sub $8, %rsp\n\tmov %rsi, %rax\n\tmov %edi, %esi\n\tmov %rdx, %rdi\n\tmov %rax, %rdx\n\t"
            "cld\n\tcall hs_signals_interrupt\n\tadd $8, %rsp\n\t"
            "pop %r11\n\tpop %r10\n\tpop %r9\n\tpop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n\tjmp 2b");
}
_Static_assert(__builtin_offsetof(siginfo_t, si_code) == 8 && SI_USER <= 0 && SI_TKILL <= 0 && SI_QUEUE <= 0, "as `enter` has it");
_Static_assert(SIGSEGV == 11 && SI_KERNEL == 128, "as `enter` has it");
_Static_assert(__builtin_offsetof(ucontext_t, uc_stack.ss_flags) == 24 && SS_DISABLE == 2, "as `enter` has it");
_Static_assert(__builtin_offsetof(ucontext_t, uc_mcontext.gregs) + REG_RIP * sizeof(greg_t) == 168, "as `enter` has it");
_Static_assert(REG_EFL == REG_RIP + 1, "as `enter` has it");
_Static_assert(REG_ERR == REG_RIP + 3 && REG_TRAPNO == REG_RIP + 4 && REG_CR2 == REG_RIP + 6, "as `enter` has it");

static void set(uint64_t *bits, uint64_t bit, uint64_t is)
{
    if (is)
        __atomic_or_fetch(bits, bit, __ATOMIC_RELAXED);
    else
        __atomic_and_fetch(bits, ~bit, __ATOMIC_RELAXED);
}

/* The tool's action that the kernel has as `enter`. */
static void unlead(struct hs_action *action, void *handler, int is_informed)
{
    action->handler = handler;
    if (!is_informed)
        action->flags &= ~(unsigned long)SA_SIGINFO;
}

/* The action to give the kernel for the one that the tool has set. */
static struct hs_action led(int number, struct hs_action action)
{
    const uint64_t bit = 1ull << (number - 1);
    set(&masking, bit, action.mask & SIGSYS_BIT);
    action.mask &= ~SIGSYS_BIT;
#ifndef HS_WITHOUT_HANDLERS
    if (action.handler != (void *)SIG_DFL && action.handler != (void *)SIG_IGN && action.handler != (void *)enter) {
        __atomic_store_n(&hs_signals_handlers[number], action.handler, __ATOMIC_RELAXED);
        set(&informed, bit, action.flags & SA_SIGINFO);
        /* A dry run has to know who sent a signal. Elsewhere the kernel writes nothing that the tool has not asked for. */
        if (hs_watch_is_on)
            action.flags |= SA_SIGINFO;
        set(&enter_informed, bit, action.flags & SA_SIGINFO);
        action.handler = (void *)enter;
    }
#endif
    return action;
}

/* Sets an action of the tool's. */
void hs_signals_set(int number, const struct hs_action *action)
{
    const struct hs_action changed = led(number, *action);
    HS_SYS(SYS_rt_sigaction, number, &changed, 0, HS_SET_BYTES);
}

/* Tells an action as the tool has set it. */
void hs_signals_tell(int number, struct hs_action *action)
{
    HS_SYS(SYS_rt_sigaction, number, 0, action, HS_SET_BYTES);
    if (action->handler == (void *)enter)
        unlead(action, hs_signals_handlers[number], informed >> (number - 1) & 1);
    if (masking & 1ull << (number - 1))
        action->mask |= SIGSYS_BIT;
}

/* Puts `enter` before the handlers that constructors have set. */
void hs_signals_lead(void)
{
    struct hs_action action;
    for (int number = 1; number <= 64; number++)
        if (number != SIGSYS && HS_SYS(SYS_rt_sigaction, number, 0, &action, HS_SET_BYTES) == 0 && action.handler)
            hs_signals_set(number, &action);
}

/* Gives the kernel the tool's own handlers: this process goes on without the gate, and its next look at them is not followed. */
void hs_signals_let_go(void)
{
    struct hs_action action;
    for (int number = 1; number <= 64; number++) {
        if (!hs_signals_handlers[number])
            continue;
        HS_SYS(SYS_rt_sigaction, number, 0, &action, HS_SET_BYTES);
        if (action.handler != (void *)enter)
            continue;
        unlead(&action, hs_signals_handlers[number], informed >> (number - 1) & 1);
        HS_SYS(SYS_rt_sigaction, number, &action, 0, HS_SET_BYTES);
    }
}

static long copy(void *own, long theirs, size_t size, long call)
{
    const struct iovec local = {own, size}, remote = {(void *)theirs, size};
    return HS_SYS(call, signals.process, &local, 1, &remote, 1, 0);
}

static int is_copied(void *own, long theirs, size_t size, long call)
{
    if (copy(own, theirs, size, call) == (long)size)
        return 1;
    hs_call_mark();
    return 0;
}

/* Reads memory of the tool's that may not be mapped; returns whether it was. What cannot be read so, the kernel may read all the same:
 * memory that is mapped for writing only, or where the stack grows by that. So the run is doubtful then. */
int hs_signals_fetch(void *to, long from, size_t size)
{
    if (signals.cannot_copy) {
        memcpy(to, (const void *)from, size);
        return 1;
    }
    return is_copied(to, from, size, SYS_process_vm_readv);
}

/* Writes there; returns whether that could be written. Here, too, the kernel may do what this cannot. */
int hs_signals_store(long to, const void *from, size_t size)
{
    if (signals.cannot_copy) {
        memcpy((void *)to, from, size);
        return 1;
    }
    return is_copied((void *)from, to, size, SYS_process_vm_writev);
}

/* Continues behind the instruction that has faulted, one of the two below. */
static void on_forgetting(int number, siginfo_t *info, void *context)
{
    extern const char hs_signals_loaded[] HS_HIDDEN, hs_signals_divided[] HS_HIDDEN;
    if (info->si_code > 0)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (greg_t)(number == SIGSEGV ? hs_signals_loaded : hs_signals_divided);
}

/* Has the kernel forget the last fault, between two runs: it tells each later handler its number, error and address. All are zero in a new
 * process, as they are after a look at address 0 and a division by 0. */
void hs_signals_forget_fault(void)
{
    const struct hs_action forgets = {(void *)on_forgetting, SA_SIGINFO | HS_RESTORER, (void *)hs_gate_restorer, 0};
    struct hs_action before[2];
    if (!hs_signals_faulted)
        return;
    hs_signals_faulted = 0;
    HS_SYS(SYS_rt_sigaction, SIGSEGV, &forgets, &before[0], HS_SET_BYTES);
    HS_SYS(SYS_rt_sigaction, SIGFPE, &forgets, &before[1], HS_SET_BYTES);
    __asm__ volatile("xor %%eax, %%eax\n\tmovb (%%rax), %%al\n\t"
                     ".globl hs_signals_loaded\n\t.hidden hs_signals_loaded\nhs_signals_loaded:\n\t"
                     "xor %%ecx, %%ecx\n\txor %%edx, %%edx\n\tdiv %%ecx\n\t"
                     ".globl hs_signals_divided\n\t.hidden hs_signals_divided\nhs_signals_divided:"
                     :
                     :
                     : "rax", "rcx", "rdx", "cc", "memory");
    HS_SYS(SYS_rt_sigaction, SIGSEGV, &before[0], 0, HS_SET_BYTES);
    HS_SYS(SYS_rt_sigaction, SIGFPE, &before[1], 0, HS_SET_BYTES);
}

/* Before each run. */
void hs_signals_begin(int process)
{
    char one = 0, other;
    signals.first = unstacked = __builtin_thread_pointer();
    signals.blocks = 0;
    hides = 0;
    hs_signals_came = 0;
    hs_cancel_forget();
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
    if (blocks)
        hides = 1;
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

/* The action for SIGSYS itself is kept by the gate. */
static long set_own_action(long given, long old)
{
    struct hs_action action, before;
    if (given && !hs_signals_fetch(&action, given, sizeof action))
        return -EFAULT;
    hs_gate_action(given ? &action : NULL, &before);
    return old && !hs_signals_store(old, &before, sizeof before) ? -EFAULT : 0;
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
    const uint64_t bit = 1ull << (number - 1), was = masking & bit;
    if (call->b)
        hs_call_note_action(number);
    if (number == SIGSYS)
        return hs_call_done(call, set_own_action(call->b, call->c));
    if (is_on_stack(call->b, stack))
        memcpy(&action, (const void *)call->b, sizeof action);
    else if (call->b && !hs_signals_fetch(&action, call->b, sizeof action))
        return hs_call_done(call, -EFAULT);
    void *const before = hs_signals_handlers[number];
    const int was_informed = informed >> (number - 1) & 1;
    /* Their actions cannot be set. */
    if (call->b && number != SIGKILL && number != SIGSTOP)
        action = led(number, action);
    /* A thread may be on its way to the handler with the mask that was set before. */
    if (was != (masking & bit) && hs_call_seen() & HS_SEEN_THREADS)
        hs_call_mark();
    const long result = HS_SYS(SYS_rt_sigaction, number, call->b ? &action : NULL, call->c, HS_SET_BYTES);
    struct hs_action *const old = (struct hs_action *)call->c;
    /* The kernel has told a part of it. */
    if (result != 0 && old)
        hs_call_mark();
    if (result == 0 && old && was)
        old->mask |= SIGSYS_BIT;
    if (result == 0 && old && old->handler == (void *)enter)
        unlead(old, before, was_informed);
    return hs_call_done(call, result);
}

/* rt_sigprocmask. The kernel has what the tool believes while it answers. From a handler the mask is that of the frame by which it
 * returns. */
enum hs_call_outcome hs_signals_mask(struct hs_system_call *call, void *context)
{
    const uint64_t own = SIGSYS_BIT;
    uint64_t mask = 0;
    if (call->d != HS_SET_BYTES || !hs_signals_are_own())
        return HS_CALL_NATIVE;
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
    return hs_call_done(call, result);
}

/* This thread's signal stack is not as exec has left it. */
static void stack_is_set(void)
{
    if (unstacked == __builtin_thread_pointer())
        unstacked = NULL;
}

/* sigaltstack. It sets nothing where the kernel refuses it; with flags that are not known to be plain, nobody tells what it sets. */
enum hs_call_outcome hs_signals_stack(const struct hs_system_call *call)
{
    stack_t wanted;
    if (!call->a || !hs_signals_fetch(&wanted, call->a, sizeof wanted))
        return HS_CALL_NATIVE;
    if (wanted.ss_flags == SS_DISABLE || (wanted.ss_flags == 0 && wanted.ss_size >= KERNEL_MINSIGSTKSZ))
        stack_is_set();
    else if (wanted.ss_flags != 0)
        hs_call_mark();
    if (hs_own_has((uintptr_t)wanted.ss_sp, wanted.ss_size))
        hs_call_mark();
    return HS_CALL_NATIVE;
}

/* rt_sigreturn: a handler may have changed the mask that it returns to. */
enum hs_call_outcome hs_signals_return(void *context)
{
    /* The frame was told 0. */
    if (((ucontext_t *)context)->uc_stack.ss_flags == SS_DISABLE)
        stack_is_set();
    uint64_t *mask = (uint64_t *)&((ucontext_t *)context)->uc_sigmask;
    if (hides || *mask & SIGSYS_BIT)
        hs_signals_set_blocks((*mask & SIGSYS_BIT) != 0);
    *mask &= ~SIGSYS_BIT;
    return HS_CALL_LEAVES;
}

/* A call that waits under a mask of its own, at `mask`. The kernel refuses any other size than HS_SET_BYTES. A handler that comes meanwhile
 * runs with that mask and not with the tool's. So the call is made here where one of them has SIGSYS, and a handler makes the run
 * doubtful. */
enum hs_call_outcome hs_signals_wait(struct hs_system_call *call, long mask, long size)
{
    uint64_t changed;
    if (!mask || size != HS_SET_BYTES || !hs_signals_fetch(&changed, mask, sizeof changed))
        return HS_CALL_NATIVE;
    if (!(changed & SIGSYS_BIT) && !hs_signals_blocks())
        return HS_CALL_NATIVE;
    changed &= ~SIGSYS_BIT;
    const struct {
        const uint64_t *mask;
        size_t size;
    } both = {&changed, HS_SET_BYTES};
    switch (call->number) {
    case SYS_rt_sigsuspend:
        return hs_call_done(call, HS_SYS(SYS_rt_sigsuspend, &changed, HS_SET_BYTES));
    case SYS_ppoll:
        return hs_call_done(call, HS_SYS(SYS_ppoll, call->a, call->b, call->c, &changed, HS_SET_BYTES));
    case SYS_pselect6:
        return hs_call_done(call, HS_SYS(SYS_pselect6, call->a, call->b, call->c, call->d, call->e, &both));
    default:
        return hs_call_done(call, HS_SYS(call->number, call->a, call->b, call->c, call->d, &changed, HS_SET_BYTES));
    }
}

/* pselect6, whose last argument points at a pointer to the mask. */
enum hs_call_outcome hs_signals_select(struct hs_system_call *call)
{
    struct {
        long mask, size;
    } both;
    if (!call->f || !hs_signals_fetch(&both, call->f, sizeof both))
        return HS_CALL_NATIVE;
    return hs_signals_wait(call, both.mask, both.size);
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
