/* What differs between processors: the order of clone's arguments, relocation types, and for rewinding the registers,
 * stacks and jumps.
 *
 * HS_REWIND says whether this processor's part of rewinding is written.
 */
#ifndef HOTSTART_ARCH_H
#define HOTSTART_ARCH_H

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What main finds in registers when libc calls it, but for its arguments. */
struct hs_frame {
    uintptr_t kept[6]; /* the registers that a function must give back */
    uintptr_t stack;   /* where the return address lies */
    uint32_t sse, x87; /* modes of arithmetic */
};

#if defined(__x86_64__)
#define HS_REWIND 1
#define HS_JUMP_SLOT R_X86_64_JUMP_SLOT
static inline long hs_clone(unsigned long flags, int *parent_tid, int *child_tid)
{
    return syscall(SYS_clone, flags, 0L, parent_tid, child_tid, 0L);
}

/* A system call that leaves errno alone: -errno is the result. */
static inline long hs_sys6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Continues in `work` on another stack, for good. */
__attribute__((noreturn)) static inline void hs_switch_stack(void *top, void (*work)(void))
{
    __asm__ volatile("mov %0, %%rsp\n\txor %%ebp, %%ebp\n\tcall *%1\n\tud2" : : "r"(top), "r"(work) : "memory");
    __builtin_unreachable();
}

/* Calls main as libc called it: same registers, same stack, same return address. */
__attribute__((noreturn)) static inline void hs_enter(int (*main)(int, char **, char **), int argc, char **argv,
                                                      char **envp, const struct hs_frame *frame)
{
    register const struct hs_frame *from __asm__("r8") = frame;
    register void *target __asm__("r9") = (void *)main;
    __asm__ volatile("ldmxcsr 56(%%r8)\n\tfldcw 60(%%r8)\n\tcld\n\t"
                     "mov 0(%%r8), %%rbx\n\tmov 8(%%r8), %%rbp\n\tmov 16(%%r8), %%r12\n\tmov 24(%%r8), %%r13\n\t"
                     "mov 32(%%r8), %%r14\n\tmov 40(%%r8), %%r15\n\tmov 48(%%r8), %%rsp\n\txor %%eax, %%eax\n\t"
                     "jmp *%%r9"
                     :
                     : "r"(from), "r"(target), "D"((long)argc), "S"(argv), "d"(envp)
                     : "memory");
    __builtin_unreachable();
}

/* Whether the processor checks return addresses against a stack of its own, which could not be put back. */
static inline int hs_shadow_stack(void)
{
    unsigned long pointer = 0;
    __asm__ volatile("rdsspq %0" : "+r"(pointer));
    return pointer != 0;
}

/* Length of a jump that can replace the beginning of a function, and the jump itself. */
#define HS_JUMP_LENGTH 14
static inline void hs_write_jump(unsigned char *at, const void *to)
{
    static const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
    memcpy(at, jump, sizeof jump);
    memcpy(at + sizeof jump, &to, sizeof to);
}

#elif defined(__aarch64__)
#define HS_REWIND 0
#define HS_JUMP_SLOT R_AARCH64_JUMP_SLOT
static inline long hs_clone(unsigned long flags, int *parent_tid, int *child_tid)
{
    return syscall(SYS_clone, flags, 0L, parent_tid, 0L, child_tid);
}
#else
#error "hotstart's runtime knows x86-64 and aarch64 only"
#endif

#define HS_SYS(...) HS_SYS_(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define HS_SYS_(n, a, b, c, d, e, f, ...) \
    hs_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#endif
