/* Tells whether a thread runs on a stack of libc's making, with room below it.
 *
 * The gate needs some kilobytes of the stack on which a system call is made, which the call alone would not. On a signal stack, or one
 * that the tool has made for a coroutine, it may write beyond the end. A thread's own stack has a page there that cannot be written.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <signal.h>
#include <sys/auxv.h>

#include "runtime.h"

#if HS_RESETS

#define THREADS 256
/* What the functions of the gate take, beside the frame of a signal. */
#define OWN_ROOM (4 * 1024ul)
/* The largest frame without the tiles of AMX, where the kernel does not tell (Linux 5.14). */
#define FRAME_BYTES 4096ul
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
/* Nothing else lies as close below the first thread's stack: the kernel places the first mapping below this gap at least. */
#define FIRST_MAX (64ul << 20)

struct stack {
    void *thread; /* its pointer; NULL if the place is free */
    uintptr_t low, high;
};

/* Stacks of threads by a hash of their pointer, from there on. Any thread adds to them in a run. */
static struct {
    void *first; /* the first thread's pointer */
    struct stack known[THREADS];
    int is_used;
    uintptr_t room; /* that a call needs below the stack pointer */
    uintptr_t deepest; /* the lowest place on the first thread's stack where the gate has worked in this run */
} stacks;

static uint32_t place_of(void *thread)
{
    const uintptr_t number = (uintptr_t)thread;
    return (uint32_t)(number >> 6 ^ number >> 12 ^ number >> 20) % THREADS;
}

/* Bytes of the kernel's largest frame that this process never gets: room for the tiles of AMX, which a process has to ask for
 * (ARCH_REQ_XCOMP_PERM). The gate knows no such call. They are the last part of the extended state. */
static unsigned long tiles(void)
{
#if defined(__x86_64__)
    enum { EXTENDED_STATE = 0xd, TILES = 18, GET_PERMITTED = 0x1022 }; /* arch_prctl(2); Intel's manual, volume 1, chapter 13 */
    uint64_t permitted = 0;
    unsigned all, size, offset, unused;
    if (HS_SYS(SYS_arch_prctl, GET_PERMITTED, &permitted) != 0 || permitted & 1ull << TILES)
        return 0;
    __cpuid_count(EXTENDED_STATE, 0, unused, all, unused, unused);
    __cpuid_count(EXTENDED_STATE, TILES, size, offset, unused, unused);
    return offset + size == all ? size : 0;
#else
    return 0;
#endif
}

/* Before each run. */
void hs_stacks_begin(void)
{
    stacks.first = __builtin_thread_pointer();
    stacks.deepest = UINTPTR_MAX;
    if (stacks.is_used)
        hs_zero((uintptr_t)stacks.known, (uintptr_t)(stacks.known + THREADS));
    stacks.is_used = 0;
    /* Once: in a dry run the auxiliary vector may be hidden. */
    if (!stacks.room) {
        const unsigned long frame = getauxval(AT_MINSIGSTKSZ);
        stacks.room = (frame ? frame - tiles() : FRAME_BYTES) + OWN_ROOM;
    }
}

/* A thread is made on this stack. A pointer is used again when its thread has ended. */
void hs_stacks_note(void *thread, uintptr_t low, uintptr_t high)
{
    stacks.is_used = 1;
    for (uint32_t i = 0; i < THREADS; i++) {
        struct stack *at = &stacks.known[(place_of(thread) + i) % THREADS];
        void *none = NULL;
        if (at->thread != thread && !__atomic_compare_exchange_n(&at->thread, &none, thread, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        at->low = low;
        __atomic_store_n(&at->high, high, __ATOMIC_RELEASE);
        return;
    }
}

/* The lowest address of the thread's own stack, if a pointer is there; 0 if it is elsewhere. */
static uintptr_t low_of(void *thread, uintptr_t pointer)
{
    if (thread == stacks.first)
        return pointer <= hs_frame.stack && hs_frame.stack - pointer < FIRST_MAX ? hs_frame.stack - FIRST_MAX : 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        const struct stack *at = &stacks.known[(place_of(thread) + i) % THREADS];
        if (!at->thread)
            return 0;
        if (at->thread == thread)
            return pointer <= __atomic_load_n(&at->high, __ATOMIC_ACQUIRE) && pointer >= at->low ? at->low : 0;
    }
    return 0;
}

/* The lowest address of the thread's signal stack, if a pointer is there. */
static uintptr_t low_of_signals(uintptr_t pointer)
{
    stack_t stack;
    if (HS_SYS(SYS_sigaltstack, 0, &stack) != 0 || stack.ss_flags & SS_DISABLE)
        return 0;
    const uintptr_t low = (uintptr_t)stack.ss_sp;
    return pointer >= low && pointer - low <= stack.ss_size ? low : 0;
}

/* Notes that the gate works on the stack of this function. */
void hs_stacks_note_depth(void)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0) - OWN_ROOM;
    if (here < stacks.deepest && here <= hs_frame.stack && hs_frame.stack - here < FIRST_MAX)
        stacks.deepest = here;
}

/* Whether the gate's frames may have changed the memory that begins at `from`, however long that is. `number` is that of the call, and
 * `stack` the tool's stack pointer there. The frames of this call have overwritten memory below that and the red zone. They, or earlier
 * ones in this run, may have grown the first thread's stack: not within the 128 KiB that the kernel maps below the tool's strings in any
 * case (setup_arg_pages in fs/exec.c). The pointers to the strings may take half of these. */
int hs_stacks_have_used(uintptr_t from, uintptr_t stack, long number)
{
    enum { RED_ZONE = 128, FRAMES_MAX = 1 << 16, MAPPED = 1 << 16 };
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0), below = stack - RED_ZONE;
    const uintptr_t grown = hs_frame.stack - MAPPED;
    /* A tool may have moved its stack pointer past memory that it has not touched. */
    if (stacks.deepest < grown && from < grown && grown - from < FIRST_MAX)
        return 1;
    /* These tell nothing of contents; libc gives up the stack of a thread that ends. */
    if (number == SYS_msync || number == SYS_madvise || stack - here > FRAMES_MAX || from >= below)
        return 0;
    const uintptr_t own = low_of(__builtin_thread_pointer(), stack), low = own ? own : low_of_signals(stack);
    return from >= low;
}

/* Whether the calling thread, whose stack pointer is `pointer`, has room on its own stack, or on its signal stack. */
int hs_stacks_have_room(uintptr_t pointer)
{
#ifdef HS_WITHOUT_STACKS
    return 1;
#endif
    void *const thread = __builtin_thread_pointer();
    uintptr_t low = low_of(thread, pointer);
    /* The first thread's own stack grows. */
    if (low && thread == stacks.first)
        return 1;
    if (!low || pointer - low < stacks.room)
        low = low_of_signals(pointer);
    return low && pointer - low >= stacks.room;
}

#endif
