/* Prints what lies between main's own frame and the arguments, in libc's frames: small numbers, main's address, and places on the stack as
 * distances. All else differs from process to process. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    printf("%d", argc);
    for (uintptr_t at = frame + 8; at < (uintptr_t)(argv - 1); at += 8) {
        const uintptr_t word = *(uintptr_t *)at;
        const uint32_t *halves = (const uint32_t *)at;
        char texts[2][8] = {"x", "x"};
        for (int i = 0; i < 2; i++)
            if (halves[i] < 512)
                snprintf(texts[i], sizeof texts[i], "%" PRIu32, halves[i]);
        if (word == (uintptr_t)main)
            printf(" main");
        else if (word >= frame && word - frame < 1 << 16)
            printf(" +%d", (int)(word - frame));
        else
            printf(" %s/%s", texts[0], texts[1]);
    }
    putchar('\n');
    return 0;
}
