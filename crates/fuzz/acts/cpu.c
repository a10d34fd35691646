/* What the processor keeps: x87 and SSE control words, flags, segment bases and selectors, permissions. */
#include "act.h"
#include <sys/io.h>

#undef FAMILY
#define FAMILY "cpu"

#if defined(__x86_64__)
#include <asm/ldt.h>
#include <asm/prctl.h>

struct x87 {
    uint16_t control, reserved0, status, reserved1, tags, reserved2;
    uint32_t rest[4];
};

/* fnstenv masks all exceptions: they are loaded again. */
static struct x87 x87_state(void)
{
    struct x87 now;
    __asm__ volatile("fnstenv %0\n\tfldenv %0" : "=m"(now) : : "memory");
    return now;
}

DISTURB(x87_control)
{
    const uint16_t single = 0x007f;
    __asm__ volatile("fldcw %0" : : "m"(single));
    say("%x", x87_state().control);
}

DISTURB(x87_stack)
{
    __asm__ volatile("fld1\n\tfldpi\n\tfldz");
    say("%x", x87_state().tags);
}

static void fill_x87(void)
{
    __asm__ volatile("fld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1");
    say("%x", x87_state().tags);
}

DISTURB(x87_stack_full)
{
    fill_x87();
}

DISTURB(x87_status)
{
    __asm__ volatile("fld1\n\tfldz\n\tfdivrp\n\tfstp %%st(0)" : : : "memory");
    say("%x", x87_state().status & 0x7f);
}

DISTURB(mmx_left)
{
    __asm__ volatile("movq %0, %%mm0" : : "m"((uint64_t){5}) : "memory");
    say("%x", x87_state().tags);
}

OBSERVE(x87_show)
{
    struct x87 now = x87_state();
    say("control %x status %x tags %x", now.control, now.status, now.tags);
}

OBSERVE(x87_calculates)
{
    volatile long double one = 1.0L, three = 3.0L;
    say("%La", one / three);
}

DISTURB(mxcsr_flush)
{
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
    say("%x", __builtin_ia32_stmxcsr() & 0xffc0);
}

DISTURB(mxcsr_round)
{
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x6000);
    say("set");
}

/* Without the flag for inexact results, which anything may raise. */
OBSERVE(mxcsr_show)
{
    say("%x", __builtin_ia32_stmxcsr() & ~0x20u);
}

OBSERVE(sse_denormal)
{
    volatile double small = 4.9e-324, result = small * 1.0;
    say("%d", result != 0);
}

OBSERVE(flags_show)
{
    say("%lx", (unsigned long)__builtin_ia32_readeflags_u64() & 0x40400);
}

OBSERVE(selectors_show)
{
    unsigned ds, es, fs, gs, ss, cs;
    __asm__ volatile("mov %%ds, %0\n\tmov %%es, %1\n\tmov %%fs, %2" : "=r"(ds), "=r"(es), "=r"(fs));
    __asm__ volatile("mov %%gs, %0\n\tmov %%ss, %1\n\tmov %%cs, %2" : "=r"(gs), "=r"(ss), "=r"(cs));
    say("%x %x %x %x %x %x", ds, es, fs, gs, ss, cs);
}

DISTURB(selector_data)
{
    __asm__ volatile("mov %0, %%ds\n\tmov %0, %%es" : : "r"(0x2b));
    say("set");
}

DISTURB(selector_gs)
{
    __asm__ volatile("mov %0, %%gs" : : "r"(0x2b));
    say("set");
}

DISTURB(base_gs)
{
    __asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0xae, 0xd8" : : "a"(0x123456000)); /* wrgsbase %rax */
    say("set");
}

DISTURB(base_gs_by_call)
{
    say_result("base", RAW(SYS_arch_prctl, ARCH_SET_GS, 0x7654000));
}

OBSERVE(base_show)
{
    unsigned long gs = 1, fs = 0, self = 0;
    RAW(SYS_arch_prctl, ARCH_GET_GS, &gs);
    RAW(SYS_arch_prctl, ARCH_GET_FS, &fs);
    __asm__("mov %%fs:0, %0" : "=r"(self));
    say("gs %lx fs is thread's %d", gs, fs == self);
}

DISTURB(table_descriptor)
{
    struct user_desc entry = {.entry_number = 0, .base_addr = 0, .limit = 0xfffff, .seg_32bit = 1, .limit_in_pages = 1,
                              .useable = 1};
    say_result("ldt", RAW(SYS_modify_ldt, 1, &entry, sizeof entry));
}

OBSERVE(table_descriptor_show)
{
    static char entries[65536];
    say_result("bytes", (int)RAW(SYS_modify_ldt, 0, entries, sizeof entries));
}

DISTURB(identity_faults)
{
    long got = RAW(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    say("%d", got == 0 || got == -ENODEV);
}

static void ask_identity(void)
{
    unsigned a = 0, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
}

OBSERVE(identity_probe)
{
    say("%d", probe_call(ask_identity));
}

static void ask_clock(void)
{
    (void)__builtin_ia32_rdtsc();
}

OBSERVE(clock_probe)
{
    say("%d", probe_call(ask_clock));
}

DISTURB(port_allowed)
{
    say_result("ioperm", ioperm(0x80, 1, 1));
}

DISTURB(port_allowed_by_call)
{
    say_result("iopl", RAW(SYS_iopl, 3));
}

static void ask_port(void)
{
    (void)inb(0x80);
}

OBSERVE(port_probe)
{
    say("%d", probe_call(ask_port));
}

static void touch_unaligned(void)
{
    static volatile char bytes[16];
    (void)*(volatile long *)(bytes + 1);
}

OBSERVE(alignment_probe)
{
    say("%d", probe_call(touch_unaligned));
}

static void check_alignment(void)
{
    __asm__ volatile("pushfq\n\torl $0x40000, (%%rsp)\n\tpopfq" : : : "memory", "cc");
    touch_unaligned();
}

MIXED(alignment_checked)
{
    say("%d", probe_call(check_alignment));
}

int main(int argc, char **argv);

/* What libc has in registers when it calls main. */
OBSERVE(main_registers)
{
    char shown[REGISTERS_AT_MAIN + 1] = {0};
    for (int i = 0; i < REGISTERS_AT_MAIN; i++) {
        const uintptr_t word = registers_at_main[i];
        shown[i] = word == (uintptr_t)own_argc                    ? 'c'
                   : word == (uintptr_t)own_argv                  ? 'v'
                   : word == (uintptr_t)(own_argv + own_argc + 1) ? 'e'
                   : word == (uintptr_t)main                      ? 'm'
                                                                  : '-';
    }
    say("%s flags %x", shown, flags_at_main);
}

/* Code that is written and then run, as compilers in the process do. */
MIXED(code_written)
{
    static const unsigned char code[] = {0xb8, 0x2a, 0, 0, 0, 0xc3}; /* mov $42, %eax; ret */
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return say_result("mmap", -1);
    memcpy(at, code, sizeof code);
    say("%d", ((int (*)(void))at)());
}

/* The way of the end: with flags that no function expects. */
/* Not by a slot that ld.so would bind first, with these flags. */
static void (*volatile end_function)(int) = _exit;

END(end_with_direction)
{
    say("ending");
    fflush(stdout);
    __asm__ volatile("std\n\tmov $4, %%edi\n\tcall *%0" : : "a"(end_function) : "memory");
}

END(end_with_alignment)
{
    say("ending");
    fflush(stdout);
    __asm__ volatile("and $-16, %%rsp\n\tpushfq\n\torl $0x40000, (%%rsp)\n\tpopfq\n\tmov $5, %%edi\n\tcall *%0"
                     :
                     : "a"(end_function)
                     : "memory");
}

END(end_with_full_x87)
{
    fill_x87();
    _exit(6);
}

/* The kernel leaves in rcx where a call returns, and in r11 the flags. */
OBSERVE(call_registers)
{
    long result = SYS_getuid, at, back, flags;
    __asm__ volatile("pushf\n\tpop %3\n\tlea 1f(%%rip), %2\n\tsyscall\n1:\n\tmov %%rcx, %1\n\txor %%r11, %3"
                     : "+a"(result), "=&r"(at), "=&r"(back), "=&r"(flags)
                     :
                     : "rcx", "r11", "memory", "cc");
    say("there %d flags %lx", at == back, flags & 0xcd5);
}

/* A call keeps vector registers, wherever the stack is within 64 bytes. */
OBSERVE(call_vectors)
{
    int kept = 0;
    for (long below = 256; below < 256 + 64 && __builtin_cpu_supports("avx"); below += 8) {
        long result = SYS_getuid;
        unsigned upper;
        __asm__ volatile("mov %%rsp, %%rbx\n\tand $-64, %%rsp\n\tsub %2, %%rsp\n\t"
                         "vxorps %%ymm7, %%ymm7, %%ymm7\n\tvcmpeqps %%ymm7, %%ymm7, %%ymm7\n\tsyscall\n\t"
                         "vmovmskps %%ymm7, %1\n\tvzeroupper\n\tmov %%rbx, %%rsp"
                         : "+a"(result), "=r"(upper)
                         : "r"(below)
                         : "rbx", "rcx", "r11", "xmm7", "memory", "cc");
        kept += upper == 0xff;
    }
    say("%d", kept);
}
#endif
