/* Watches a dry run on its way to the first instruction that depends on its request, or on anything outside.
 *
 * Arguments cannot be read meanwhile, and the gate (gate.c) shows each system call to this file. Calls that give the tool no information,
 * and have no effect outside of its memory, are made: anonymous memory, actions and stacks for signals, waking. At any other call, or at
 * a look at an argument, the run has arrived. Until then nothing has gone into its state, and the state can serve other requests
 * (point.c).
 *
 * Clocks can be read without a system call, too: asked.c interposes the functions of libc, and touches an argument. Behind those are the
 * pages that the kernel shares with each process, and the time stamp counter. Neither can be read meanwhile; a kernel that seals the pages
 * leaves the functions.
 *
 * The tool may set an action for the signal that is used here, and a stack for handlers. These are recorded, and set when the watch ends.
 * The handler runs on a stack of its own, so that it leaves nothing on the tool's.
 */
#define _GNU_SOURCE
#pragma GCC target("general-regs-only")
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"

#if HS_RESETS

/* linux/signal.h has it since 4.7. */
#define AUTODISARM (1U << 31)
/* The kernel has one or two mappings of its clocks: "[vvar]", "[vvar_vclock]". */
#define CLOCKS_MAX 4
/* Whether a run is watched. The strings that strings.c hides, and `clocks`, cannot be read then. The action of SIGSEGV and its stack are
 * the runtime's, and the tool is shown its own. */
char hs_watch_is_on;
static struct {
    /* Where the kernel's clocks are; looked for once. */
    struct hs_place clocks[CLOCKS_MAX];
    int clock_count, knows_clocks;
    hs_watch_failed *failed;
    /* As the tool has set them. */
    struct hs_action theirs_fault;
    stack_t theirs_stack;
} watch;
static char handler_stack[64 * 1024] __attribute__((aligned(64)));

/* Reads a byte: by one instruction, which is known. A compiler that looks into it might keep something in registers over the call. */
#if __has_attribute(noipa)
__attribute__((noipa))
#endif
__attribute__((naked, noinline)) static char read_byte(const char *place __attribute__((unused)))
{
    __asm__("movb (%rdi), %al\n\tret");
}

/* Arrives: the tool calls an interposed function whose effect is not restored. It has not happened yet then. */
void hs_watch_touch(void)
{
    if (hs_watch_is_on)
        read_byte(hs_strings_hidden());
}

static void find_clocks(void)
{
    struct hs_mapping map;
    watch.knows_clocks = 1;
    for (const char *line = hs_maps_read(); line && (line = hs_maps_next(line, &map)) && watch.clock_count < CLOCKS_MAX;)
        if (strncmp(map.path, "[vvar", 5) == 0)
            watch.clocks[watch.clock_count++] = (struct hs_place){(char *)map.from, map.to - map.from};
}

/* Where it is refused, clocks are seen as far as asked.c knows them. */
static void show_clocks(int shown)
{
    for (int i = 0; i < watch.clock_count; i++)
        HS_SYS(SYS_mprotect, watch.clocks[i].from, watch.clocks[i].size, shown ? PROT_READ : PROT_NONE);
    HS_SYS(SYS_prctl, PR_SET_TSC, shown ? PR_TSC_ENABLE : PR_TSC_SIGSEGV, 0, 0, 0);
}

/* Ends the watch, if it lasts. The signal stack is the runtime's still. */
void hs_watch_stop(void)
{
    if (!hs_watch_is_on)
        return;
    hs_watch_is_on = 0;
    show_clocks(1);
    hs_signals_set(SIGSEGV, &watch.theirs_fault);
    hs_call_note_action(SIGSEGV);
}

/* Whether an instruction is the runtime's. */
int hs_watch_is_own(uintptr_t place)
{
    extern const char __ehdr_start[] HS_HIDDEN, _end[] HS_HIDDEN;
    return place >= (uintptr_t)__ehdr_start && place < (uintptr_t)_end;
}

/* Whether the kernel would take it, whatever the processor's registers need on a stack. */
static int is_plain(const stack_t *stack)
{
    return stack->ss_flags == 0 && stack->ss_size >= 16 * 1024 && !hs_own_has((uintptr_t)stack->ss_sp, stack->ss_size);
}

/* Whether the kernel sees the tool on this stack: it says so then, and sets no other. */
static int is_on(const stack_t *stack, uintptr_t pointer)
{
    return !(stack->ss_flags & SS_DISABLE) && pointer - (uintptr_t)stack->ss_sp <= stack->ss_size;
}

static void set_fault(const struct hs_action *action, struct hs_action *old)
{
    const struct hs_action before = watch.theirs_fault;
    if (action)
        watch.theirs_fault = hs_action_kept(action);
    if (old)
        *old = before;
}

static void set_stack(const stack_t *stack, stack_t *old)
{
    const stack_t before = watch.theirs_stack;
    if (stack)
        watch.theirs_stack = *stack;
    /* With what the kernel writes between the flags and the size. */
    if (old) {
        memset(old, 0, sizeof *old);
        old->ss_sp = before.ss_sp;
        old->ss_flags = before.ss_flags;
        old->ss_size = before.ss_size;
    }
}

/* Whether a call maps memory that nobody else has, and that is of no file. */
static int maps_memory(const struct hs_system_call *call)
{
    const long wanted = MAP_PRIVATE | MAP_ANONYMOUS, allowed = wanted | MAP_NORESERVE | MAP_STACK | MAP_FIXED | MAP_FIXED_NOREPLACE;
    return (call->d & wanted) == wanted && !(call->d & ~allowed);
}

/* Judges a system call that was made with this stack pointer: one that depends on no request passes, or is answered here. */
enum hs_watch_look hs_watch_look(struct hs_system_call *call, uintptr_t pointer)
{
    if (!hs_watch_is_on)
        return HS_WATCH_PASSES;
    switch (call->number) {
    case SYS_brk:
        return HS_WATCH_PASSES;
    case SYS_mmap:
        if (!maps_memory(call))
            break;
        return hs_call_is_about_strings(call) ? HS_WATCH_ARRIVES : HS_WATCH_PASSES;
    case SYS_munmap:
    case SYS_mremap:
    case SYS_mprotect:
    case SYS_madvise:
        return hs_call_is_about_strings(call) ? HS_WATCH_ARRIVES : HS_WATCH_PASSES;
    /* For a futex that processes may share, the kernel looks up the page, which may be out of reach now. */
    case SYS_futex:
        if (call->b != FUTEX_WAKE_PRIVATE || hs_call_points_to_strings(call->a))
            break;
        return HS_WATCH_PASSES;
    case SYS_rt_sigaction:
        if (hs_call_points_to_strings(call->b) || hs_call_points_to_strings(call->c))
            break;
        if ((int)call->a != SIGSEGV || call->d != HS_SET_BYTES)
            return HS_WATCH_PASSES;
        set_fault((const struct hs_action *)call->b, (struct hs_action *)call->c);
        call->number = 0;
        return HS_WATCH_ANSWERS;
    case SYS_sigaltstack:
        if (hs_call_points_to_strings(call->a) || hs_call_points_to_strings(call->b) ||
            (call->a && !is_plain((const stack_t *)call->a)) || is_on(&watch.theirs_stack, pointer))
            break;
        set_stack((const stack_t *)call->a, (stack_t *)call->b);
        call->number = 0;
        return HS_WATCH_ANSWERS;
    }
    return HS_WATCH_ARRIVES;
}

/* Clears registers, and the stack below its caller, of what the runtime has left there: the tool may keep it unseen, in what it
 * does not use. */
__attribute__((noinline)) void hs_watch_wipe(void)
{
    char used[4096];
    if (!hs_watch_is_on)
        return;
    hs_zero((uintptr_t)used, (uintptr_t)(used + sizeof used));
    __asm__ volatile("xor %%eax, %%eax\n\txor %%ecx, %%ecx\n\txor %%edx, %%edx\n\txor %%esi, %%esi\n\txor %%edi, %%edi\n\t"
                     "xor %%r8d, %%r8d\n\txor %%r9d, %%r9d\n\txor %%r10d, %%r10d\n\txor %%r11d, %%r11d"
                     :
                     : "m"(used)
                     : "memory", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
}

/* Has the handler return to where the arrival is dealt with. */
static void arrive(ucontext_t *context, uintptr_t place)
{
    static const int order[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8,
                                REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RSP};
    greg_t *registers = context->uc_mcontext.gregs;
    struct hs_arrival *arrival = hs_point_arrival();
    hs_watch_stop();
    /* The kernel sets it on return from the handler. */
    context->uc_stack = watch.theirs_stack;
    for (int i = 0; i < 16; i++)
        arrival->general[i] = (uint64_t)registers[order[i]];
    arrival->place = place;
    arrival->flags = (uint64_t)registers[REG_EFL] & ~HS_FLAG_RESUME;
    registers[REG_EFL] = HS_FLAGS_PLAIN;
    registers[REG_RIP] = (greg_t)hs_point_arrive;
}

/* Arrives at a system call that came to the gate's handler. */
void hs_watch_arrive_by_signal(void *context, uintptr_t site)
{
    arrive(context, site);
}

/* Arrives at a system call that came by a slot; what the slot is to go on with, on the tool's stack and with its registers. */
uintptr_t hs_watch_arrive_by_slot(uintptr_t slot, uint64_t flags)
{
    hs_watch_stop();
    HS_SYS(SYS_sigaltstack, &watch.theirs_stack, 0);
    hs_point_arrival()->place = slot;
    hs_point_arrival()->flags = flags & ~HS_FLAG_RESUME;
    return (uintptr_t)hs_point_arrive_by_slot;
}

/* Whether the fault is a look at a clock: at the kernel's pages, or by rdtsc or rdtscp. */
static int is_clock(const siginfo_t *info, uintptr_t place)
{
    const unsigned char *code = (const unsigned char *)place;
    const char *at = info->si_addr;
    for (int i = 0; info->si_code == SEGV_ACCERR && i < watch.clock_count; i++)
        if (at >= watch.clocks[i].from && at < watch.clocks[i].from + watch.clocks[i].size)
            return 1;
    return info->si_code == SI_KERNEL && code[0] == 0x0f && (code[1] == 0x31 || (code[1] == 0x01 && code[2] == 0xf9));
}

/* Whether it is an interposed function that looks for a dry run's sake (fork/asked.c). */
static int is_look(uintptr_t place)
{
    extern const char __start_hs_looks[] HS_HIDDEN, __stop_hs_looks[] HS_HIDDEN;
    return place >= (uintptr_t)__start_hs_looks && place < (uintptr_t)__stop_hs_looks;
}

/* Whether an arrival there is at the beginning of a function, of three parameters at most. */
int hs_watch_is_call(uintptr_t place)
{
    return place == (uintptr_t)read_byte || is_look(place);
}

/* At a look at the request or a clock, or a fault of the tool's own. */
static void on_fault(int signal, siginfo_t *info, void *data)
{
    ucontext_t *context = data;
    const uintptr_t place = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    hs_signals_faulted = 1;
    const int may_arrive = !hs_watch_is_own(place) || hs_watch_is_call(place);
    /* Somebody has sent it. */
    if (info->si_code <= 0)
        hs_point_interrupt(context, signal, &info->si_code);
    if (may_arrive && (is_clock(info, place) || (info->si_code == SEGV_ACCERR && hs_strings_is_hidden(info->si_addr))))
        arrive(context, place);
    else
        watch.failed();
}

/* Watches from here on. `failed` is called, from a signal handler, at a fault of the tool's own, and does not return. */
void hs_watch_begin(hs_watch_failed *failed)
{
    const stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack, .ss_flags = (int)AUTODISARM};
    const unsigned long flags = SA_SIGINFO | SA_ONSTACK | HS_RESTORER;
    const struct hs_action fault = {(void *)on_fault, flags, (void *)hs_gate_restorer, 0};
    if (!watch.knows_clocks)
        find_clocks();
    watch.failed = failed;
    HS_SYS(SYS_sigaltstack, &stack, &watch.theirs_stack);
    hs_signals_tell(SIGSEGV, &watch.theirs_fault);
    HS_SYS(SYS_rt_sigaction, SIGSEGV, &fault, 0, HS_SET_BYTES);
    hs_watch_is_on = 1;
    show_clocks(0);
}

#else

void hs_watch_touch(void)
{
}

void hs_watch_wipe(void)
{
}

#endif
