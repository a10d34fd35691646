/* Asks the kernel's random function something while the program is relocated, which is earlier than any constructor, as glibc does
 * since 2.41. QUESTION is 0 for the layout of its states, as glibc asks; 1 for a layout in memory that is not on the stack; 2 for random
 * bytes; 3 for a constructor that asks as glibc does. */
#include <stdio.h>
#include <stdint.h>

#include "kernels_function.h"

typedef long random_function(void *buffer, size_t size, unsigned int flags, void *state, size_t state_size);

static unsigned int answer;

static int nothing(void) { return 0; }

#if QUESTION == 3
__attribute__((constructor))
#endif
static void ask(void)
{
    static unsigned int fixed[16];
    unsigned int layout[16] = {0}, bytes = 0;
    random_function *const random = (random_function *)kernels_function("getrandom");
    if (!random)
        return;
    if (QUESTION == 2)
        random(&bytes, sizeof bytes, 0, NULL, 0);
    else
        random(NULL, 0, 0, QUESTION == 1 ? fixed : layout, ~0ul);
    answer = layout[0] + 3 * layout[1] + 5 * layout[2] + fixed[0] + bytes;
}

static int (*resolve(void))(void)
{
    if (QUESTION != 3)
        ask();
    return nothing;
}

int chosen(void) __attribute__((ifunc("resolve")));

int main(void)
{
    return printf("%u\n", answer) < 0 || chosen();
}
