/* Pointers into the strings of a request, in a deferred snapshot.
 *
 * Strings lie side by side, so that each request has them at other addresses. A tool that has not looked at its arguments may have copied
 * pointers to them all the same. So before a state is compared or saved, each pointer in it is replaced by a name (hs_strings_name_of),
 * which is the same in all dry runs. A run that begins at the snapshot is given its own addresses in their places.
 *
 * What a tool computes of an address otherwise, such as a hash or a difference, has no name. It is another number in each dry run, as
 * strings and their lengths are elsewhere in each, so that these do not agree. There is one exception. The usual first look at an argument
 * is that of a string function of libc, which has just found out whether its first load crosses a page. So eax or ecx, in which no caller
 * keeps anything, may hold one of the forms below of the addresses in rdi and rsi, with flags of it. It is computed anew where a run
 * begins. The load may cross a page then, which is no different where the next page can be read, too. In a dry run where it would, the
 * function goes another way to its first load: of its registers only those are compared that a function has to keep.
 */
#define _GNU_SOURCE
#include <string.h>

#include "runtime.h"

#if HS_RESETS

#define PLACES_MAX 32768
/* The longest row. */
#define ROW_MAX 4096
#define RED_ZONE 128
/* In an arrival's registers. */
enum { RAX = 0, RCX = 2, RSI = 4, RDI = 5 };
/* Those that a function has to keep (x86-64 psABI, 3.2.1), as bits: rbx, rbp, r12 to r15, rsp. */
#define KEPT 0xf842u
/* libc's string functions go another way if one of their first loads, in which they look at so many bytes, crosses a page. */
#define PAGE 4096
#define FIRST_LOADS 256
/* Of the flags, those that arithmetic sets. */
#define ARITHMETIC 0x8d5ul
/* How much can be read behind an argument at least if a load may cross a page: a vector of AVX2. A longer load could fault behind all
 * strings; such a run is repeated cold. */
#define READABLE 32

/* Each row of places is `words` below `used`. */
static struct {
    uint64_t *places[PLACES_MAX];
    uint32_t used;
    struct hs_pointers *now;
} pointers;

void hs_pointers_forget(void)
{
    pointers.used = 0;
}

static int rename_word(uint64_t *place)
{
    uint64_t name;
    if (hs_strings_are_laid_at(place))
        return 0;
    const int found = hs_strings_name_of(*place, &name);
    if (found <= 0)
        return found;
    if (pointers.used == PLACES_MAX || pointers.now->count == ROW_MAX)
        return -1;
    *place = name;
    pointers.places[pointers.used++] = place;
    pointers.now->count++;
    return 0;
}

/* What libc's string functions compute of addresses to see whether a load crosses a page (sysdeps/x86_64/multiarch/str*.S). */
enum { FORMS = 4 };
static uint64_t form_of(int form, const struct hs_arrival *at)
{
    const uint64_t first = at->general[RDI], second = at->general[RSI];
    switch (form) {
    case 0: return first & 0xfff;
    case 1: return second & 0xfff;
    case 2: return (first | second) & 0xfff;
    default: return (first | second) << 20 & 0xffffffff;
    }
}

/* Which forms a register may have, as bits. */
static unsigned forms_in(uint64_t word, const struct hs_arrival *at)
{
    unsigned found = 0;
    for (int form = 0; form < FORMS; form++)
        if (word == form_of(form, at))
            found |= 1u << form;
    return found;
}

/* Whether such a function may find that its first loads cross a page. */
static int may_cross(const struct hs_arrival *at)
{
    int found = 0;
    for (int form = 0; form < 3; form++)
        found |= form_of(form, at) > PAGE - FIRST_LOADS;
    return found;
}

/* Whether an instruction is libc's. */
static int is_libc(uintptr_t place)
{
    static uintptr_t from, to;
    struct hs_mapping map;
    const uintptr_t known = (uintptr_t)strlen;
    for (const char *at = from ? NULL : hs_maps_read(); at && (at = hs_maps_next(at, &map));)
        if (known >= map.from && known < map.to && map.access[2] == 'x')
            from = map.from, to = map.to;
    return place >= from && place < to;
}

/* Registers, which are no memory: how many of them hold a name; -1 if one holds a number that looks like one. */
static int rename_registers(struct hs_pointers *out, struct hs_arrival *at)
{
    int count = 0;
    uint64_t name, word;
    const int in_libc = is_libc(at->place);
    out->may_cross = in_libc && may_cross(at);
    for (int i = 0; i < 16; i++)
        out->forms[i] = (unsigned char)(in_libc && (i == RAX || i == RCX) ? forms_in(at->general[i], at) : 0);
    for (int i = 0; i < 16; i++) {
        const int found = hs_strings_name_of(at->general[i], &name);
        if (found < 0)
            return -1;
        if (found > 0) {
            at->general[i] = name;
            count++;
        }
    }
    for (size_t i = 0; i + sizeof word <= sizeof at->extended; i += sizeof word) {
        memcpy(&word, at->extended + i, sizeof word);
        const int found = hs_strings_name_of(word, &name);
        if (found < 0)
            return -1;
        if (found > 0) {
            memcpy(at->extended + i, &name, sizeof name);
            count++;
        }
    }
    return count;
}

/* Replaces the pointers of a dry run that has arrived by names, up to where libc was given the heap; -1 if that is not possible. */
int hs_pointers_rename(struct hs_pointers *out, struct hs_arrival *at, uintptr_t given)
{
    *out = (struct hs_pointers){.first = pointers.used};
    pointers.now = out;
    const uintptr_t stack = hs_memory_stack_touched(at->general[HS_RSP] - RED_ZONE);
    const int failed = hs_memory_each_word(stack, given, hs_strings_sought(), rename_word);
    const int found = failed ? -1 : rename_registers(out, at);
    if (found < 0) {
        hs_pointers_drop(out);
        return -1;
    }
    out->in_registers = found > 0;
    return 0;
}

/* The extended state as it is compared: parts that are not in use are as new, which is zero but for the modes of x87. */
static void normalize(struct hs_arrival *at)
{
    uint64_t present;
    memcpy(&present, at->extended + 512, sizeof present);
    if (!(present & 1))
        memcpy(at->extended, &(uint16_t){0x37f}, sizeof(uint16_t));
}

/* Which parts are in use, as a tool may ask (xgetbv), agrees too. Without the tool, that may change for x87; and for any part whose content
 * is as new: an EPYC counts AVX as in use, or not, from one switch of threads to the next. */
static enum hs_agreement compare_extended(const struct hs_arrival *then, const struct hs_arrival *now)
{
    enum { PRESENT = 512, PARTS = 512 + 64, X87 = 1 };
    static struct hs_arrival a, b;
    uint64_t in_a, in_b;
    a = *now;
    b = *then;
    normalize(&a);
    normalize(&b);
    if (memcmp(a.extended, b.extended, PRESENT) != 0 || memcmp(a.extended + PARTS, b.extended + PARTS, sizeof a.extended - PARTS) != 0)
        return HS_DISAGREES;
    memcpy(&in_a, a.extended + PRESENT, sizeof in_a);
    memcpy(&in_b, b.extended + PRESENT, sizeof in_b);
    return (in_a ^ in_b) & ~(uint64_t)X87 ? HS_DRIFTED : HS_AGREES;
}

/* Compares all registers of two arrivals. Notes which of the saved ones are to be computed. */
static enum hs_agreement compare_all(struct hs_pointers *saved, const struct hs_arrival *then, const struct hs_pointers *row,
                                     const struct hs_arrival *now)
{
    unsigned char forms[16];
    uint16_t computed = saved->computed;
    for (int i = 0; i < 16; i++) {
        forms[i] = saved->forms[i];
        if (then->general[i] == now->general[i])
            continue;
        forms[i] &= row->forms[i];
        if (!forms[i] || hs_strings_size_behind() < READABLE)
            return HS_DISAGREES;
        computed |= (uint16_t)(1u << i);
    }
    const uint64_t differ = then->flags ^ now->flags;
    if (then->place != now->place || (differ & ~ARITHMETIC) || (differ && !computed && !hs_slots_set_flags_anew(now->place)))
        return HS_DISAGREES;
    const enum hs_agreement found = compare_extended(then, now);
    if (found == HS_AGREES) {
        memcpy(saved->forms, forms, sizeof forms);
        saved->computed = computed;
    }
    return found;
}

/* Whether a function of libc's has been called with the same in all registers that it keeps. */
static int kept_agree(const struct hs_arrival *then, const struct hs_arrival *now)
{
    int same = is_libc(then->place) && !((then->flags ^ now->flags) & ~ARITHMETIC);
    for (int i = 0; i < 16; i++)
        same &= !(KEPT & 1u << i) || then->general[i] == now->general[i];
    return same;
}

/* Compares the registers of two arrivals. */
enum hs_agreement hs_pointers_compare_registers(struct hs_pointers *saved, const struct hs_arrival *then, const struct hs_pointers *row,
                                                const struct hs_arrival *now)
{
    const enum hs_agreement found = compare_all(saved, then, row, now);
    if (found != HS_DISAGREES)
        return found;
    return row->may_cross && kept_agree(then, now) ? HS_CANNOT_SAY : HS_DISAGREES;
}

/* Gives back the row that was made last. */
void hs_pointers_drop(const struct hs_pointers *row)
{
    pointers.used = row->first;
}

/* Replaces the names in memory by addresses in the strings that are laid. */
void hs_pointers_apply(const struct hs_pointers *row)
{
    for (uint32_t i = row->first; i < row->first + row->count; i++)
        if (hs_strings_is_name(*pointers.places[i]))
            *pointers.places[i] = hs_strings_address(*pointers.places[i]);
}

/* The same in registers. */
void hs_pointers_apply_to_registers(const struct hs_pointers *row, struct hs_arrival *at)
{
    uint64_t word;
    if (!row->in_registers)
        return;
    for (int i = 0; i < 16; i++)
        if (hs_strings_is_name(at->general[i]))
            at->general[i] = hs_strings_address(at->general[i]);
    for (int i = 0; i < 16; i++)
        if (row->computed & 1u << i)
            at->general[i] = form_of(__builtin_ctz(row->forms[i]), at);
    for (size_t i = 0; i + sizeof word <= sizeof at->extended; i += sizeof word) {
        memcpy(&word, at->extended + i, sizeof word);
        if (hs_strings_is_name(word)) {
            word = hs_strings_address(word);
            memcpy(at->extended + i, &word, sizeof word);
        }
    }
}

#endif
