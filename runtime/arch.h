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

/* What a function that takes up to six words finds when it is called. */
struct hs_arrival {
    uintptr_t kept[6];      /* as in hs_frame */
    uintptr_t stack;
    uint32_t sse, x87;
    uintptr_t arguments[6];
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

/* Notes how it was called, and continues in `work` on another stack, for good. The body of a naked function. */
#define HS_NOTE_ARRIVAL(arrival, stack_top, work) \
    __asm__("endbr64\n\tlea " #arrival "(%rip), %rax\n\t" \
            "mov %rbx, 0(%rax)\n\tmov %rbp, 8(%rax)\n\tmov %r12, 16(%rax)\n\tmov %r13, 24(%rax)\n\t" \
            "mov %r14, 32(%rax)\n\tmov %r15, 40(%rax)\n\tmov %rsp, 48(%rax)\n\t" \
            "stmxcsr 56(%rax)\n\tfnstcw 60(%rax)\n\t" \
            "mov %rdi, 64(%rax)\n\tmov %rsi, 72(%rax)\n\tmov %rdx, 80(%rax)\n\tmov %rcx, 88(%rax)\n\t" \
            "mov %r8, 96(%rax)\n\tmov %r9, 104(%rax)\n\t" \
            "mov " #stack_top "(%rip), %rsp\n\txor %ebp, %ebp\n\tcall " #work "\n\tud2")

/* Calls `function` as it was called when that was noted. */
__attribute__((noreturn)) static inline void hs_arrive(const void *function, const struct hs_arrival *arrival)
{
    register const struct hs_arrival *from __asm__("r11") = arrival;
    register const void *target __asm__("r10") = function;
    __asm__ volatile("ldmxcsr 56(%%r11)\n\tfldcw 60(%%r11)\n\tcld\n\t"
                     "mov 0(%%r11), %%rbx\n\tmov 8(%%r11), %%rbp\n\tmov 16(%%r11), %%r12\n\tmov 24(%%r11), %%r13\n\t"
                     "mov 32(%%r11), %%r14\n\tmov 40(%%r11), %%r15\n\tmov 48(%%r11), %%rsp\n\t"
                     "mov 64(%%r11), %%rdi\n\tmov 72(%%r11), %%rsi\n\tmov 80(%%r11), %%rdx\n\tmov 88(%%r11), %%rcx\n\t"
                     "mov 96(%%r11), %%r8\n\tmov 104(%%r11), %%r9\n\txor %%eax, %%eax\n\t"
                     "jmp *%%r10"
                     :
                     : "r"(from), "r"(target)
                     : "memory");
    __builtin_unreachable();
}

/* A system call as a signal handler finds it that is called in place of it. */
#define HS_CALL_BYTES 2
#define HS_CALL_NUMBER REG_RAX
#define HS_CALL_RESULT REG_RAX
#define HS_CALL_NEXT REG_RIP
#define HS_CALL_ARGUMENTS {REG_RDI, REG_RSI, REG_RDX, REG_R10}

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
