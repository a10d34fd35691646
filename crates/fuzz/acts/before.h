/* What a program does before main: each piece is in an #ifdef of its own, and its main then says what that saw. Such a program
 * may well be started cold; it has to be right. */
#ifndef BEFORE_H
#define BEFORE_H
#include "act.h"
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#undef FAMILY
#define FAMILY "before"

#define CONSTRUCT(piece) __attribute__((constructor, used)) static void piece(int argc, char **argv, char **envp)
/* What main does before it looks at its arguments. */
#define BEGIN(piece) \
    static void piece(void); \
    static void (*const begin_##piece)(void) __attribute__((used, section("begins"))) = piece; \
    static void piece(void)
#define TELL(act_name) ACT(BEFORE, act_name)
#define UNUSED (void)argc, (void)argv, (void)envp

/* By an instruction where there is one. */
__attribute__((unused)) static unsigned long processor_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long)(now.tv_sec * 1000000000 + now.tv_nsec);
#endif
}

/* Raises SIGTRAP without a system call, where an instruction does so and is passed. */
__attribute__((unused)) static void trap_here(void)
{
#if defined(__x86_64__)
    __asm__ volatile("int3");
#else
    raise(SIGTRAP);
#endif
}

#endif
