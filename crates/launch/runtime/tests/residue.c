/* Prints where main's stack begins within a line of the cache, whether there is something in the registers of a fourth to a sixth
 * parameter of main's, and for each word of the 32 KiB below whether something is left there. With -DNUMBERS: the numbers that are left, by
 * their places. */
#include <inttypes.h>
#include <stdio.h>
#include <stdint.h>

#define WORDS 4096

__attribute__((used)) static volatile uint64_t left[WORDS];

__attribute__((used)) static int show(uintptr_t stack, uintptr_t fourth, uintptr_t fifth, uintptr_t sixth)
{
#ifdef NUMBERS
    for (int i = WORDS; i-- > 0;)
        if (left[i] && left[i] < 1ull << 40)
            printf("%d:%" PRIu64 " ", WORDS - i, left[i]);
    return 0;
#endif
    printf("%d ", (int)(stack & 63));
    printf("%d%d%d", fourth != 0, fifth != 0, sixth != 0);
    for (int i = WORDS; i-- > 0;)
        putchar(left[i] ? '1' : '0');
    putchar('\n');
    return 0;
}

/* Reads before it calls anything, without a frame of its own. */
__attribute__((naked)) int main(void)
{
    __asm__("mov %rcx, %rdx\n\tlea left(%rip), %rdi\n\tlea -32768(%rsp), %rsi\n\tmov $4096, %ecx\n\trep movsq\n\t"
            "mov %rdx, %rsi\n\tmov %r8, %rdx\n\tmov %r9, %rcx\n\tmov %rsp, %rdi\n\tjmp show");
}
