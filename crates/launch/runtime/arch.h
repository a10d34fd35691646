/* The parts that differ between processors: the order of clone's arguments, relocation types, and for resets the registers, stacks
 * and jumps.
 *
 * HS_RESETS is 1 if resets are implemented for this processor.
 */
#ifndef HOTSTART_ARCH_H
#define HOTSTART_ARCH_H

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Room for the extended state of every processor of today, with the 8 KiB of AMX's tiles. */
#define HS_EXTENDED_BYTES (16 * 1024)

/* The registers with which libc calls main, but for its arguments. */
struct hs_frame {
    uintptr_t kept[6]; /* the registers that a function must preserve */
    uintptr_t stack;   /* where the return address lies */
    uintptr_t unused;
    /* x87, SSE, AVX, protection keys and whatever else XSAVE knows. */
    unsigned char extended[HS_EXTENDED_BYTES] __attribute__((aligned(64)));
};

/* All registers at one instruction of the tool. */
struct hs_arrival {
    uint64_t general[16]; /* rax, rbx, rcx, rdx, rsi, rdi, rbp, r8 to r15, rsp */
    uint64_t flags;
    uintptr_t place;
    unsigned char extended[HS_EXTENDED_BYTES] __attribute__((aligned(64)));
};
enum { HS_RSP = 15 };
/* Flags as at a call, and the one that says that a fault's instruction is to be made again. */
#define HS_FLAGS_PLAIN 0x202
#define HS_FLAG_RESUME 0x10000ul

/* A system call that was made elsewhere: its number, which the result replaces, and its arguments. The order is that in
 * which hs_gate_entry (gate.c) stores them. */
struct hs_system_call {
    long number, a, b, c, d, e, f;
};

#if defined(__x86_64__)
#define HS_RESETS 1
/* An observer wants the frame pointer of main's caller on aarch64 only. */
#define HS_CALLER_FRAME 0ul
/* How far behind its record of the list of arguments libc has that of their number. GCC lays a file's variables in reverse order. */
#define HS_LIBC_NUMBER 8
#define HS_JUMP_SLOT R_X86_64_JUMP_SLOT
static inline long hs_clone(unsigned long flags, int *parent_tid, int *child_tid)
{
    return syscall(SYS_clone, flags, 0L, parent_tid, child_tid, 0L);
}

/* Clones the process, and ends it. Returns in the clone, or with -errno. The two may share memory and stack: the old one touches neither
 * any more. */
static inline long hs_hand_over(unsigned long flags, volatile int *parent_tid, int *child_tid)
{
    register long r10 __asm__("r10") = (long)child_tid, r8 __asm__("r8") = 0;
    long result;
    __asm__ volatile("syscall\n\ttest %%rax, %%rax\n\tjle 2f\n\txor %%edi, %%edi\n1:\tmov %[end], %%eax\n\tsyscall\n\tjmp 1b\n2:"
                     : "=a"(result)
                     : "a"((long)SYS_clone), "D"(flags), "S"(0l), "d"(parent_tid), "r"(r10), "r"(r8), [end] "i"(SYS_exit_group)
                     : "rcx", "r11", "cc", "memory");
    return result;
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

/* Continues in `work` on another stack, for good. Flags that the tool may have left set (direction, alignment checks) are
 * cleared: no compiled code expects them. */
__attribute__((noreturn)) static inline void hs_switch_stack(void *top, void (*work)(void))
{
    __asm__ volatile("mov %0, %%rsp\n\tpush $0x202\n\tpopfq\n\txor %%ebp, %%ebp\n\tcall *%1\n\tud2"
                     :
                     : "r"(top), "r"(work)
                     : "memory");
    __builtin_unreachable();
}

/* Calls `work` on another stack, so that it leaves nothing on this one. */
static inline void hs_call_on(void *top, void (*work)(void))
{
    __asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tcall *%1\n\tmov %%rbx, %%rsp"
                     : "+r"(top), "+r"(work)
                     :
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
                       "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
                       "cc", "memory");
}

/* Does `work`, and leaves the vector registers as they were. Their upper halves are not saved: libc's functions leave them zero. The stack
 * has to be aligned to 16 bytes. */
#define HS_WITH_VECTORS(work) \
    "sub $512, %rsp\n\tfxsave64 (%rsp)\n\t" work "\n\tfxrstor64 (%rsp)\n\tadd $512, %rsp\n\t"

#ifdef HS_WITHOUT_EXTENDED
#define HS_LOAD_EXTENDED(base, offset) ""
#else
#define HS_LOAD_EXTENDED(base, offset) "mov $-1, %%eax\n\tmov $-1, %%edx\n\txrstor64 " #offset "(%%" #base ")\n\t"
#endif

/* The registers with which libc calls main that a function need not keep, but for main's arguments, and its address in rax: rcx, r8 to
 * r11. A main with more than three parameters reads them. And the flags. */
extern uintptr_t hs_frame_rest[5] __attribute__((visibility("hidden")));
extern uint64_t hs_frame_flags __attribute__((visibility("hidden")));
/* Uses rax and rcx, so it follows HS_NOTE_REST. The flags are not pushed: nothing may be left on the stack. */
#define HS_NOTE_FLAGS \
    "lahf\n\tseto %al\n\tmovzbl %ah, %ecx\n\tmovzbl %al, %eax\n\tshl $11, %eax\n\tor %ecx, %eax\n\tor $0x202, %eax\n\t" \
    "mov %rax, hs_frame_flags(%rip)\n\t"
#define HS_NOTE_REST \
    "mov %rcx, hs_frame_rest(%rip)\n\tmov %r8, hs_frame_rest+8(%rip)\n\tmov %r9, hs_frame_rest+16(%rip)\n\t" \
    "mov %r10, hs_frame_rest+24(%rip)\n\tmov %r11, hs_frame_rest+32(%rip)\n\t"
#define HS_REST(sign) \
    "mov hs_frame_rest(" sign "rip), " sign "rcx\n\tmov hs_frame_rest+8(" sign "rip), " sign "r8\n\t" \
    "mov hs_frame_rest+16(" sign "rip), " sign "r9\n\tmov hs_frame_rest+24(" sign "rip), " sign "r10\n\t" \
    "mov hs_frame_rest+32(" sign "rip), " sign "r11\n\t"
#define HS_LOAD_REST HS_REST("%%")

/* Calls main as libc called it: same registers, same flags, same stack, same return address. */
__attribute__((noreturn)) static inline void hs_enter(int (*main)(int, char **, char **), int argc, char **argv,
                                                      char **envp, const struct hs_frame *frame)
{
    register const struct hs_frame *from __asm__("r8") = frame;
    register void *target __asm__("r9") = (void *)main;
    register char **environment __asm__("r10") = envp;
    __asm__ volatile("pushq hs_frame_flags(%%rip)\n\tpopfq\n\t" HS_LOAD_EXTENDED(r8, 64)
                     "mov 0(%%r8), %%rbx\n\tmov 8(%%r8), %%rbp\n\tmov 16(%%r8), %%r12\n\tmov 24(%%r8), %%r13\n\t"
                     "mov 32(%%r8), %%r14\n\tmov 40(%%r8), %%r15\n\tmov 48(%%r8), %%rsp\n\t"
                     "mov %%r10, %%rdx\n\tmov %%r9, %%rax\n\t" HS_LOAD_REST "jmp *%%rax"
                     :
                     : "r"(from), "r"(target), "D"((long)argc), "S"(argv), "r"(environment)
                     : "memory", "rax", "rdx");
    __builtin_unreachable();
}

/* Notes the registers with which libc calls main in `frame`, and jumps to `next`. The body of a naked function. */
#define HS_NOTE_FRAME(frame, next) \
    __asm__("endbr64\n\t" HS_NOTE_REST HS_NOTE_FLAGS "lea " #frame "(%rip), %r8\n\t" \
            "mov %rbx, 0(%r8)\n\tmov %rbp, 8(%r8)\n\tmov %r12, 16(%r8)\n\tmov %r13, 24(%r8)\n\t" \
            "mov %r14, 32(%r8)\n\tmov %r15, 40(%r8)\n\tmov %rsp, 48(%r8)\n\t" \
            "cmpb $0, hs_extended_known(%rip)\n\tje 1f\n\t" \
            "mov %rdx, %r9\n\tmov $-1, %eax\n\tmov $-1, %edx\n\txsave64 64(%r8)\n\tmov %r9, %rdx\n" \
            "1:\n\tjmp " #next)

/* Calls `work` on another stack, with main's arguments, and then jumps to main as libc would have called it, with the arguments of `call`
 * and the registers of `frame`. The body of a naked function. */
#define HS_CALL_BEFORE_MAIN(work, stack_top, frame, call, main) \
    __asm__("mov " #stack_top "(%rip), %rsp\n\tcall " #work "\n\tpushq hs_frame_flags(%rip)\n\tpopfq\n\t" \
            "mov " #frame "(%rip), %rbx\n\tmov " #frame "+8(%rip), %rbp\n\tmov " #frame "+16(%rip), %r12\n\t" \
            "mov " #frame "+24(%rip), %r13\n\tmov " #frame "+32(%rip), %r14\n\tmov " #frame "+40(%rip), %r15\n\t" \
            "mov " #frame "+48(%rip), %rsp\n\t" \
            "mov " #call "(%rip), %edi\n\tmov " #call "+8(%rip), %rsi\n\tmov " #call "+16(%rip), %rdx\n\t" \
            "mov " #main "(%rip), %rax\n\t" HS_REST("%") "jmp *%rax")

/* Notes the general registers but for flags and place, and jumps to `next`. The body of a naked function. */
#define HS_NOTE_GENERAL(arrival, next) \
    __asm__("mov %rax, " #arrival "(%rip)\n\tmov %rbx, " #arrival "+8(%rip)\n\tmov %rcx, " #arrival "+16(%rip)\n\t" \
            "mov %rdx, " #arrival "+24(%rip)\n\tmov %rsi, " #arrival "+32(%rip)\n\tmov %rdi, " #arrival "+40(%rip)\n\t" \
            "mov %rbp, " #arrival "+48(%rip)\n\tmov %r8, " #arrival "+56(%rip)\n\tmov %r9, " #arrival "+64(%rip)\n\t" \
            "mov %r10, " #arrival "+72(%rip)\n\tmov %r11, " #arrival "+80(%rip)\n\tmov %r12, " #arrival "+88(%rip)\n\t" \
            "mov %r13, " #arrival "+96(%rip)\n\tmov %r14, " #arrival "+104(%rip)\n\tmov %r15, " #arrival "+112(%rip)\n\t" \
            "mov %rsp, " #arrival "+120(%rip)\n\tjmp " #next)

/* Notes the extended state, and continues in `work` on another stack, for good. The body of a naked function. */
#define HS_NOTE_EXTENDED(arrival, stack_top, work) \
    __asm__("lea " #arrival "(%rip), %rbx\n\tmov $-1, %eax\n\tmov $-1, %edx\n\txsave64 192(%rbx)\n\t" \
            "mov " #stack_top "(%rip), %rsp\n\tpush $0x202\n\tpopfq\n\txor %ebp, %ebp\n\tcall " #work "\n\tud2")

/* Goes on with the registers that were noted. `place` is a variable of its own, as no register is left to jump by. */
__attribute__((noreturn)) static inline void hs_arrive(const struct hs_arrival *arrival, uintptr_t *place)
{
    register const struct hs_arrival *from __asm__("r11") = arrival;
    _Static_assert(__builtin_offsetof(struct hs_arrival, extended) == 192, "as HS_NOTE_EXTENDED has it");
    _Static_assert(__builtin_offsetof(struct hs_frame, extended) == 64, "as HS_NOTE_FRAME has it");
    *place = arrival->place;
    __asm__ volatile(HS_LOAD_EXTENDED(r11, 192)
                     "pushq 128(%%r11)\n\tpopfq\n\t"
                     "mov 0(%%r11), %%rax\n\tmov 8(%%r11), %%rbx\n\tmov 16(%%r11), %%rcx\n\tmov 24(%%r11), %%rdx\n\t"
                     "mov 32(%%r11), %%rsi\n\tmov 40(%%r11), %%rdi\n\tmov 48(%%r11), %%rbp\n\tmov 56(%%r11), %%r8\n\t"
                     "mov 64(%%r11), %%r9\n\tmov 72(%%r11), %%r10\n\tmov 88(%%r11), %%r12\n\tmov 96(%%r11), %%r13\n\t"
                     "mov 104(%%r11), %%r14\n\tmov 112(%%r11), %%r15\n\tmov 120(%%r11), %%rsp\n\t"
                     "mov 80(%%r11), %%r11\n\tjmp *%1"
                     :
                     : "r"(from), "m"(*place)
                     : "memory");
    __builtin_unreachable();
}

/* Whether the processor and the kernel have XSAVE, and its state fits: then HS_NOTE_FRAME keeps it. */
static inline int hs_extended_fits(void)
{
    unsigned a, b, c, d;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1), "c"(0));
    if (!(c & 1u << 27))
        return 0;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0xd), "c"(0));
    return b <= HS_EXTENDED_BYTES;
}

/* Segment selectors, and the bases that instructions can set where the kernel lets them (FSGSBASE). */
struct hs_segments {
    uint16_t ds, es, fs, gs;
    uintptr_t fs_base, gs_base;
};

static inline void hs_segments_read(struct hs_segments *out, int bases)
{
    __asm__ volatile("mov %%ds, %0" : "=r"(out->ds));
    __asm__ volatile("mov %%es, %0" : "=r"(out->es));
    __asm__ volatile("mov %%fs, %0" : "=r"(out->fs));
    __asm__ volatile("mov %%gs, %0" : "=r"(out->gs));
    out->fs_base = out->gs_base = 0;
    if (bases) {
        __asm__ volatile("rdfsbase %0" : "=r"(out->fs_base));
        __asm__ volatile("rdgsbase %0" : "=r"(out->gs_base));
    }
}

/* Loading a selector changes the base, so that both are written. */
static inline void hs_segments_write(const struct hs_segments *from, int bases)
{
    struct hs_segments now;
    hs_segments_read(&now, bases);
    if (now.ds != from->ds)
        __asm__ volatile("mov %0, %%ds" : : "r"(from->ds));
    if (now.es != from->es)
        __asm__ volatile("mov %0, %%es" : : "r"(from->es));
    if (now.gs != from->gs)
        __asm__ volatile("mov %0, %%gs" : : "r"(from->gs));
    if (bases && (now.gs != from->gs || now.gs_base != from->gs_base))
        __asm__ volatile("wrgsbase %0" : : "r"(from->gs_base));
    if (now.fs != from->fs)
        __asm__ volatile("mov %0, %%fs" : : "r"(from->fs));
    if (bases && (now.fs != from->fs || now.fs_base != from->fs_base))
        __asm__ volatile("wrfsbase %0" : : "r"(from->fs_base));
}

/* Whether the processor checks return addresses against a stack of its own, which could not be restored. */
static inline int hs_shadow_stack(void)
{
    unsigned long pointer = 0;
    __asm__ volatile("rdsspq %0" : "+r"(pointer));
    return pointer != 0;
}

#elif defined(__aarch64__)
#define HS_RESETS 0
#define HS_CALLER_FRAME (hs_frame.kept[0])
/* As on x86-64; but here GCC lays them in their own order (-fsection-anchors). */
#define HS_LIBC_NUMBER (-8)
#define HS_JUMP_SLOT R_AARCH64_JUMP_SLOT
static inline long hs_clone(unsigned long flags, int *parent_tid, int *child_tid)
{
    return syscall(SYS_clone, flags, 0L, parent_tid, 0L, child_tid);
}

/* A system call that leaves errno alone: -errno is the result. */
static inline long hs_sys6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

/* Calls `work` on another stack, so that it leaves nothing on this one. */
static inline void hs_call_on(void *top, void (*work)(void))
{
    __asm__ volatile("mov x19, sp\n\tmov sp, %0\n\tblr %1\n\tmov sp, x19"
                     : "+r"(top), "+r"(work)
                     :
                     : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
                       "x17", "x18", "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
                       "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
                       "v28", "v29", "v30", "v31", "cc", "memory");
}

/* Defines a function that notes in hs_frame where main's stack begins, and its caller's frame pointer, and jumps to `next`. GCC has no
 * naked functions here. The first instruction is one to which an indirect call may lead (BTI). */
#define HS_NOTE_STACK(name, next) \
    _Static_assert(__builtin_offsetof(struct hs_frame, stack) == 48, "as the instructions have it"); \
    __asm__(".pushsection .text\n\t.balign 4\n\t.type " #name ", %function\n" #name ":\n\t" \
            "hint #34\n\tadrp x9, hs_frame\n\tadd x9, x9, :lo12:hs_frame\n\t" \
            "mov x10, sp\n\tstr x10, [x9, #48]\n\tstr x29, [x9]\n\tb " #next "\n\t.popsection")
#else
#error "hotstart's runtime knows x86-64 and aarch64 only"
#endif

#define HS_SYS(...) HS_SYS_(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define HS_SYS_(n, a, b, c, d, e, f, ...) \
    hs_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#endif
