/* Watches a piece of main: every system call that it makes, and every look at the request's strings.
 *
 * A snapshot later than main can serve other requests only if nothing of this one went into it. So, on the way there,
 * the kernel hands each system call to a handler here (PR_SET_SYSCALL_USER_DISPATCH, Linux 5.11), which makes those that
 * tell the tool nothing (actions and stacks for signals, waking) in its place; and the pages that hold arguments and
 * environment cannot be read. At anything else the watch is over, the tool goes on as if there had been none, and there
 * will be no such snapshot.
 *
 * The tool may set actions for the two signals that are used here, and a stack for handlers: these are noted, and set when
 * the watch ends. The handler runs on a stack of its own, so that nothing is left on the tool's.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"

#if HS_REWIND

/* linux/signal.h and linux/prctl.h have them since 4.7 and 5.11. */
#define AUTODISARM (1U << 31)
#define DISPATCH 59
#define DISPATCH_ON 1
#define DISPATCH_OFF 0
#define SELECTOR_BLOCK 1

static int watching;
static volatile char selector = SELECTOR_BLOCK;
static char *secret;
static size_t secret_size;
static hs_watch_failed *failed;
static char handler_stack[64 * 1024] __attribute__((aligned(64)));
/* What the tool has set. */
static struct hs_action theirs_call, theirs_fault;
static stack_t theirs_stack;
static uintptr_t text_low, text_high;

__attribute__((naked, used)) static void restorer(void)
{
    __asm__("mov $15, %eax\n\tsyscall");
}

static int find_text(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    const uintptr_t here = (uintptr_t)&restorer;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + part->p_vaddr, high = low + part->p_memsz;
        if (part->p_type == PT_LOAD && part->p_flags & PF_X && here >= low && here < high) {
            text_low = low;
            text_high = high;
            return 1;
        }
    }
    return 0;
}

static void protect(int access)
{
    HS_SYS(SYS_mprotect, secret, secret_size, access);
}

/* Makes the strings readable for a moment, for a look that is known of. */
void hs_watch_allow(int allowed)
{
    if (watching)
        protect(allowed ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static void stop(void)
{
    watching = 0;
    HS_SYS(SYS_prctl, DISPATCH, DISPATCH_OFF, 0, 0, 0);
    protect(PROT_READ | PROT_WRITE);
    HS_SYS(SYS_rt_sigaction, SIGSYS, &theirs_call, 0, HS_SET_BYTES);
    HS_SYS(SYS_rt_sigaction, SIGSEGV, &theirs_fault, 0, HS_SET_BYTES);
}

/* The tool is to go on unwatched: the kernel sets its signal stack on return from the handler. Linux 6.12 and newer set it
 * before they leave the handler's stack, and refuse to while on it unless that disarms itself. */
static void give_up(ucontext_t *context)
{
    stop();
    context->uc_stack = theirs_stack;
    failed();
}

static long set_action(int number, const struct hs_action *action, struct hs_action *old)
{
    struct hs_action *theirs = number == SIGSYS ? &theirs_call : number == SIGSEGV ? &theirs_fault : NULL;
    if (!theirs)
        return HS_SYS(SYS_rt_sigaction, number, action, old, HS_SET_BYTES);
    const struct hs_action before = *theirs;
    if (action)
        *theirs = *action;
    if (old)
        *old = before;
    return 0;
}

/* Whether the kernel would take it, whatever the processor's registers need on a stack. */
static int is_plain(const stack_t *stack)
{
    return stack->ss_flags == 0 && stack->ss_size >= 16 * 1024;
}

static void set_stack(const stack_t *stack, stack_t *old)
{
    const stack_t before = theirs_stack;
    if (stack)
        theirs_stack = *stack;
    if (old)
        *old = before;
}

/* Makes a call that depends on no request; whether it is one. */
static int make(long number, const greg_t *regs, long *result)
{
    static const int places[4] = HS_CALL_ARGUMENTS;
    long argument[4];
    for (int i = 0; i < 4; i++)
        argument[i] = regs[places[i]];
    switch (number) {
    case SYS_futex:
        if ((argument[1] & ~FUTEX_PRIVATE_FLAG) != FUTEX_WAKE)
            return 0;
        *result = HS_SYS(SYS_futex, argument[0], argument[1], argument[2], 0);
        return 1;
    case SYS_rt_sigaction:
        if (argument[3] != HS_SET_BYTES)
            return 0;
        *result = set_action((int)argument[0], (const struct hs_action *)argument[1], (struct hs_action *)argument[2]);
        return 1;
    case SYS_sigaltstack:
        if (argument[0] && !is_plain((const stack_t *)argument[0]))
            return 0;
        set_stack((const stack_t *)argument[0], (stack_t *)argument[1]);
        *result = 0;
        return 1;
    default:
        return 0;
    }
}

/* In place of a system call. */
static void on_call(int signal, siginfo_t *info, void *data)
{
    ucontext_t *context = data;
    greg_t *regs = context->uc_mcontext.gregs;
    long result;
    (void)signal;
    (void)info;
    if (make(regs[HS_CALL_NUMBER], regs, &result)) {
        regs[HS_CALL_RESULT] = result;
        return;
    }
    /* It is made again, by the tool itself. */
    regs[HS_CALL_NEXT] -= HS_CALL_BYTES;
    give_up(context);
}

/* At a look at the strings, or a fault of the tool's own; either happens again, unwatched. */
static void on_fault(int signal, siginfo_t *info, void *data)
{
    (void)signal;
    (void)info;
    give_up(data);
}

/* Watches from here on; -1 if the system cannot, and nothing is changed. `failed` is called, from a signal handler, when the
 * watch ends by what the tool does. */
int hs_watch_begin(char *strings, size_t size, hs_watch_failed *when_failed)
{
    const stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack, .ss_flags = (int)AUTODISARM};
    const unsigned long flags = SA_SIGINFO | SA_ONSTACK | HS_RESTORER;
    const struct hs_action call = {(void *)on_call, flags, (void *)restorer, 0};
    const struct hs_action fault = {(void *)on_fault, flags, (void *)restorer, 0};
    secret = strings;
    secret_size = size;
    failed = when_failed;
    if (!text_high)
        dl_iterate_phdr(find_text, NULL);
    if (!text_high)
        return -1;
    HS_SYS(SYS_sigaltstack, &stack, &theirs_stack);
    HS_SYS(SYS_rt_sigaction, SIGSYS, &call, &theirs_call, HS_SET_BYTES);
    HS_SYS(SYS_rt_sigaction, SIGSEGV, &fault, &theirs_fault, HS_SET_BYTES);
    watching = 1;
    protect(PROT_NONE);
    if (HS_SYS(SYS_prctl, DISPATCH, DISPATCH_ON, text_low, text_high - text_low, &selector) == 0)
        return 0;
    hs_watch_end();
    return -1;
}

/* Ends the watch, if it lasts; from outside of its handler. */
void hs_watch_end(void)
{
    if (!watching)
        return;
    stop();
    HS_SYS(SYS_sigaltstack, &theirs_stack, 0);
}

#else

void hs_watch_allow(int allowed)
{
    (void)allowed;
}

#endif
