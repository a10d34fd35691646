/* Watches a piece of main: every system call that it makes, and every look at the request.
 *
 * A snapshot later than main can serve other requests only if nothing of this one went into it. So, on the way there, the gate
 * (gate.c) shows each system call here, and those that tell the tool nothing (memory, actions and stacks for signals, waking)
 * are made; and the pages that hold arguments, environment and the pointers to them cannot be read. At anything else the watch
 * is over, the tool goes on as if there had been none, and there will be no such snapshot.
 *
 * The tool may set an action for the signal that is used here, and a stack for handlers: these are noted, and set when the
 * watch ends. The handler runs on a stack of its own, so that nothing is left on the tool's.
 */
#define _GNU_SOURCE
#pragma GCC target("general-regs-only")
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"

#if HS_REWIND

/* linux/signal.h has it since 4.7. */
#define AUTODISARM (1U << 31)
#define SECRETS 2

static struct {
    int is_on;
    struct hs_secret secrets[SECRETS];
    hs_watch_failed *failed;
    /* What the tool has set. */
    struct hs_action theirs_fault;
    stack_t theirs_stack;
} watch;
static char handler_stack[64 * 1024] __attribute__((aligned(64)));

__attribute__((naked, used)) static void restorer(void)
{
    __asm__("mov $15, %rax\n\tsyscall");
}

static void protect(int access)
{
    for (int i = 0; i < SECRETS; i++)
        HS_SYS(SYS_mprotect, watch.secrets[i].from, watch.secrets[i].size, access);
}

/* Makes the request readable for a moment, for a look that is known of. */
void hs_watch_allow(int allowed)
{
    if (watch.is_on)
        protect(allowed ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static void stop(void)
{
    watch.is_on = 0;
    protect(PROT_READ | PROT_WRITE);
    HS_SYS(SYS_rt_sigaction, SIGSEGV, &watch.theirs_fault, 0, HS_SET_BYTES);
    hs_call_note_action(SIGSEGV);
}

/* The tool is to go on unwatched. From a handler, the kernel sets its signal stack on return: Linux 6.12 and newer set it before
 * they leave the handler's stack, and refuse to while on it unless that disarms itself. */
static void give_up(ucontext_t *context)
{
    stop();
    if (context)
        context->uc_stack = watch.theirs_stack;
    else
        HS_SYS(SYS_sigaltstack, &watch.theirs_stack, 0);
    watch.failed();
}

/* Whether the kernel would take it, whatever the processor's registers need on a stack. */
static int is_plain(const stack_t *stack)
{
    return stack->ss_flags == 0 && stack->ss_size >= 16 * 1024;
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
    if (old)
        *old = before;
}

/* Looks at a system call: what depends on no request passes, or is answered here. */
enum hs_watch_look hs_watch_look(struct hs_system_call *call, void *context)
{
    if (!watch.is_on)
        return HS_WATCH_PASSES;
    switch (call->number) {
    case SYS_brk:
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mremap:
    case SYS_mprotect:
    case SYS_madvise:
        return HS_WATCH_PASSES;
    case SYS_futex:
        if ((call->b & ~FUTEX_PRIVATE_FLAG) != FUTEX_WAKE)
            break;
        return HS_WATCH_PASSES;
    case SYS_rt_sigaction:
        if (call->a != SIGSEGV || call->d != HS_SET_BYTES)
            return HS_WATCH_PASSES;
        set_fault((const struct hs_action *)call->b, (struct hs_action *)call->c);
        call->number = 0;
        return HS_WATCH_ANSWERS;
    case SYS_sigaltstack:
        if (call->a && !is_plain((const stack_t *)call->a))
            break;
        set_stack((const stack_t *)call->a, (stack_t *)call->b);
        call->number = 0;
        return HS_WATCH_ANSWERS;
    }
    give_up(context);
    return HS_WATCH_PASSES;
}

/* At a look at the request, or a fault of the tool's own; either happens again, unwatched. */
static void on_fault(int signal, siginfo_t *info, void *data)
{
    (void)signal;
    (void)info;
    give_up(data);
}

/* Watches from here on; -1 if the system cannot, and nothing is changed. `failed` is called, from a signal handler, when the
 * watch ends by what the tool does. */
int hs_watch_begin(const struct hs_secret secrets[SECRETS], hs_watch_failed *failed)
{
    const stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack, .ss_flags = (int)AUTODISARM};
    const unsigned long flags = SA_SIGINFO | SA_ONSTACK | HS_RESTORER;
    const struct hs_action fault = {(void *)on_fault, flags, (void *)restorer, 0};
    memcpy(watch.secrets, secrets, sizeof watch.secrets);
    watch.failed = failed;
    HS_SYS(SYS_sigaltstack, &stack, &watch.theirs_stack);
    HS_SYS(SYS_rt_sigaction, SIGSEGV, &fault, &watch.theirs_fault, HS_SET_BYTES);
    watch.is_on = 1;
    protect(PROT_NONE);
    return 0;
}

/* Ends the watch, if it lasts; from outside of its handler. */
void hs_watch_end(void)
{
    if (!watch.is_on)
        return;
    stop();
    HS_SYS(SYS_sigaltstack, &watch.theirs_stack, 0);
}

#else

void hs_watch_allow(int allowed)
{
    (void)allowed;
}

#endif
