/* System calls without libc: starting a statically linked libc would cost more than all that the client does.
 * Only calls that both x86-64 and aarch64 have. Results are as the kernel gives them, errors negative. */
#ifndef HOTSTART_EXEC_SYSTEM_H
#define HOTSTART_EXEC_SYSTEM_H

#include <asm/unistd.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
static inline long sys6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static inline long sys6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "hotstart's client knows x86-64 and aarch64 only"
#endif

#define SYS_CHOOSE(_1, _2, _3, _4, _5, _6, _7, name, ...) name
#define SYS0(n) sys6(n, 0, 0, 0, 0, 0, 0)
#define SYS1(n, a) sys6(n, (long)(a), 0, 0, 0, 0, 0)
#define SYS2(n, a, b) sys6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS3(n, a, b, c) sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS4(n, a, b, c, d) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define SYS5(n, a, b, c, d, e) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
/* sys(NUMBER, up to five arguments) */
#define sys(...) SYS_CHOOSE(__VA_ARGS__, , SYS5, SYS4, SYS3, SYS2, SYS1, SYS0)(__VA_ARGS__)

/* The kernel's own form of a signal's action. */
struct sys_action {
    uint64_t handler, flags, restorer, mask;
};

static inline uint64_t bit(int number)
{
    return (uint64_t)1 << (number - 1);
}

static inline __attribute__((noreturn)) void leave(int code)
{
    for (;;)
        sys(__NR_exit_group, code);
}

#endif
