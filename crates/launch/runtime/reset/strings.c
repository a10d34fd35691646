/* Places the arguments and environment of a request, and the pointers to them.
 *
 * All lies where the kernel has laid it in this process, and in the same order: number, arrays, auxiliary vector; random bytes and the
 * platform's name; then, up to the program's path and eight bytes of zero at the end of the stack, the strings side by side. So a tool
 * that compares these addresses, or reads or writes beyond its own frame or a string, meets what it meets in a fresh process. A zygote is
 * given more arguments, and a longer one, than its requests have (crates/launch/src/warm/refused.rs), which makes room for all this. Where
 * a request takes less, there are zeros in between, as the kernel leaves some kilobytes by chance. What a run has written there is gone
 * before the next.
 *
 * A tool that keeps a pointer to a variable, which its constructors asked for, is given its strings elsewhere: above the stack.
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
 *
 * Tools that keep the number of arguments before main (Rust's library does) have each request's number written into those
 * words, which the runner has found by observing the tool (crates/launch/src/warm/observe/compare.rs).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "runtime.h"

extern char **environ;
extern char *__progname, *__progname_full;
extern char *program_invocation_name, *program_invocation_short_name;

#define PAGE 4096
/* As many strings as a message has, and the program's name. */
#define STRINGS_ROOM (HS_MESSAGE_MAX + 2 * PAGE)
/* The most that a zygote has on the stack above its frames, and more than that. */
#define NOTED_ROOM (512 * 1024)
/* Zero bytes behind the last string (fs/exec.c). */
#define TAIL 8
/* Words of an auxiliary vector (AT_VECTOR_SIZE in the kernel is smaller). */
#define VECTOR_MAX 256
/* Arguments of a dry run, and the longest that one of them seems to be. */
#define ARGUMENTS_MAX 256
#define LENGTH_MAX 256
/* In one dry run of three arguments are aligned to this, and not in the others: a tool that asks gets different answers. */
#define ALIGNED 64
/* From one hidden argument to the next: next to nothing, and then more than nearly all arguments are long. */
#define NEAR_MAX 8
/* Pages around a secret variable in a dry run, at most. */
#define PAGES_OF_SECRET 6
#define FAR (2 * PAGE)
_Static_assert(STRINGS_ROOM % PAGE == 0, "the strings end a page");

/* Memory above the stack. No snapshot has it (hs_strings_place). */
static struct laid {
    /* Of dry runs; nothing else can read this. Each place has an area of its own, so that no number of a page or of a larger piece of
     * memory is the same in all. */
    union area {
        struct {
            char before[PAGE]; /* can never be read */
            char names[6][PAGE]; /* one has the first argument at its end, and the one before it may have what lies before that */
            char arguments[(ARGUMENTS_MAX + 6) * PAGE], environment[STRINGS_ROOM + (PAGES_OF_SECRET * HS_SECRETS_MAX + 12) * PAGE];
            char behind[PAGE]; /* can never be read */
        };
        char all[2ul << 20];
    } dry[HS_DRY_PLACES];
    char noted[NOTED_ROOM];     /* a copy of what lies on the stack, while a dry run goes on */
    char strings[STRINGS_ROOM]; /* those that do not lie on the stack */
} *laid;
_Static_assert((ARGUMENTS_MAX + 2) / 2 * (FAR + NEAR_MAX) + 2 * PAGE <= sizeof laid->dry->arguments, "all arguments have room");
_Static_assert(HS_MESSAGE_MAX <= sizeof laid->dry->arguments, "also with their own lengths");
_Static_assert(sizeof(union area) == sizeof laid->dry->all, "an area is large enough");
/* From the end of the last mapping below, and to its own end. */
#define APART (4 * PAGE)

static struct {
    int keeps_variables; /* the tool does, so that strings lie above the stack */
    int is_dry;          /* a dry run is under way, of which nothing is believed */
    int is_complete;     /* the request's arrays and auxiliary vector lie below the kernel's */
    char **argv;
    char *behind;                    /* the arrays, and the vector if that has room there */
    char *begin, *environment, *end; /* of the strings */
    /* Where the tool keeps the number of arguments. */
    uint32_t *counts[HS_COUNTS_MAX], count_count;
} layout;

/* What the kernel has laid on the stack, from low to high addresses. */
static struct {
    char *number;                                /* of arguments, right before their array */
    char *auxiliary, *auxiliary_end;             /* the vector, for which libraries look behind the environment */
    char *room;                                  /* from there on strings may lie: behind the random bytes and the platform's name */
    char *path, *end;                            /* the program's, and the zeros behind it */
    size_t path_size;
    uintptr_t copy[VECTOR_MAX]; /* of the vector */
    size_t words;
} block;

/* Bytes of addresses that have the same upper half. */
#define HALF (1ul << 32)
/* Where else to look in them, and how far below the stack, which may grow. */
#define PLACES 16
#define GROWTH (HALF / 2)

/* Takes memory for it here; 0 if that is not free. */
static int open_at(uintptr_t wanted)
{
    const long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    const long made = HS_SYS(SYS_mmap, (long)wanted, sizeof *laid, PROT_READ | PROT_WRITE, flags, -1, 0);
    /* An older kernel takes the address for a hint. */
    if (made > 0 && made != (long)wanted)
        HS_SYS(SYS_munmap, made, sizeof *laid);
    if (made != (long)wanted)
        return 0;
    laid = (struct laid *)made;
    return 1;
}

/* Whether nothing can be mapped right behind this address: addresses are not random, and the stack ends where all memory ends. */
static int is_last(uintptr_t end)
{
    const long made = HS_SYS(SYS_mmap, end, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (made > 0)
        HS_SYS(SYS_munmap, made, PAGE);
    return made != (long)end;
}

/* Takes memory above the stack; -1 if there is none. Only where addresses are not random it lies below. Its addresses have the same upper
 * half as those that the kernel made: constructors may have kept that half, as observation runs do not vary it
 * (crates/launch/src/warm/observe/block.rs). Where that half ends soon behind the stack, once in some hundred processes, there is no place,
 * and another process becomes the zygote. */
static int open_above(const struct hs_start *start)
{
    struct hs_mapping map;
    uintptr_t end = 0;
    for (const char *at = hs_maps_read(); at && (at = hs_maps_next(at, &map));)
        if (strcmp(map.path, "[vsyscall]") != 0)
            end = map.to;
    const uintptr_t half = (uintptr_t)start->argv & -HALF;
    uintptr_t wanted = end + APART;
    const int may_be_below = is_last(end);
    for (int place = 0; place <= PLACES; place++) {
        const uintptr_t behind = wanted + sizeof *laid;
        const int is_clear = wanted > end || (may_be_below && behind + GROWTH <= (uintptr_t)start->argv);
        if (wanted >= half && behind <= half + HALF && is_clear && open_at(wanted))
            return HS_SYS(SYS_mprotect, laid->dry, sizeof laid->dry, PROT_NONE) == 0 ? 0 : -1;
        wanted = half + place * (HALF / PLACES) + APART;
    }
    return -1;
}

static char *page_of(const char *at)
{
    return (char *)((uintptr_t)at & -(uintptr_t)PAGE);
}

/* The kernel's random bytes for this process; NULL if it has given none. */
char *hs_strings_random(void)
{
    static char *bytes;
    if (!bytes)
        bytes = (char *)getauxval(AT_RANDOM);
    return bytes;
}

/* The variables as the kernel has laid them, and a copy. */
static struct {
    const char *strings;
    char *copy;
    size_t size;
} variables;

/* Takes note of them, where they stay; -1 if there is no memory. */
static int note_variables(const struct hs_start *start)
{
    uintptr_t low, high, from = 0, to = 0;
    hs_title_stack(&low, &high);
    /* The loader may have put a copy of its own in the place of one (GLIBC_TUNABLES). */
    for (char **variable = start->envp; *variable; variable++) {
        const uintptr_t at = (uintptr_t)*variable, end = at + strlen(*variable) + 1;
        if (at < low || end > high)
            continue;
        from = from && from < at ? from : at;
        to = end > to ? end : to;
    }
    if (!from)
        return 0;
    variables.strings = (const char *)from;
    variables.size = to - from;
    variables.copy = hs_own_map(variables.size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (variables.copy == MAP_FAILED)
        return -1;
    memcpy(variables.copy, variables.strings, variables.size);
    return 0;
}

/* Finds what the kernel has laid; -1 if it is not as expected. */
static int find_block(const struct hs_start *start)
{
    const char *const platform = (const char *)getauxval(AT_PLATFORM), *const random = hs_strings_random();
    char **end = start->envp;
    while (*end)
        end++;
    const uintptr_t *word = (const uintptr_t *)(end + 1);
    block.number = (char *)(start->argv - 1);
    block.auxiliary = (char *)word;
    while (*word)
        word += 2;
    block.room = block.auxiliary_end = (char *)(word + 2);
    block.words = (size_t)(word + 2 - (uintptr_t *)block.auxiliary);
    if (block.words > VECTOR_MAX)
        return -1;
    memcpy(block.copy, block.auxiliary, block.words * sizeof *block.copy);
    block.path = (char *)getauxval(AT_EXECFN);
    if (block.path < block.room || random < block.room || random >= block.path)
        return -1;
    block.path_size = strlen(block.path) + 1;
    block.end = block.path + block.path_size + TAIL;
    if (page_of(block.end) != block.end)
        return -1;
    block.room = (char *)random + HS_RANDOM_BYTES;
    if (platform >= block.room && platform < block.path)
        block.room = (char *)platform + strlen(platform) + 1;
    return block.room <= block.path && block.end - block.number <= NOTED_ROOM ? 0 : -1;
}

/* Takes the place for requests' strings, for all forks of this zygote; -1 if there is none. What is on the stack of its own arguments and
 * environment goes, as nothing leads there any more. */
int hs_strings_open(const struct hs_start *start)
{
    if (open_above(start) != 0 || find_block(start) != 0)
        return -1;
    if (layout.keeps_variables)
        return note_variables(start);
    hs_zero((uintptr_t)block.room, (uintptr_t)block.path);
    return 0;
}

/* Where strings lie that do not lie on the stack. */
struct hs_place hs_strings_place(void)
{
    return (struct hs_place){(char *)laid, laid ? sizeof *laid : 0};
}

/* Takes note of where the tool keeps the number of arguments; -1 if it is not there. A worker knows it from its zygote. */
int hs_strings_learn_counts(const struct hs_job *job, const struct hs_start *start)
{
    if (layout.count_count || !job->head->count_count)
        return layout.count_count == job->head->count_count ? 0 : -1;
    for (uint32_t i = 0; i < job->head->count_count; i++) {
        layout.counts[i] = (uint32_t *)(uintptr_t)job->counts[i];
        if (*layout.counts[i] != (uint32_t)start->argc)
            return -1;
    }
    layout.count_count = job->head->count_count;
    return 0;
}

/* The tool keeps a pointer to a variable. It stays where it is. */
void hs_strings_keep_variables(void)
{
    layout.keeps_variables = 1;
}

static char **point_at(char **out, char *strings, uint32_t count)
{
    for (; count; count--) {
        *out++ = strings;
        strings += strlen(strings) + 1;
    }
    *out++ = NULL;
    return out;
}

/* Draws them anew for each request: programs take seeds and the names of files from there. libc has made its guards of them before main,
 * which stay. */
static void draw(void)
{
#ifndef HS_WITHOUT_RANDOM
    if (hs_strings_random())
        HS_SYS(SYS_getrandom, hs_strings_random(), HS_RANDOM_BYTES, 0);
#endif
}

static void clear(void *from, void *to)
{
    if (!hs_memory_clear((uintptr_t)from, (uintptr_t)to))
        hs_zero((uintptr_t)from, (uintptr_t)to);
}

static void zero(char *from, char *to)
{
    if (from < to)
        hs_zero((uintptr_t)from, (uintptr_t)to);
}

/* Clears all that runs may have written to above the stack. The pages that this request needs are written with zeros, all others dropped:
 * that takes less time than to ask which of them exist. */
static void clear_above(char *begin)
{
    char *const low = page_of(begin);
    if (laid->strings < low && HS_SYS(SYS_madvise, laid->strings, low - laid->strings, MADV_DONTNEED) != 0)
        clear(laid->strings, low);
    hs_zero((uintptr_t)low, (uintptr_t)(laid + 1));
}

/* Has the arrays, which are complete, followed by the auxiliary vector, and tells them to all that main or libc may ask. The vector stays
 * where it was as well, since libc looks for it there. */
static void tell(const struct hs_job *job, const struct hs_start *start, struct hs_call *call)
{
    const uint32_t argc = job->head->argc;
    char **const argv = start->argv;
    char *const behind = (char *)(argv + argc + job->head->envc + 2);
    const size_t size = (size_t)(block.auxiliary_end - block.auxiliary);
    ((long *)argv)[-1] = argc;
    layout.argv = argv;
    layout.is_complete = behind + size <= block.auxiliary;
    if (layout.is_complete)
        memcpy(behind, block.auxiliary, size);
    layout.behind = layout.is_complete ? behind + size : behind;
    zero(layout.behind, block.auxiliary);
    *call = (struct hs_call){(int)argc, argv, argv + argc + 1};
    for (uint32_t i = 0; i < layout.count_count; i++)
        *layout.counts[i] = argc;
    hs_loader_tell(call);
    environ = call->envp;
    char *slash = strrchr(argv[0], '/');
    program_invocation_name = __progname_full = argv[0];
    program_invocation_short_name = __progname = slash ? slash + 1 : argv[0];
}

/* Whether strings of this size lie on the stack. */
static int fit_on_stack(size_t size)
{
    return !layout.keeps_variables && size <= (size_t)(block.path - block.room);
}

/* Puts the request's arguments and environment wherever libc, the kernel and main look for them. */
void hs_strings_lay(const struct hs_job *job, const struct hs_start *start, struct hs_call *call)
{
    const size_t size = (size_t)(job->end - job->strings);
    draw();
    if (fit_on_stack(size)) {
        layout.end = block.path;
        layout.begin = layout.end - size;
        zero(block.room, layout.begin);
    } else {
        layout.end = (char *)(laid + 1) - TAIL - block.path_size;
        layout.begin = layout.end - size;
        clear_above(layout.begin);
        memcpy(layout.end, block.path, block.path_size);
    }
    layout.environment = layout.begin + (job->environment - job->strings);
    memcpy(layout.begin, job->strings, size);
    point_at(point_at(start->argv, layout.begin, job->head->argc), layout.environment, job->head->envc);
    tell(job, start, call);
}

#if HS_RESETS
HS_GENERAL static int is_zero(const char *from, const char *to)
{
    const uintptr_t mask = sizeof(long) - 1;
    for (; from < to && (uintptr_t)from & mask; from++)
        if (*from)
            return 0;
    for (; from + sizeof(long) <= to; from += sizeof(long))
        if (*(const volatile long *)from)
            return 0;
    for (; from < to; from++)
        if (*(const volatile char *)from)
            return 0;
    return 1;
}

/* Whether a run has left what lies between its arrays and its strings as it was. There is more of it than in a fresh process: what runs
 * over a buffer of main's so far may have run over the end of the stack there. */
int hs_strings_are_kept(void)
{
    if (layout.is_dry)
        return 1;
    /* A constructor may have kept one that it asked for. main has another, with the same text. */
    for (size_t i = 0; i < variables.size; i++)
        if (((const volatile char *)variables.copy)[i] != variables.strings[i])
            return 0;
    for (size_t i = 0; i < block.words; i++)
        if (block.copy[i] != ((const volatile uintptr_t *)block.auxiliary)[i])
            return 0;
    const char *const begin = layout.end == block.path ? layout.begin : block.room;
    return is_zero(layout.behind, block.auxiliary) && is_zero(block.room, begin);
}
#endif

/* Has the kernel show these strings to others; 0 if it does. */
int hs_strings_show(void)
{
    return hs_title_set(layout.begin, layout.environment, layout.end);
}

/* Between two requests. */
void hs_strings_hide(void)
{
    if (layout.begin)
        hs_title_hide_strings(layout.begin, layout.end);
}

/* The first page behind the request's arrays and auxiliary vector. */
static char *behind_arrays(const struct hs_job *job)
{
    char *const behind = block.number + (job->head->argc + job->head->envc + 3 + block.words) * sizeof(char *);
    return page_of(behind + PAGE - 1);
}

/* Whether a dry run can be made of this request, and serve it: no string lies where a dry run can look. */
int hs_strings_are_complete(const struct hs_job *job)
{
    const int is_behind = layout.keeps_variables || (layout.end == block.path && layout.begin >= behind_arrays(job));
    return layout.is_complete && is_behind && job->head->argc <= ARGUMENTS_MAX && job->environment <= job->end &&
           strlen(job->strings) < PAGE;
}

#if HS_RESETS

/* The strings of a dry run, while one is laid. Pages that are not in `readable` cannot be read, up to `end`. */
static struct {
    int is_laid;
    union area *area;
    char *hidden;  /* from there on the stack cannot be read, up to its end */
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

/* Says where hidden strings are on their pages. So no bit of an address is the same in an ODD run and an OTHER one, nor whether an
 * argument is longer than most numbers. */
static void choose_offset(unsigned turn)
{
    static uint16_t offsets[ARGUMENTS_MAX + 1];
    uint16_t *const offset = &offsets[dry.argc];
    const enum place place = turn % HS_DRY_PLACES;
    if (turn % ODD_AGAIN == ODD)
        HS_SYS(SYS_getrandom, offset, sizeof *offset, 0);
    dry.offset = is_joined(place) ? 0 : place == ODD ? *offset & (PAGE - 1) : ~*offset & (PAGE - 1);
}

/* Lays every other argument near to the one before it, and the rest far apart. */
static void place_apart(enum place place)
{
    const uint32_t steps = place == ODD ? dry.offset : ~dry.offset;
    char *at = dry.area->arguments + dry.offset;
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
    dry.argument[0] = dry.area->names[is_joined(place) ? 5 : 2 * place - 1] + PAGE - name_size;
    if (!is_joined(place)) {
        place_apart(place);
        return;
    }
    char *at = dry.area->arguments;
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
    char *end = dry.end - TAIL - block.path_size;
    if (open_pages(end, dry.end) != 0)
        return NULL;
    memcpy(end, block.path, block.path_size);
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
    char strings[sizeof laid->dry->names + sizeof laid->dry->environment + PAGE];
} noted;

/* Calls `visit` with each part that a dry run may write to, and its copy; whether all calls returned 0. */
static int each_noted(int (*visit)(void *part, void *copy, size_t size))
{
    int found = visit(block.number, laid->noted, (size_t)(dry.hidden - block.number));
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
 * let it. */
static int hide_stack(const struct hs_job *job)
{
    dry.hidden = layout.keeps_variables ? block.end : behind_arrays(job);
    if (dry.hidden == block.end)
        return 0;
    zero(block.room, dry.hidden);
    return HS_SYS(SYS_mprotect, dry.hidden, block.end - dry.hidden, PROT_NONE) == 0 ? 0 : -1;
}

/* Where the environment of a dry run ends. In one of these it is as near to the arrays as it can be: a tool may ask whether it is. */
static char *end_of(const struct hs_job *job, enum place place)
{
    size_t size = dry.argc * LENGTH_MAX + (size_t)(job->end - job->environment) + block.path_size + 2 * PAGE;
    for (uint32_t i = 0; i < dry.envc; i++)
        size += dry.is_secret[i] ? PAGES_OF_SECRET * PAGE : 0;
    if (place == JOINED && size < sizeof dry.area->arguments)
        return page_of(dry.area->arguments + size);
    return dry.area->behind - 2 * PAGE * place;
}

/* Lays the strings of a dry run, of which there were `turn` before, and which learns or compares; -1 if the kernel does not let it. With
 * one argument, nothing about it is unknown, so that it lies as in a run. */
int hs_strings_lay_dry(const struct hs_job *job, const struct hs_start *start, struct hs_call *call, const unsigned char *is_secret,
                       unsigned turn, int is_learned)
{
    const enum place place = turn % HS_DRY_PLACES;
    const size_t name_size = strlen(job->strings) + 1;
    unsigned char random[ARGUMENTS_MAX];
    HS_SYS(SYS_getrandom, random, sizeof random, 0);
    dry.argc = job->head->argc;
    dry.envc = job->head->envc;
    dry.is_secret = is_secret;
    dry.area = &laid->dry[place];
    choose_offset(turn);
    dry.readable_count = 0;
    dry.is_laid = layout.is_dry = 1;
    dry.end = end_of(job, place);
    char *const environment = lay_environment(job, place);
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
    tell(job, start, call);
    if (hide_stack(job) != 0)
        return -1;
    each_noted(note);
    return 0;
}

/* Makes the stack accessible again, before its state is looked at. */
void hs_strings_show_stack(void)
{
    if (dry.is_laid && dry.hidden < block.end)
        HS_SYS(SYS_mprotect, dry.hidden, block.end - dry.hidden, PROT_READ | PROT_WRITE);
}

/* Clears what was laid, before anything else is. */
void hs_strings_end_dry(void)
{
    if (!dry.is_laid)
        return;
    hs_strings_show_stack();
    for (uint32_t i = 0; i < dry.readable_count; i++)
        clear(dry.readable[i].from, dry.readable[i].to);
    HS_SYS(SYS_mprotect, laid->dry, sizeof laid->dry, PROT_NONE);
    dry.is_laid = layout.is_dry = 0;
}

/* Whether a fault there is a look at what is hidden in a dry run, or beside what is not. */
int hs_strings_is_hidden(const void *address)
{
    const char *at = address;
    for (uint32_t i = 0; i < dry.readable_count; i++)
        if (at >= dry.readable[i].from && at < dry.readable[i].to)
            return 0;
    if (at >= dry.hidden && at < block.end)
        return 1;
    const int is_behind = at >= dry.end && at < dry.area->all + sizeof *dry.area;
    return at >= laid->dry->all && at < laid->noted && !is_behind;
}

/* A place that can never be read. */
const char *hs_strings_hidden(void)
{
    return laid->dry->before;
}

/* Whether this place is laid anew for each request, where the kernel has laid its own. */
int hs_strings_are_laid_at(const void *place)
{
    return place >= (const void *)block.number && place < (const void *)block.end;
}

/* Whether the tool has left all as it was laid for a dry run. */
int hs_strings_are_untouched(const struct hs_job *job, const struct hs_call *call)
{
    const char *slash = strrchr(job->strings, '/');
    const char *name = dry.argument[0], *short_name = name + (slash ? slash + 1 - job->strings : 0);
    int same = layout.is_complete && dry.is_laid && environ == call->envp && program_invocation_name == name &&
               program_invocation_short_name == short_name && each_noted(compare);
    for (uint32_t i = 0; i < layout.count_count; i++)
        same &= *layout.counts[i] == job->head->argc;
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
    const uint64_t from = (uintptr_t)laid->dry->all;
    return (struct hs_sought){from, (uintptr_t)laid->noted - from, NAME};
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
    if (at < laid->dry->all || at >= laid->noted)
        return 0;
    /* The runtime looks there (hs_watch_touch), and may look anywhere. */
    if (at == hs_strings_hidden())
        at = dry.argument[0];
    if (at < dry.area->all || at > dry.end)
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
    const uint64_t index = name >> 32 & 0xffff, argc = ((uint64_t *)layout.argv)[-1];
    const char *begin = index < ARGUMENTS_MAX ? layout.argv[index] : layout.argv[argc + 1 + index - ARGUMENTS_MAX];
    return (uint64_t)(uintptr_t)(begin ? begin : layout.end) + (name & 0xffffffff) - MIDDLE;
}

#endif
