/* Tests of runtime/gate/sites.c on text that is made of jumps, against a search of every byte. Its state is private, so it is included. */
#include "gate/sites.c"
#include "unit.h"

#if HS_RESETS

enum { SIZE = 3001, TAILS = 12, JUMPS = 60 };

static unsigned char code[SIZE];

static void put_distance(size_t at, int32_t distance)
{
    memcpy(code + at, &distance, sizeof distance);
}

/* A jump of some kind from a place by chance to one near `target`. */
static void put_jump(size_t target)
{
    const size_t near = target + unit_random(12) - 2;
    const size_t at = unit_random(2) ? unit_random(SIZE - 8) : near + unit_random(300) - 150;
    if (at >= SIZE - 8)
        return;
    const int32_t distance = (int32_t)near - (int32_t)at;
    switch (unit_random(3)) {
    case 0:
        code[at] = (unsigned char[]){0x70, 0x7f, 0xeb, 0xe0, 0xe3}[unit_random(5)];
        code[at + 1] = (unsigned char)(distance - 2);
        break;
    case 1:
        code[at] = (unsigned char)(0xe8 + unit_random(2));
        put_distance(at + 1, distance - 5);
        break;
    default:
        code[at] = 0x0f;
        code[at + 1] = (unsigned char)(0x80 + unit_random(16));
        put_distance(at + 2, distance - 6);
    }
}

/* Where the jump at `at` goes, if one begins there; else `at`. */
static size_t target_of(size_t at)
{
    const unsigned char first = code[at];
    int32_t distance;
    if ((first & 0xf0) == 0x70 || first == 0xeb || (first & 0xfc) == 0xe0)
        return at + 2 > SIZE ? at : at + 2 + (size_t)(intptr_t)(signed char)code[at + 1];
    const size_t opcode = (first & 0xfe) == 0xe8 ? 1 : 2;
    if (opcode == 2 && (first != 0x0f || at + 1 >= SIZE || (code[at + 1] & 0xf0) != 0x80))
        return at;
    if (at + opcode + 4 > SIZE)
        return at;
    memcpy(&distance, code + at + opcode, sizeof distance);
    return at + opcode + 4 + (size_t)(intptr_t)distance;
}

static int is_reached(size_t site)
{
    for (size_t at = 0; at < SIZE; at++) {
        const size_t target = target_of(at);
        if (target != at && target >= site + 2 && target < site + sizeof pattern)
            return 1;
    }
    return 0;
}

static void finds_every_jump_behind_a_system_call(void)
{
    int free_ones = 0, reached = 0;
    for (int round = 0; round < 300; round++) {
        size_t sites[TAILS];
        for (size_t i = 0; i < SIZE; i++)
            code[i] = (unsigned char)(unit_random(40) ? 0x90 : unit_random(256));
        for (size_t i = 0; i < TAILS; i++)
            sites[i] = i * (SIZE / TAILS) + unit_random(200);
        /* The first and the last place of all. */
        sites[0] = round % 2 ? 0 : sites[0];
        sites[TAILS - 1] = round % 3 ? sites[TAILS - 1] : SIZE - sizeof pattern;
        for (size_t i = unit_random(JUMPS); i > 0; i--)
            put_jump(sites[unit_random(TAILS)]);
        for (size_t i = 0; i < TAILS; i++)
            memcpy(code + sites[i], pattern, sizeof pattern);
        memset(&text, 0, sizeof text);
        hs_sites_open((uintptr_t)code, (uintptr_t)code + SIZE);
        for (size_t i = 0; i < TAILS; i++) {
            const int expected = !is_reached(sites[i]);
            CHECK_EQUAL(hs_sites_tail_is_free((uintptr_t)code + sites[i]), expected);
            *(expected ? &free_ones : &reached) += 1;
        }
    }
    CHECK(free_ones > 500 && reached > 500);
}

const struct unit_test tests_of_sites[] = {
    {"sites: finds every jump behind a system call", finds_every_jump_behind_a_system_call},
    {NULL, NULL},
};

#else

const struct unit_test tests_of_sites[] = {{NULL, NULL}};

#endif
