/* Prints where main's stack begins within a line of the cache, and for each word of the 32 KiB below whether something is left there. */
#include <stdio.h>
#include <stdint.h>

#define WORDS 4096

__attribute__((used)) static volatile uint64_t left[WORDS];

__attribute__((used)) static int show(uintptr_t stack)
{
    printf("%d ", (int)(stack & 63));
    for (int i = WORDS; i-- > 0;)
        putchar(left[i] ? '1' : '0');
    putchar('\n');
    return 0;
}

/* Reads before it calls anything, without a frame of its own. */
__attribute__((naked)) int main(void)
{
    __asm__("lea left(%rip), %rdi\n\tlea -32768(%rsp), %rsi\n\tmov $4096, %ecx\n\trep movsq\n\tmov %rsp, %rdi\n\tjmp show");
}
