/* Cancels threads that wait in a call which the runtime makes.
 *
 * Since glibc 2.41 a waiting thread is cancelled only if the signal finds it at one system call of libc's. That one is not patched: it
 * comes to the gate by SIGSYS. A thread for which the runtime makes the call, as it does with `accept`, would wait for ever. So libc's
 * handler finds it where it made the call. If the thread is not cancelled, it makes the call once more. Such a run is doubtful.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <string.h>
#include <ucontext.h>

#include "runtime.h"

#if HS_RESETS

/* Bytes of stack that the gate may use for a call. */
#define FRAMES_MAX (32 * 1024ul)

/* Finds the frame by which the gate was called, above `from` on this thread's stack; returns whether there is one. */
static int find_call(uintptr_t from, ucontext_t *frame)
{
    for (uintptr_t at = (from + 7) & -8ul; at < from + FRAMES_MAX; at += sizeof(uintptr_t)) {
        uintptr_t word;
        if (!hs_signals_fetch(&word, (long)at, sizeof word))
            return 0;
        if (word == (uintptr_t)hs_gate_restorer)
            return hs_signals_fetch(frame, (long)(at + sizeof word), sizeof *frame);
    }
    return 0;
}

/* `context` is the frame of libc's handler, which has found the thread in the runtime. */
void hs_cancel_show_call(void *context)
{
    /* mov %r11, 8(%rsp); syscall; ret */
    static const unsigned char code[] = {0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05, 0xc3};
    greg_t *const regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    ucontext_t frame;
    if (!find_call((uintptr_t)regs[REG_RSP], &frame))
        return;
    const uintptr_t from = (uintptr_t)frame.uc_mcontext.gregs[REG_RIP] + 1 - sizeof code;
    if (!hs_gate_is_libcs(from, sizeof code) || memcmp((const void *)from, code, sizeof code) != 0)
        return;
    memcpy(regs, frame.uc_mcontext.gregs, sizeof frame.uc_mcontext.gregs);
    regs[REG_RIP] -= 2;
}

#endif
