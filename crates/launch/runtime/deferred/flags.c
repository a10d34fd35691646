/* Whether code reads the flags that arithmetic has left.
 *
 * A tool that tests a pointer to an argument before it looks there leaves flags that depend on the address (the parity of its low byte).
 * They are no part of a state if the code that goes on from there sets them before anything could read them. This file knows only the
 * instructions that compilers put in between; at any other the answer is that flags are read. So it is at one that could fault, and show
 * the flags to a handler, but for the first one, which looks at the argument.
 */
#include <string.h>

#include "runtime.h"

#if HS_RESETS

#define INSTRUCTIONS_MAX 16

/* What follows the opcode of an instruction with a ModRM byte, without immediate operands (Intel's manual, volume 2, 2.1.3). */
static size_t operand_bytes(const unsigned char *modrm)
{
    const unsigned mod = modrm[0] >> 6, memory = modrm[0] & 7;
    size_t size = 1;
    if (mod == 3)
        return size;
    if (memory == 4)
        size += 1 + (mod == 0 && (modrm[1] & 7) == 5 ? 4 : 0);
    if (mod == 0 && memory == 5)
        size += 4;
    return size + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

enum effect { KEEPS, SETS, UNKNOWN };

/* Whether the operand of an instruction with a ModRM byte lies in memory. */
static int is_in_memory(const unsigned char *modrm)
{
    return modrm[0] >> 6 != 3;
}

/* Instructions of two bytes' opcode that keep all flags: moves of one register, and nop. */
static enum effect long_effect(const unsigned char *at, size_t *size, int may_fault)
{
    if (!may_fault && is_in_memory(at + 1) && *at != 0x1e && *at != 0x1f)
        return UNKNOWN;
    switch (*at) {
    case 0x10: case 0x11: case 0x1e: case 0x1f: case 0x28: case 0x29: case 0x57: case 0x6e: case 0x6f: case 0x7e: case 0x7f:
    case 0xb6: case 0xb7: case 0xbe: case 0xbf: case 0xd6: case 0xef:
        *size += 1 + operand_bytes(at + 1);
        return KEEPS;
    default:
        return UNKNOWN;
    }
}

/* Instructions with an immediate operand of 8 or 32 bits: only add, or, and, sub, xor and cmp set all flags and read none. */
static enum effect group_effect(unsigned operation)
{
    return operation == 2 || operation == 3 ? UNKNOWN : SETS;
}

/* The effect of an instruction, and its size if it keeps the flags. */
static enum effect effect(const unsigned char *at, size_t *size, int may_fault)
{
    const unsigned char *const begin = at;
    int is_wide = 0;
    /* One at most: with more of them, another one may say how long the immediate operand is. */
    if (*at == 0x66 || *at == 0xf2 || *at == 0xf3)
        at++;
    if ((*at & 0xf0) == 0x40)
        is_wide = *at++ & 8;
    *size = (size_t)(at - begin) + 1;
    if (*at == 0x0f)
        return long_effect(at + 1, size, may_fault);
    const int has_operand = (*at < 0x40 && (*at & 7) < 4) || (*at >= 0x80 && *at <= 0x85) || *at == 0xf6 || *at == 0xf7;
    if (!may_fault && has_operand && is_in_memory(at + 1))
        return UNKNOWN;
    if (*at < 0x40 && (*at & 7) < 6)
        return group_effect(*at >> 3);
    if ((*at & 0xf0) == 0x50 || *at == 0x90)
        return may_fault || *at == 0x90 ? KEEPS : UNKNOWN;
    if ((*at & 0xf8) == 0xb8) {
        *size += is_wide ? 8 : 4;
        return begin[0] == 0x66 ? UNKNOWN : KEEPS;
    }
    switch (*at) {
    case 0x63: case 0x88: case 0x89: case 0x8a: case 0x8b: case 0x8d: case 0xc6: case 0xc7:
        if (!may_fault && is_in_memory(at + 1) && *at != 0x8d)
            return UNKNOWN;
        *size += operand_bytes(at + 1) + (*at == 0xc6 ? 1 : *at == 0xc7 ? 4 : 0);
        return *at == 0xc7 && begin[0] == 0x66 ? UNKNOWN : KEEPS;
    case 0x80: case 0x81: case 0x83:
        return group_effect(at[1] >> 3 & 7);
    case 0x84: case 0x85: case 0xa8: case 0xa9:
        return SETS;
    case 0xf6: case 0xf7:
        return (at[1] >> 3 & 7) == 0 ? SETS : UNKNOWN;
    default:
        return UNKNOWN;
    }
}

/* Where code goes on if an instruction is a call or a jump that keeps flags: to a function, or by a slot of the linkage table. */
static const unsigned char *jump_target(const unsigned char *at)
{
    int32_t distance;
    if (*at == 0xe8 || *at == 0xe9) {
        memcpy(&distance, at + 1, sizeof distance);
        return at + 5 + distance;
    }
    if (*at == 0xff && (at[1] == 0x15 || at[1] == 0x25)) {
        uintptr_t target;
        memcpy(&distance, at + 2, sizeof distance);
        memcpy(&target, at + 6 + distance, sizeof target);
        return (const unsigned char *)target;
    }
    return at;
}

/* Whether the code at `place` sets the flags of arithmetic before it reads any. */
int hs_flags_are_set_anew(uintptr_t place)
{
    const unsigned char *at = (const unsigned char *)place;
    for (int i = 0; i < INSTRUCTIONS_MAX; i++) {
        size_t size;
        at = jump_target(at);
        const enum effect found = effect(at, &size, i == 0);
        if (found != KEEPS)
            return found == SETS;
        at += size;
    }
    return 0;
}

#endif
