/* Tests of runtime/fork/decode.c. Each message lies in a block of exactly its length, so that AddressSanitizer reports a read
 * behind its end. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"
#include "unit.h"

#define ROOM 100
#define STRINGS "/dir\0cc\0-c\0A=1\0"

struct parts {
    struct hs_request head;
    struct hs_limit limits[2];
    uint64_t counts[1];
    uint64_t residue[2];
    int32_t targets[4];
    char strings[sizeof STRINGS - 1];
} __attribute__((packed));

static struct parts good(void)
{
    struct parts parts = {
        .head = {.version = HS_VERSION, .length = sizeof parts, .argc = 2, .envc = 1, .fd_count = 4, .limit_count = 2,
                 .count_count = 1, .residue_count = 2},
        .limits = {{.resource = 7, .soft = 10, .hard = 20}, {.resource = 1, .soft = 30, .hard = 40}},
        .counts = {0x123456789},
        .residue = {1, 0x8000000000000000},
        .targets = {0, 1, 2, 9},
    };
    memcpy(parts.strings, STRINGS, sizeof parts.strings);
    return parts;
}

/* Decodes a copy of the message; `look` sees the result while the copy exists. */
static int decode(const void *message, size_t length, void (*look)(const struct hs_job *))
{
    char *copy = malloc(length ? length : 1);
    struct hs_job job;
    memcpy(copy, message, length);
    const int result = hs_decode(copy, (long)length, ROOM, &job);
    if (result == 0 && look)
        look(&job);
    free(copy);
    return result;
}

static void look_at_good(const struct hs_job *job)
{
    CHECK_EQUAL(job->limits[1].hard, 40);
    CHECK_EQUAL(job->counts[0], 0x123456789);
    CHECK_EQUAL(job->residue[1] >> 63, 1);
    CHECK_EQUAL(job->targets[3], 9);
    CHECK_TEXT(job->cwd, "/dir");
    CHECK_TEXT(job->strings, "cc");
    CHECK_TEXT(job->environment, "A=1");
    CHECK_EQUAL(job->end - job->environment, 4);
}

static void takes_a_request_apart(void)
{
    struct parts parts = good();
    CHECK_EQUAL(decode(&parts, sizeof parts, look_at_good), 0);
}

static void refuses_what_is_cut_off(void)
{
    struct parts parts = good();
    for (size_t length = 0; length < sizeof parts; length++) {
        CHECK_EQUAL(decode(&parts, length, NULL), -1);
        /* Also if the message says that it is as short. */
        parts.head.length = (uint32_t)length;
        CHECK_EQUAL(decode(&parts, length, NULL), -1);
        parts.head.length = sizeof parts;
    }
}

static void refuses_wrong_counts(void)
{
    const struct hs_request wrong[] = {
        {.version = HS_VERSION + 1, .argc = 2, .envc = 1, .fd_count = 4, .limit_count = 2, .count_count = 1},
        {.version = HS_VERSION, .argc = 0, .envc = 3, .fd_count = 4, .limit_count = 2, .count_count = 1},
        {.version = HS_VERSION, .argc = 3, .envc = 1, .fd_count = 4, .limit_count = 2, .count_count = 1},
        {.version = HS_VERSION, .argc = 1, .envc = 1, .fd_count = 4, .limit_count = 2, .count_count = 1},
        {.version = HS_VERSION, .argc = 2, .envc = 0, .fd_count = 4, .limit_count = 2, .count_count = 1},
        {.version = HS_VERSION, .argc = 2, .envc = 1, .fd_count = 2, .limit_count = 2, .count_count = 1},
        {.version = HS_VERSION, .argc = 2, .envc = 1, .fd_count = HS_FDS_MAX + 1, .limit_count = 2, .count_count = 1},
        {.version = HS_VERSION, .argc = 2, .envc = 1, .fd_count = 4, .limit_count = HS_LIMITS_MAX + 1, .count_count = 1},
        {.version = HS_VERSION, .argc = 2, .envc = 1, .fd_count = 4, .limit_count = 0xffffffff, .count_count = 1},
        {.version = HS_VERSION, .argc = 2, .envc = 1, .fd_count = 4, .limit_count = 2, .count_count = 1, .slot = HS_SLOTS},
        {.version = HS_VERSION, .argc = 2, .envc = 1, .fd_count = 4, .limit_count = 2, .count_count = HS_COUNTS_MAX + 1},
        {.version = HS_VERSION, .argc = 0xffffffff, .envc = 0xffffffff, .fd_count = 4, .limit_count = 2, .count_count = 1},
        {.version = HS_VERSION, .argc = 2, .envc = 1, .fd_count = 4, .limit_count = 2, .count_count = 1, .residue_count = 3},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct parts parts = good();
        parts.head = wrong[i];
        if (!wrong[i].residue_count)
            parts.head.residue_count = 2;
        parts.head.length = sizeof parts;
        CHECK_EQUAL(decode(&parts, sizeof parts, NULL), -1);
    }
}

static void refuses_descriptors_out_of_range(void)
{
    const int32_t wrong[] = {-1, HS_TARGET_MAX, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct parts parts = good();
        parts.targets[3] = wrong[i];
        CHECK_EQUAL(decode(&parts, sizeof parts, NULL), -1);
    }
}

/* A message that is right but for its number of limits, counts, parts of the stack and descriptors. */
static int decode_with(uint32_t limits, uint32_t counts, uint32_t residue, uint32_t descriptors)
{
    static const char strings[] = "/dir\0cc";
    static char message[16384] __attribute__((aligned(8)));
    struct hs_request head = {
        .version = HS_VERSION, .argc = 1, .fd_count = descriptors, .limit_count = limits, .count_count = counts, .residue_count = residue};
    const size_t fixed = sizeof head + limits * sizeof(struct hs_limit) + (counts + residue) * sizeof(uint64_t) +
                         descriptors * sizeof(int32_t);
    memset(message, 0, sizeof message);
    head.length = (uint32_t)(fixed + sizeof strings);
    memcpy(message, &head, sizeof head);
    memcpy(message + fixed, strings, sizeof strings);
    return decode(message, head.length, NULL);
}

static void takes_as_many_as_there_is_room_for(void)
{
    CHECK_EQUAL(decode_with(0, 0, 0, 3), 0);
    CHECK_EQUAL(decode_with(0, 0, 0, 2), -1);
    CHECK_EQUAL(decode_with(HS_LIMITS_MAX, HS_COUNTS_MAX, HS_RESIDUE_MAX, HS_FDS_MAX), 0);
    CHECK_EQUAL(decode_with(HS_LIMITS_MAX + 1, 0, 0, 3), -1);
    CHECK_EQUAL(decode_with(0, HS_COUNTS_MAX + 1, 0, 3), -1);
    CHECK_EQUAL(decode_with(0, 0, HS_RESIDUE_MAX + 1, 3), -1);
    CHECK_EQUAL(decode_with(0, 0, 0, HS_FDS_MAX + 1), -1);
}

/* Arguments, environment and a NULL behind each take up to `ROOM` pointers. */
static void refuses_more_strings_than_there_is_room_for(void)
{
    struct parts parts = good();
    char *message = malloc(sizeof parts + 2 * ROOM);
    for (uint32_t more = 0; more < ROOM; more++) {
        parts.head.envc = 1 + more;
        parts.head.length = (uint32_t)sizeof parts + more;
        memcpy(message, &parts, sizeof parts);
        memset(message + sizeof parts, 0, more);
        CHECK_EQUAL(decode(message, parts.head.length, NULL), parts.head.argc + parts.head.envc + 2 > ROOM ? -1 : 0);
    }
    free(message);
}

static size_t string_length(const struct hs_job *job)
{
    size_t length = strlen(job->cwd);
    const char *at = job->strings;
    for (uint32_t i = 0; i < job->head->argc + job->head->envc; i++) {
        length += strlen(at);
        at += strlen(at) + 1;
    }
    CHECK(at == job->end);
    return length;
}

static void look_at_any(const struct hs_job *job)
{
    CHECK(job->head->argc >= 1 && job->head->fd_count <= HS_FDS_MAX && job->head->limit_count <= HS_LIMITS_MAX);
    CHECK(string_length(job) < sizeof(struct parts));
}

/* Whatever is accepted can be read to its end. */
static void stands_random_changes(void)
{
    int accepted = 0;
    for (int round = 0; round < 200000; round++) {
        struct parts parts = good();
        const uint32_t changes = 1 + unit_random(4);
        for (uint32_t i = 0; i < changes; i++) {
            const uint32_t bit = unit_random(8);
            ((char *)&parts)[unit_random(sizeof parts)] ^= (char)(unit_random(2) ? 1 << bit : (int)unit_random(256));
        }
        const size_t length = sizeof parts - unit_random(3);
        if (unit_random(2))
            parts.head.length = (uint32_t)length;
        accepted += decode(&parts, length, look_at_any) == 0;
    }
    CHECK(accepted > 1000);
}

const struct unit_test tests_of_decode[] = {
    {"decode: takes a request apart", takes_a_request_apart},
    {"decode: refuses what is cut off", refuses_what_is_cut_off},
    {"decode: refuses wrong counts", refuses_wrong_counts},
    {"decode: takes as many limits and descriptors as there is room for", takes_as_many_as_there_is_room_for},
    {"decode: refuses descriptors out of range", refuses_descriptors_out_of_range},
    {"decode: refuses more strings than there is room for", refuses_more_strings_than_there_is_room_for},
    {"decode: stands random changes", stands_random_changes},
    {NULL, NULL},
};
