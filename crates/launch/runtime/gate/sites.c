/* Finds the system calls of libc that can be replaced together with the comparison that follows them.
 *
 * A jump takes five bytes and a `syscall` two, so the instruction behind it has to move, too. In libc that is the comparison of the
 * result with the errors. It may move only if nothing jumps to it. Every byte of libc's text is taken for a relative jump if it can be
 * one. A mistake costs only the replacement.
 *
 * The zygote reads all of the text once, in less than a millisecond. A jump with a distance of one byte begins near its target, so only the
 * neighbourhood of each comparison is searched for those. One with a distance of four bytes begins with one of few codes, which are looked
 * for in sixteen bytes at a time.
 */
#define _GNU_SOURCE
#include <string.h>

#include "runtime.h"

#if HS_RESETS

#include <emmintrin.h>

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

static void note_jump(uintptr_t target)
{
    if (target >= text.low && target < text.high && is_set(text.moved, target))
        set(text.reached, target);
}

/* Jumps with a distance of one byte that begin from `from` to `to`. */
static void find_short_jumps(uintptr_t from, uintptr_t to)
{
    for (uintptr_t at = from < text.low ? text.low : from; at < to && at + 2 <= text.high; at++) {
        const unsigned char *code = (const unsigned char *)at;
        if ((code[0] & 0xf0) == 0x70 || code[0] == 0xeb || (code[0] & 0xfc) == 0xe0)
            note_jump(at + 2 + (uintptr_t)(intptr_t)(signed char)code[1]);
    }
}

static void note_tail(uintptr_t at)
{
    if (at + sizeof pattern > text.high || memcmp((const void *)at, pattern, sizeof pattern) != 0)
        return;
    for (size_t i = 2; i < sizeof pattern; i++)
        set(text.moved, at + i);
    /* Two bytes long, such a jump goes up to 128 bytes back and 127 ahead. */
    find_short_jumps(at - 2 - 127, at + sizeof pattern - 2 + 129);
}

/* A jump or call with a distance of four bytes, if one begins here. */
static void note_long_jump(uintptr_t at)
{
    const unsigned char *code = (const unsigned char *)at;
    const int is_conditional = code[0] == 0x0f;
    int32_t distance;
    if (at + 5 + (uintptr_t)is_conditional > text.high)
        return;
    if (is_conditional ? (code[1] & 0xf0) != 0x80 : (code[0] & 0xfe) != 0xe8)
        return;
    memcpy(&distance, code + 1 + is_conditional, sizeof distance);
    note_jump(at + 5 + (uintptr_t)is_conditional + (uintptr_t)(intptr_t)distance);
}

/* Which of sixteen bytes may begin a system call. `next` has the byte behind each. */
static inline __m128i may_be_call(__m128i codes, __m128i next)
{
    return _mm_and_si128(_mm_cmpeq_epi8(codes, _mm_set1_epi8(0x0f)), _mm_cmpeq_epi8(next, _mm_set1_epi8(0x05)));
}

/* Which may begin a jump or call with a distance of four bytes. */
static inline __m128i may_be_long_jump(__m128i codes, __m128i next)
{
    const __m128i near = _mm_set1_epi8((char)0xe8), even = _mm_set1_epi8((char)0xfe);
    const __m128i conditional = _mm_set1_epi8((char)0x80), high = _mm_set1_epi8((char)0xf0);
    const __m128i is_conditional = _mm_and_si128(_mm_cmpeq_epi8(codes, _mm_set1_epi8(0x0f)),
                                                 _mm_cmpeq_epi8(_mm_and_si128(next, high), conditional));
    return _mm_or_si128(_mm_cmpeq_epi8(_mm_and_si128(codes, even), near), is_conditional);
}

/* Calls `note` for all places that may begin what is sought, and for some others at the end. */
static inline void each(__m128i (*may_be)(__m128i codes, __m128i next), void (*note)(uintptr_t at))
{
    uintptr_t at = text.low;
    for (; at + sizeof(__m128i) < text.high; at += sizeof(__m128i)) {
        const __m128i codes = _mm_loadu_si128((const __m128i *)at), next = _mm_loadu_si128((const __m128i *)(at + 1));
        for (int bits = _mm_movemask_epi8(may_be(codes, next)); bits; bits &= bits - 1)
            note(at + (uintptr_t)__builtin_ctz((unsigned)bits));
    }
    for (; at < text.high; at++)
        note(at);
}

/* Reads libc's text. */
void hs_sites_open(uintptr_t from, uintptr_t to)
{
    if (to - from > TEXT_MAX)
        return;
    text.low = from;
    text.high = to;
    each(may_be_call, note_tail);
    each(may_be_long_jump, note_long_jump);
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
