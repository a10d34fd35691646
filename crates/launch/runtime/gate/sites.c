/* Finds the system calls of libc that can be replaced together with the comparison that follows them.
 *
 * A jump takes five bytes and a `syscall` two, so the instruction behind it has to move, too. In libc that is the comparison of the
 * result with the errors. It may move only if nothing jumps to it. Every byte of libc's text is taken for a relative jump if it can be
 * one. A mistake costs only the replacement.
 *
 * The zygote reads all of the text once, which takes about 2 ms.
 */
#define _GNU_SOURCE
#include <string.h>

#include "runtime.h"

#if HS_RESETS

#define TEXT_MAX (4ul << 20)

/* syscall; cmp $-4096, %rax */
static const unsigned char pattern[HS_TAIL_BYTES] = {0x0f, 0x05, 0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff};

/* The text from `low` to `high`, with a bit for each byte. */
static struct {
    unsigned char moved[TEXT_MAX / 8];   /* it belongs to a comparison */
    unsigned char reached[TEXT_MAX / 8]; /* something may jump there */
    uintptr_t low, high;
} text;

static void set(unsigned char *bits, uintptr_t place)
{
    bits[(place - text.low) / 8] |= (unsigned char)(1u << (place - text.low) % 8);
}

static int is_set(const unsigned char *bits, uintptr_t place)
{
    return bits[(place - text.low) / 8] >> (place - text.low) % 8 & 1;
}

static void find_tails(void)
{
    const unsigned char *const end = (const unsigned char *)text.high - sizeof pattern;
    const unsigned char *at = (const unsigned char *)text.low;
    while (at <= end && (at = memmem(at, (size_t)(end - at) + sizeof pattern, pattern, sizeof pattern))) {
        for (size_t i = 2; i < sizeof pattern; i++)
            set(text.moved, (uintptr_t)at + i);
        at += sizeof pattern;
    }
}

static void note_jump(uintptr_t target)
{
    if (target >= text.low && target < text.high && is_set(text.moved, target))
        set(text.reached, target);
}

static void find_jumps(void)
{
    for (uintptr_t at = text.low; at + 6 <= text.high; at++) {
        const unsigned char *code = (const unsigned char *)at;
        const int is_short = (code[0] & 0xf0) == 0x70 || code[0] == 0xeb || (code[0] & 0xfc) == 0xe0;
        const int is_near = (code[0] & 0xfe) == 0xe8, is_conditional = code[0] == 0x0f && (code[1] & 0xf0) == 0x80;
        int32_t distance;
        if (is_short)
            note_jump(at + 2 + (uintptr_t)(intptr_t)(signed char)code[1]);
        if (!is_near && !is_conditional)
            continue;
        memcpy(&distance, code + 1 + is_conditional, sizeof distance);
        note_jump(at + 5 + (uintptr_t)is_conditional + (uintptr_t)(intptr_t)distance);
    }
}

/* Reads libc's text. */
void hs_sites_open(uintptr_t from, uintptr_t to)
{
    if (to - from > TEXT_MAX)
        return;
    text.low = from;
    text.high = to;
    find_tails();
    find_jumps();
}

/* Whether the system call at `site` can be replaced together with the comparison behind it. */
HS_GENERAL int hs_sites_tail_is_free(uintptr_t site)
{
    if (site < text.low || site + sizeof pattern > text.high || memcmp((const void *)site, pattern, sizeof pattern) != 0)
        return 0;
    for (size_t i = 2; i < sizeof pattern; i++)
        if (is_set(text.reached, site + i))
            return 0;
    return 1;
}

#endif
