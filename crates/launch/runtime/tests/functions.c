/* A program that has a function of libc's of its own, or a library to be preloaded that has it, and tells how often it was called before
 * main looks.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

volatile unsigned long calls;

#if defined(OWN_STRLEN)
size_t strlen(const char *text)
{
    size_t length = 0;
    calls++;
    while (text[length])
        length++;
    return length;
}
#elif defined(OWN_MEMSET)
void *memset(void *to, int value, size_t size)
{
    calls++;
    for (size_t i = 0; i < size; i++)
        ((volatile char *)to)[i] = (char)value;
    return to;
}
#elif defined(OWN_SBRK)
void *sbrk(intptr_t by)
{
    calls += by == 0;
    return (void *)-1;
}
#elif defined(OWN_ABS)
/* Nobody needs it. */
int abs(int number)
{
    calls++;
    return number < 0 ? -number : number;
}
#endif

#ifndef PRELOADED
int main(void)
{
    printf("%lu\n", calls);
    return 0;
}
#endif
