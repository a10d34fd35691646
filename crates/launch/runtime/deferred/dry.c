/* The arguments and environment of a dry run.
 *
 * In a dry run (point.c) main is given other strings, in a place of their own: the first argument and the environment, and addresses of
 * arguments, which cannot be read. What lies beside these, and where, is not the same in one dry run and the next (enum place), and their
 * lengths are random. So are those values of variables that the snapshot is not to depend on. A state that depends on any of this differs
 * between dry runs. The first argument always ends a page, and variables that are not secret lie as far from the end of one in each dry
 * run: string functions leave other traces in registers elsewhere. Where strings lie in a run, and all else behind the page of the arrays,
 * cannot be read: a look there is where the snapshot is taken.
 *
 * Pointers into the strings of a dry run are kept under names (hs_strings_name_of), which stand for the same places in the
 * strings of a later request.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "reset/strings.h"

#if HS_RESETS

extern char **environ;
extern char *program_invocation_name, *program_invocation_short_name;

/* The longest that an argument of a dry run seems to be. */
#define LENGTH_MAX 256
/* In one dry run of three arguments are aligned to this, and not in the others: a tool that asks gets different answers. */
#define ALIGNED 64
/* From one hidden argument to the next: next to nothing, and then more than nearly all arguments are long. */
#define NEAR_MAX 8
#define FAR (2 * PAGE)
/* Pages of an area. The first one can never be read. */
enum {
    SHIFTS = 512, /* by so many pages a part may be shifted */
    NAME_PAGE = 2, /* the first argument ends it, and the page before may have what lies before that */
    ARGUMENTS_PAGE = NAME_PAGE + SHIFTS + 2,
    ARGUMENTS_PAGES = ARGUMENTS_MAX + 6,
    ENVIRONMENT_PAGES = STRINGS_ROOM / PAGE + PAGES_OF_SECRET * HS_SECRETS_MAX + 12,
    LAST_PAGE = ARGUMENTS_PAGE + SHIFTS + ARGUMENTS_PAGES + ENVIRONMENT_PAGES, /* of the environment */
};
_Static_assert((ARGUMENTS_MAX + 2) / 2 * (FAR + NEAR_MAX) + 2 * PAGE <= ARGUMENTS_PAGES * PAGE, "all arguments have room");
_Static_assert(HS_MESSAGE_MAX <= ARGUMENTS_PAGES * PAGE, "also with their own lengths");
_Static_assert((LAST_PAGE + SHIFTS + 2ul) * PAGE <= sizeof ((struct hs_laid *)0)->dry[0], "an area is large enough");

/* The first page behind the request's arrays and auxiliary vector. */
static char *behind_arrays(const struct hs_job *job)
{
    char *const behind = hs_block.number + (job->head->argc + job->head->envc + 3 + hs_block.words) * sizeof(char *);
    return page_of(behind + PAGE - 1);
}

/* Whether a dry run can be made of this request, and serve it: no string lies where a dry run can look. */
int hs_strings_are_complete(const struct hs_job *job)
{
    const int is_behind = hs_layout.begin >= behind_arrays(job);
    return hs_layout.is_complete && is_behind && job->head->argc <= ARGUMENTS_MAX && job->environment <= job->end &&
           strlen(job->strings) < PAGE;
}

/* The strings of a dry run, while one is laid. Pages that are not in `readable` cannot be read, up to `end`. */
static struct {
    int is_laid;
    char *area, *name_end, *arguments;
    char *hidden;  /* from there on the stack cannot be read, up to its end */
    char *unreadable;
    uint32_t argc, envc;
    char *argument[ARGUMENTS_MAX], *variable[HS_ROOM + 1]; /* and what follows the last one */
    char *end;
    uint32_t offset; /* on a page; changes from each dry run to the next */
    struct pages {
        char *from, *to;
    } readable[2 * HS_SECRETS_MAX + 4];
    uint32_t readable_count;
    const unsigned char *is_secret;
} dry;

/* Makes from..to readable, and all else on its pages; -1 if the kernel does not let it. */
static int open_pages(char *from, char *to)
{
    const struct pages pages = {page_of(from), page_of(to - 1) + PAGE};
    dry.readable[dry.readable_count++] = pages;
    return HS_SYS(SYS_mprotect, pages.from, pages.to - pages.from, PROT_READ | PROT_WRITE) == 0 ? 0 : -1;
}

/* How the strings of dry runs lie, in turn. */
enum place {
    JOINED, /* the arguments begin right behind the first one, and zeros lie before the environment */
    ODD,    /* the arguments are anywhere, and random bytes lie before the environment */
    OTHER,  /* the same, with other pages in between; where the last ODD one has a bit of an address on a page, this one has it not */
    OWN,    /* as JOINED, but each argument is as long as that of the request */
};
_Static_assert(OWN + 1 == HS_DRY_PLACES, "the last place");
/* Dry runs after which an ODD one is somewhere else. Two ODD ones that are learned from are in the same place, so that an OTHER one has the
 * opposite of both. */
#define ODD_AGAIN 16

static int is_joined(enum place place)
{
    return place == JOINED || place == OWN;
}

static char *page_in(enum place place, uintptr_t page)
{
    return hs_laid->dry[place] + page * PAGE;
}

/* Where a part begins. In an OTHER run the number of its page is another one than in an ODD run in all its last bits. */
static char *shifted(enum place place, uintptr_t page, unsigned random)
{
    const uintptr_t odd = (uintptr_t)page_in(ODD, page) / PAGE + random % SHIFTS, other = (uintptr_t)page_in(OTHER, page) / PAGE;
    return page_in(place, page + (place == ODD ? random % SHIFTS : (~odd - other) % SHIFTS));
}

/* Chooses where everything lies. */
static void choose_area(enum place place, unsigned random)
{
    dry.area = page_in(place, 0);
    if (is_joined(place)) {
        dry.name_end = dry.arguments = page_in(place, ARGUMENTS_PAGE);
        dry.end = page_in(place, LAST_PAGE + 1);
        return;
    }
    dry.name_end = shifted(place, NAME_PAGE, random) + PAGE;
    dry.arguments = shifted(place, ARGUMENTS_PAGE, random >> 5);
    dry.end = shifted(place, LAST_PAGE, random >> 10) + PAGE;
}

/* Says where hidden strings are on their pages. So no bit of an address is the same in an ODD run and an OTHER one, nor whether an
 * argument is longer than most numbers; and the parity of the last byte, which is a flag of the processor, is not that of a JOINED run. */
static void choose_offset(unsigned turn)
{
    static uint32_t offsets[ARGUMENTS_MAX + 1];
    uint32_t *const offset = &offsets[dry.argc];
    const enum place place = turn % HS_DRY_PLACES;
    if (turn % ODD_AGAIN == ODD) {
        HS_SYS(SYS_getrandom, offset, sizeof *offset, 0);
        *offset ^= !__builtin_parity(*offset & 0xff);
    }
    dry.offset = is_joined(place) ? 0 : place == ODD ? *offset & (PAGE - 1) : ~*offset & (PAGE - 1);
    choose_area(place, *offset / PAGE);
}

/* Lays every other argument near to the one before it, and the rest far apart. */
static void place_apart(enum place place)
{
    const uint32_t steps = dry.offset;
    char *at = dry.arguments + dry.offset;
    for (uint32_t i = 1; i < dry.argc; i++) {
        const uint32_t near = 1 + (steps >> i % 8) % NEAR_MAX;
        dry.argument[i] = at;
        at += i % 2 == (place == ODD) ? near : FAR - near;
    }
}

static void place_arguments(enum place place, const char *name, const unsigned char *random)
{
    const size_t name_size = strlen(name) + 1;
    const char *own = name + name_size;
    dry.argument[0] = dry.name_end - name_size;
    if (!is_joined(place)) {
        place_apart(place);
        return;
    }
    char *at = dry.arguments;
    for (uint32_t i = 1; i < dry.argc; i++) {
        const size_t own_size = strlen(own) + 1;
        dry.argument[i] = at;
        at += place == OWN ? own_size : (size_t)ALIGNED * (1 + random[i] % (LENGTH_MAX / ALIGNED));
        own += own_size;
    }
}

/* Fills what lies before a string on its page. */
static void fill_before(char *string, enum place place)
{
    const size_t size = (size_t)(string - page_of(string));
    if (!is_joined(place))
        HS_SYS(SYS_getrandom, page_of(string), size, 0);
}

/* How much of a variable can be read. */
static size_t shown_size(const char *variable, uint32_t index)
{
    return dry.is_secret[index] ? (size_t)(strchr(variable, '=') + 1 - variable) : strlen(variable) + 1;
}

/* Lays variables of the environment, from the one at `first` on: a secret one, or none that is. They end `before` bytes
 * before `end`, behind which nothing can be read. What lies between is no value, and differs from one dry run to the next, also in where
 * it begins: where there is none, reading the value is noticed at once. Returns where they begin, NULL on failure. */
static char *lay_part(const char *strings, uint32_t first, uint32_t count, char *end, uint32_t before, enum place place)
{
    const char *at = strings;
    size_t size = 0;
    for (uint32_t i = first; i < first + count; i++) {
        size += shown_size(at, i);
        at += strlen(at) + 1;
    }
    char *to = end - before - size;
    if (open_pages(to, end) != 0)
        return NULL;
    fill_before(to, place);
    HS_SYS(SYS_getrandom, end - before, before, 0);
    for (char *at_value = end - before; at_value < end; at_value++)
        *at_value |= 1;
    for (uint32_t i = first; i < first + count; i++) {
        dry.variable[i] = to;
        size = shown_size(strings, i);
        to = (char *)memcpy(to, strings, size) + size;
        strings += strlen(strings) + 1;
    }
    return dry.variable[first];
}

/* Lays the environment, in parts: each secret variable by itself, and those between two of them. These are always as far from the end of a
 * page: libc's string functions leave other traces in registers elsewhere. Returns where the environment begins, NULL on failure. */
static char *lay_environment(const struct hs_job *job, enum place place)
{
    static const char *begins[HS_ROOM];
    const uint32_t envc = job->head->envc;
    const char *at = job->environment;
    char *end = dry.end - TAIL - hs_block.path_size;
    if (open_pages(end, dry.end) != 0)
        return NULL;
    memcpy(end, hs_block.path, hs_block.path_size);
    dry.variable[envc] = end;
    for (uint32_t i = 0; i < envc; i++) {
        begins[i] = at;
        at += strlen(at) + 1;
    }
    for (uint32_t to = envc, from; to > 0; to = from) {
        const int is_secret = dry.is_secret[to - 1];
        for (from = to - 1; !is_secret && from > 0 && !dry.is_secret[from - 1]; from--)
            ;
        if (is_secret || to < envc)
            end = page_of(end) - PAGE;
        const uint32_t before = is_secret ? dry.offset * (2 * to + 1) & (PAGE - 1) : 0;
        if (!(end = lay_part(begins[from], from, to - from, end, before, place)))
            return NULL;
    }
    return end;
}

/* A copy of all that is laid for a dry run and that it may write to. */
static struct {
    char stack[NOTED_ROOM], strings[(2 + ENVIRONMENT_PAGES) * PAGE];
} noted;

/* Calls `visit` with each part that a dry run may write to, and its copy; whether all calls returned 0. */
static int each_noted(int (*visit)(void *part, void *copy, size_t size))
{
    int found = visit(hs_block.number, noted.stack, (size_t)(dry.hidden - hs_block.number));
    char *copy = noted.strings;
    for (uint32_t i = 0; i < dry.readable_count; i++) {
        const size_t size = (size_t)(dry.readable[i].to - dry.readable[i].from);
        found |= visit(dry.readable[i].from, copy, size);
        copy += size;
    }
    return !found;
}

static int note(void *part, void *copy, size_t size)
{
    memcpy(copy, part, size);
    return 0;
}

static int compare(void *part, void *copy, size_t size)
{
    return memcmp(copy, part, size) != 0;
}

static int parity(const unsigned char *bytes)
{
    unsigned all = 0;
    for (size_t i = 0; i < HS_RANDOM_BYTES; i++)
        all ^= bytes[i];
    return __builtin_parity(all);
}

/* Draws the random bytes of a dry run, after `turn` others with as many arguments. While a snapshot is learned, those in every second place
 * are the complement of those in the place before: no bit that a tool keeps is the same in all, nor is the sum of all bits. Later, a dry
 * run is compared with what was learned, and has others each time. */
static void draw_dry(uint32_t argc, unsigned turn, int is_learned)
{
#ifndef HS_WITHOUT_RANDOM
    static unsigned char drawn[ARGUMENTS_MAX + 1][2][HS_RANDOM_BYTES];
    unsigned char (*const own)[HS_RANDOM_BYTES] = drawn[argc];
    unsigned char *bytes = (unsigned char *)hs_strings_random();
    if (!bytes)
        return;
    if (turn == 0 || is_learned) {
        HS_SYS(SYS_getrandom, own, sizeof *drawn, 0);
        own[1][0] ^= parity(own[0]) == parity(own[1]);
    }
    for (size_t i = 0; i < HS_RANDOM_BYTES; i++)
        bytes[i] = turn % 2 ? (unsigned char)~own[turn / 2 % 2][i] : own[turn / 2 % 2][i];
#else
    (void)argc, (void)turn, (void)is_learned, (void)parity;
#endif
}

/* Hides all of the stack behind the pages of the arrays, as far as there is nothing but what each run has there; -1 if the kernel does not
 * let it. The request's strings go: from a snapshot they would come back for a moment after each run, and others would find them. */
static int hide_stack(const struct hs_job *job)
{
    dry.hidden = behind_arrays(job);
    zero(hs_block.room, hs_block.path);
    return HS_SYS(SYS_mprotect, dry.hidden, hs_block.end - dry.hidden, PROT_NONE) == 0 ? 0 : -1;
}

/* Has the environment of one dry run end as near to the arrays as it can be: a tool may ask whether it is. */
static void bring_near(const struct hs_job *job)
{
    size_t size = dry.argc * LENGTH_MAX + (size_t)(job->end - job->environment) + hs_block.path_size + 2 * PAGE;
    for (uint32_t i = 0; i < dry.envc; i++)
        size += dry.is_secret[i] ? PAGES_OF_SECRET * PAGE : 0;
    if (size < ARGUMENTS_PAGES * PAGE)
        dry.end = page_of(dry.arguments + size);
}

/* Lays the strings of a dry run, of which there were `turn` before, and which learns or compares; -1 if the kernel does not let it. With
 * one argument, nothing about it is unknown, so that it lies as in a run. */
int hs_strings_lay_dry(const struct hs_job *job, const struct hs_start *start, struct hs_call *call, const unsigned char *is_secret,
                       unsigned turn, int is_learned)
{
    const enum place place = turn % HS_DRY_PLACES;
    const size_t name_size = strlen(job->strings) + 1;
    unsigned char random[ARGUMENTS_MAX];
    if (hs_strings_map() != 0)
        return -1;
    HS_SYS(SYS_getrandom, random, sizeof random, 0);
    dry.argc = job->head->argc;
    dry.envc = job->head->envc;
    dry.is_secret = is_secret;
    choose_offset(turn);
    dry.readable_count = 0;
    dry.is_laid = 1;
    if (place == JOINED)
        bring_near(job);
    char *const environment = lay_environment(job, place);
    dry.unreadable = dry.area + (random[ARGUMENTS_MAX - 1] << 4 | random[ARGUMENTS_MAX - 2] % 16);
    place_arguments(place, job->strings, random);
    if (dry.argc == 1 && environment)
        dry.argument[0] = environment - name_size;
    char *const name = dry.argument[0];
    if (!environment || open_pages(name, name + name_size) != 0)
        return -1;
    memcpy(name, job->strings, name_size);
    draw_dry(dry.argc, turn, is_learned);
    char **const argv = start->argv;
    memcpy(argv, dry.argument, dry.argc * sizeof *dry.argument);
    argv[dry.argc] = NULL;
    memcpy(argv + dry.argc + 1, dry.variable, dry.envc * sizeof *dry.variable);
    argv[dry.argc + 1 + dry.envc] = NULL;
    hs_strings_tell(job, start, call);
    if (hide_stack(job) != 0)
        return -1;
    each_noted(note);
    return 0;
}

/* Whether a dry run is under way. */
int hs_strings_are_dry(void)
{
    return dry.is_laid;
}

/* Whether some of these bytes are where a dry run cannot look, though a run can. */
int hs_strings_are_hidden(uintptr_t from, size_t size)
{
    return dry.is_laid && from < (uintptr_t)hs_block.end && (uintptr_t)dry.hidden < from + size;
}

/* Makes the stack accessible again, before its state is looked at. */
void hs_strings_show_stack(void)
{
    if (dry.is_laid && dry.hidden < hs_block.end)
        HS_SYS(SYS_mprotect, dry.hidden, hs_block.end - dry.hidden, PROT_READ | PROT_WRITE);
}

/* Removes what was laid, before anything else is. */
void hs_strings_end_dry(void)
{
    if (!dry.is_laid)
        return;
    hs_strings_show_stack();
    HS_SYS(SYS_munmap, hs_laid, sizeof *hs_laid);
    dry.is_laid = 0;
}

/* Whether a fault there is a look at what is hidden in a dry run, or beside what is not. */
int hs_strings_is_hidden(const void *address)
{
    const char *at = address;
    for (uint32_t i = 0; i < dry.readable_count; i++)
        if (at >= dry.readable[i].from && at < dry.readable[i].to)
            return 0;
    if (at >= dry.hidden && at < hs_block.end)
        return 1;
    const int is_behind = at >= dry.end && at < dry.area + sizeof hs_laid->dry[0];
    return at >= (char *)hs_laid && at < (char *)(hs_laid + 1) && !is_behind;
}

/* A place that can never be read. In each dry run it is another, so that no address that a tool has by itself is taken for it. */
const char *hs_strings_hidden(void)
{
    return dry.unreadable;
}

/* Whether this place is laid anew for each request, where the kernel has laid its own. */
int hs_strings_are_laid_at(const void *place)
{
    return place >= (const void *)hs_block.number && place < (const void *)hs_block.end;
}

/* Whether the tool has left all as it was laid for a dry run. */
int hs_strings_are_untouched(const struct hs_job *job, const struct hs_call *call)
{
    const char *slash = strrchr(job->strings, '/');
    const char *name = dry.argument[0], *short_name = name + (slash ? slash + 1 - job->strings : 0);
    int same = hs_layout.is_complete && dry.is_laid && environ == call->envp && program_invocation_name == name &&
               program_invocation_short_name == short_name && each_noted(compare);
    for (uint32_t i = 0; i < hs_layout.count_count; i++)
        same &= *hs_layout.counts[i] == job->head->argc;
    return same;
}

/* How much lies behind each argument at least. */
size_t hs_strings_size_behind(void)
{
    size_t size = (size_t)(dry.end - dry.variable[dry.envc]);
    for (uint32_t i = 0; i < dry.envc; i++)
        size += dry.is_secret[i] ? 1 : strlen(dry.variable[i]) + 1;
    return size;
}

/* Names: no address of x86-64 has these uppermost bits. Below them are the string's number, where the environment's begin at ARGUMENTS_MAX,
 * and how far behind its beginning it is, MIDDLE for 0. */
#define NAME 0x5a17ull
#define MIDDLE 0x40000000l

int hs_strings_is_name(uint64_t word)
{
    return word >> 48 == NAME;
}

struct hs_sought hs_strings_sought(void)
{
    return (struct hs_sought){(uintptr_t)hs_laid, sizeof *hs_laid, NAME};
}

/* The last of some strings, in order of their addresses, that does not begin behind `at`. */
static uint32_t last_before(char *const *strings, uint32_t count, const char *at)
{
    uint32_t index = count - 1;
    while (index > 0 && at < strings[index])
        index--;
    return index;
}

/* Finds the name of an address in the strings of a dry run. Returns 0 if the word is none, and -1 if it cannot be named. */
int hs_strings_name_of(uint64_t word, uint64_t *name)
{
    const char *at = (const char *)(uintptr_t)word;
    if (hs_strings_is_name(word))
        return -1;
    if (at < (char *)hs_laid || at >= (char *)(hs_laid + 1))
        return 0;
    /* The runtime looks there (hs_watch_touch), and may look anywhere. */
    if (at == hs_strings_hidden())
        at = dry.argument[0];
    if (at < dry.area || at > dry.end)
        return -1;
    const int is_variable = at >= dry.variable[0];
    char *const *strings = is_variable ? dry.variable : dry.argument;
    const uint32_t index = last_before(strings, is_variable ? dry.envc + 1 : dry.argc, at);
    *name = NAME << 48 | (uint64_t)(is_variable ? ARGUMENTS_MAX + index : index) << 32 | (uint64_t)(at - strings[index] + MIDDLE);
    return 1;
}

/* Where a name leads in the strings of the request that is laid. */
uint64_t hs_strings_address(uint64_t name)
{
    const uint64_t index = name >> 32 & 0xffff, argc = ((uint64_t *)hs_layout.argv)[-1];
    const char *begin = index < ARGUMENTS_MAX ? hs_layout.argv[index] : hs_layout.argv[argc + 1 + index - ARGUMENTS_MAX];
    return (uint64_t)(uintptr_t)(begin ? begin : hs_layout.end) + (name & 0xffffffff) - MIDDLE;
}

#endif
