/* A constructor notes which words of the stack below it are zero, as one may that forgets to set a variable. Another constructor has called
 * functions before that hotstart's runtime interposes. -DAT says where it keeps that: in a file's data, a thread's or the heap, or as a
 * choice of addresses (pointer). main prints where the stack begins within a line of the cache, and what is kept. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_(x) IN_##x
#define NAME(x) NAME_(x)
enum { IN_file, IN_thread, IN_heap, IN_pointer };

#ifndef WORDS
#define WORDS 2048
#endif

static char in_file[WORDS];
static __thread char in_thread[WORDS];
static char *kept;
static char digits[] = {0, 1};
static const char *pointers[WORDS];

static void end(void)
{
}

__attribute__((constructor(101))) static void call(void)
{
    if (getenv("UNSET_VARIABLE"))
        in_file[0] = 2;
    atexit(end);
    kept = NAME(AT) == IN_thread ? in_thread : NAME(AT) == IN_heap ? malloc(WORDS) : in_file;
}

__attribute__((constructor(102), noinline)) static void keep(void)
{
    register char *stack __asm__("rsp");
    const volatile uint64_t *words = (const void *)stack;
    for (int i = 0; i < WORDS; i++)
        if (NAME(AT) == IN_pointer)
            pointers[i] = &digits[words[-1 - i] != 0];
        else
            kept[i] = words[-1 - i] != 0;
}

int main(void)
{
    printf("%d ", (int)((uintptr_t)__builtin_frame_address(0) & 63));
    for (int i = 0; i < WORDS; i++)
        putchar('0' + (NAME(AT) == IN_pointer ? *pointers[i] : kept[i]));
    putchar('\n');
    return 0;
}
