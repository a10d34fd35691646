/* Takes over main.
 *
 * Since glibc 2.34 __libc_start_main calls the executable's own constructors, so main is the place to stop: libc is given `halt` instead.
 * In a fork `halt` jumps into the real main with libc's frame right above it. So a return from main exits, and a backtrace is that of a
 * process that was never stopped.
 *
 * All that this does it does on a stack of its own: what is below main's frame is what the loader has left there, as in any process.
 *
 * In a process that is no zygote, such as a constructor's child that inherits LD_PRELOAD, it does nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime.h"

/* Reading lists of files takes some kilobytes. */
#define STACK_BYTES (256 * 1024ul)

typedef int start_main(hs_main *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

/* libc is given `main`. */
__attribute__((used)) static struct {
    hs_main *main;
    start_main *next;
    struct hs_start start;
} first;

hs_main *hs_real_main;
int hs_first_errno;
uintptr_t hs_stack_free;

static char own_stack[STACK_BYTES] __attribute__((aligned(64)));
static void *const own_stack_top __attribute__((used)) = own_stack + sizeof own_stack;

/* Until a fork has left `stop`, it is empty; then it has the arguments for hs_real_main. */
__attribute__((used)) static struct hs_call wanted;

#if !HS_RESETS
static void apart(void (*work)(void))
{
    hs_call_on(own_stack_top, work);
}
#endif

static void serve(void)
{
    hs_serve(&first.start, &wanted);
}

struct hs_frame hs_frame;
#if HS_RESETS
uintptr_t hs_frame_rest[5];
uint64_t hs_frame_flags;

/* Jumped to in place of main. */
static int note_and_halt(int argc, char **argv, char **envp);

/* When libc calls main, it has main's arguments, and main's address, in other registers as well, and in its own frames above main's. In a
 * zygote these are the zygote's own. Each run has to find what a fresh process would. A zygote's number of arguments is so large that no
 * register has it by chance, and no half of a word. */
enum meaning { OTHER, ARGC, ARGV, ENVP, MAIN };
enum { KEPT = sizeof hs_frame.kept / sizeof *hs_frame.kept, REST = sizeof hs_frame_rest / sizeof *hs_frame_rest };
static enum meaning meanings[KEPT + REST];

/* Words of libc's frames, plain or mangled as libc keeps them in a jmp_buf, and halves of words that are the number of arguments. */
enum { ABOVE_MAX = 64 };
static struct {
    uintptr_t *word;
    enum meaning meaning;
    int is_mangled;
} above[ABOVE_MAX];
static int *halves[ABOVE_MAX];
static size_t above_count, halves_count;

static uintptr_t *noted(size_t which)
{
    return which < KEPT ? &hs_frame.kept[which] : &hs_frame_rest[which - KEPT];
}

static enum meaning meaning_of(uintptr_t word, const struct hs_start *start)
{
    if (word == (uintptr_t)start->argc)
        return ARGC;
    if (word == (uintptr_t)start->argv)
        return ARGV;
    if (word == (uintptr_t)start->envp)
        return ENVP;
    return word == (uintptr_t)note_and_halt ? MAIN : OTHER;
}

/* PTR_MANGLE of glibc (sysdeps/unix/sysv/linux/x86_64/pointer_guard.h). */
enum { TURN = 17, WORD_BITS = 64 };
static uintptr_t guard(void)
{
    uintptr_t word;
    __asm__("mov %%fs:0x30, %0" : "=r"(word));
    return word;
}

static uintptr_t mangled(uintptr_t word)
{
    word ^= guard();
    return word << TURN | word >> (WORD_BITS - TURN);
}

static uintptr_t demangled(uintptr_t word)
{
    return (word >> TURN | word << (WORD_BITS - TURN)) ^ guard();
}

/* What is between main's frame and the number of arguments that the kernel has laid there. */
static void note_above(const struct hs_start *start)
{
    const uintptr_t end = (uintptr_t)(start->argv - 1);
    for (uintptr_t at = hs_frame.stack; at < end; at += sizeof(uintptr_t)) {
        uintptr_t *const word = (uintptr_t *)at;
        const enum meaning plain = meaning_of(*word, start);
        const enum meaning meaning = plain != OTHER ? plain : meaning_of(demangled(*word), start);
        if (meaning != OTHER && above_count < ABOVE_MAX) {
            above[above_count].word = word;
            above[above_count].meaning = meaning;
            above[above_count++].is_mangled = plain == OTHER;
        }
        for (int *half = (int *)at; meaning == OTHER && half < (int *)(word + 1); half++)
            if (*half == start->argc && halves_count < ABOVE_MAX)
                halves[halves_count++] = half;
    }
}

/* A word that cold processes with different numbers of arguments have alike is none of these. */
void hs_frame_is_constant(const uintptr_t *word)
{
    for (size_t i = 0; i < above_count; i++)
        if (above[i].word == word)
            above[i].meaning = OTHER;
    for (size_t i = 0; i < halves_count; i++)
        if (halves[i] >= (const int *)word && halves[i] < (const int *)(word + 1))
            halves[i--] = halves[--halves_count];
}

static void give(uintptr_t *word, enum meaning meaning, const struct hs_call *call)
{
    switch (meaning) {
    case OTHER: break;
    case ARGC: *word = (uintptr_t)call->argc; break;
    case ARGV: *word = (uintptr_t)call->argv; break;
    case ENVP: *word = (uintptr_t)call->envp; break;
    case MAIN: *word = (uintptr_t)hs_real_main; break;
    }
}

void hs_frame_give(const struct hs_call *call)
{
#ifndef HS_WITHOUT_KEPT
    for (size_t i = 0; i < KEPT + REST; i++)
        give(noted(i), meanings[i], call);
#endif
#ifndef HS_WITHOUT_ABOVE
    for (size_t i = 0; i < above_count; i++) {
        give(above[i].word, above[i].meaning, call);
        if (above[i].is_mangled && above[i].meaning != OTHER)
            *above[i].word = mangled(*above[i].word);
    }
    for (size_t i = 0; i < halves_count; i++)
        *halves[i] = call->argc;
#endif
}

/* Runs on a stack of its own. */
__attribute__((used)) static void stop(int argc, char **argv, char **envp)
{
    first.start = (struct hs_start){argc, argv, envp};
    for (size_t i = 0; i < KEPT + REST; i++)
        meanings[i] = meaning_of(*noted(i), &first.start);
    note_above(&first.start);
    hs_stack_free = hs_frame.stack;
    hs_first_errno = errno;
    serve();
    hs_frame_give(&wanted);
    errno = hs_first_errno;
}

/* Leaves nothing on the tool's stack, where main may read what was there before. */
__attribute__((naked, used)) static int halt(int argc __attribute__((unused)),
                                             char **argv __attribute__((unused)),
                                             char **envp __attribute__((unused)))
{
    HS_CALL_BEFORE_MAIN(stop, own_stack_top, hs_frame, wanted, hs_real_main);
}

/* Whether the processor's extended state is in hs_frame. */
char hs_extended_known;

/* Saves the registers with which libc calls main, for a worker that enters it again, and jumps to `halt` without a frame. */
__attribute__((naked)) static int note_and_halt(int argc __attribute__((unused)),
                                                char **argv __attribute__((unused)),
                                                char **envp __attribute__((unused)))
{
    HS_NOTE_FRAME(hs_frame, halt);
}
#else
/* Nothing is given here. */
void hs_frame_is_constant(const uintptr_t *word)
{
    (void)word;
}

static __attribute__((noinline)) void stop(int argc, char **argv, char **envp)
{
    first.start = (struct hs_start){argc, argv, envp};
    /* Here the lowest words of a frame are those that this address leads to. */
    hs_stack_free = (uintptr_t)__builtin_frame_address(0);
    hs_first_errno = errno;
    apart(serve);
    errno = hs_first_errno;
}

/* Kept free of locals, so that the last call is a jump and leaves no frame. */
__attribute__((used)) static int halt(int argc, char **argv, char **envp)
{
    stop(argc, argv, envp);
    return hs_real_main(wanted.argc, wanted.argv, wanted.envp);
}

/* There are no workers: main's stack is noted for an observer, and for what is cleared below it. */
int note_and_halt(int argc, char **argv, char **envp);
HS_NOTE_STACK(note_and_halt, halt);
#endif

int hs_is_zygote(void)
{
    int type = 0;
    socklen_t size = sizeof type;
    /* By an instruction of its own: an observer allows it to no other. */
    return HS_SYS(SYS_getsockopt, HS_CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static void prepare(void)
{
    int saved = errno;
    first.main = hs_is_zygote() ? note_and_halt : hs_real_main;
    if (first.main == note_and_halt && hs_python_is_wanted()) {
        first.main = hs_real_main;
        /* The interpreter asks for the time before it halts, and is observed there. */
        hs_vdso_show();
        hs_python_begin(first.start.argc, first.start.argv, first.start.envp);
    }
#if HS_RESETS
    hs_extended_known = (char)hs_extended_fits();
#endif
    errno = saved;
    first.next = (start_main *)dlsym(RTLD_NEXT, "__libc_start_main");
}

#if HS_RESETS
__attribute__((used)) static void begin(hs_main *main, int argc, char **argv)
{
    hs_real_main = main;
    first.start = (struct hs_start){argc, argv, argv + argc + 1};
    prepare();
}

/* Jumps to libc's function, as the executable's constructors may read what their stack and vector registers had before. */
_Static_assert(__builtin_offsetof(__typeof__(first), next) == 8, "as the instructions have it");
__attribute__((naked)) HS_EXPORT int __libc_start_main(hs_main *main __attribute__((unused)), int argc __attribute__((unused)),
                                                       char **argv __attribute__((unused)), void (*init)(void) __attribute__((unused)),
                                                       void (*fini)(void) __attribute__((unused)),
                                                       void (*rtld_fini)(void) __attribute__((unused)),
                                                       void *stack_end __attribute__((unused)))
{
    __asm__("mov %rsp, %rax\n\tmov own_stack_top(%rip), %rsp\n\tpush %rax\n\tpush %rax\n\tpush %rdi\n\tpush %rsi\n\tpush %rdx\n\t"
            "push %rcx\n\tpush %r8\n\tpush %r9\n\t" HS_WITH_VECTORS("call begin")
            "pop %r9\n\tpop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n\tpop %rax\n\tpop %rsp\n\t"
            "mov first(%rip), %rdi\n\tjmp *first+8(%rip)");
}
#else
HS_EXPORT int __libc_start_main(hs_main *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                                void (*rtld_fini)(void), void *stack_end)
{
    hs_real_main = main;
    first.start = (struct hs_start){argc, argv, argv + argc + 1};
    apart(prepare);
    return first.next(first.main, argc, argv, init, fini, rtld_fini, stack_end);
}
#endif
