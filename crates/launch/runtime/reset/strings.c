/* Places the arguments and environment of a request, and the pointers to them.
 *
 * All lies where the kernel has laid it in this process, and in the same order: number, arrays, auxiliary vector; random bytes and the
 * platform's name; then, up to the program's path and eight bytes of zero at the end of the stack, the strings side by side. So a tool
 * that compares these addresses, or reads or writes beyond its own frame or a string, meets what it meets in a fresh process. A zygote is
 * given more arguments, and a longer one, than its requests have (crates/launch/src/warm/refused.rs), which makes room for all this. Where
 * a request takes less, there are zeros in between, as the kernel leaves some kilobytes by chance. What a run has written there is gone
 * before the next.
 *
 * In a dry run strings lie elsewhere (deferred/dry.c). A tool whose constructors keep a pointer to a string is cold (fork/snapshot.c).
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

#include "reset/strings.h"

extern char **environ;
extern char *__progname, *__progname_full;
extern char *program_invocation_name, *program_invocation_short_name;

/* From the end of the last mapping below, and to its own end. */
#define APART (4 * PAGE)

struct hs_laid *hs_laid;
struct hs_layout hs_layout;
struct hs_block hs_block;

/* Bytes of addresses that have the same upper half. */
#define HALF (1ul << 32)
/* Where else to look in them, and how far below the stack, which may grow. */
#define PLACES 16
#define GROWTH (HALF / 2)

int hs_strings_map(void)
{
    const long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    const long made = HS_SYS(SYS_mmap, (long)hs_laid, sizeof *hs_laid, PROT_NONE, flags, -1, 0);
    /* An older kernel takes the address for a hint. */
    if (made > 0 && made != (long)hs_laid)
        HS_SYS(SYS_munmap, made, sizeof *hs_laid);
    return made == (long)hs_laid ? 0 : -1;
}

/* Chooses this place for it; 0 if that is not free. In a run nothing is there, as in a fresh process. */
static int open_at(uintptr_t wanted)
{
    hs_laid = (struct hs_laid *)wanted;
    const int is_free = hs_strings_map() == 0;
    if (is_free)
        HS_SYS(SYS_munmap, hs_laid, sizeof *hs_laid);
    else
        hs_laid = NULL;
    return is_free;
}

/* Whether nothing can be mapped right behind this address: addresses are not random, and the stack ends where all memory ends. */
static int is_last(uintptr_t end)
{
    const long made = HS_SYS(SYS_mmap, end, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (made > 0)
        HS_SYS(SYS_munmap, made, PAGE);
    return made != (long)end;
}

/* Chooses a place above the stack; -1 if there is none. Only where addresses are not random it lies below. Its addresses have the same
 * upper half as those that the kernel made: constructors may have kept that half, as observation runs do not vary it
 * (crates/launch/src/warm/observe/block.rs). Where that half ends soon behind the stack, once in some hundred processes, there is no
 * place, and another process becomes the zygote. */
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
        const uintptr_t behind = wanted + sizeof *hs_laid;
        const int is_clear = wanted > end || (may_be_below && behind + GROWTH <= (uintptr_t)start->argv);
        if (wanted >= half && behind <= half + HALF && is_clear && open_at(wanted))
            return 0;
        wanted = half + place * (HALF / PLACES) + APART;
    }
    return -1;
}

/* The kernel's random bytes for this process; NULL if it has given none. */
char *hs_strings_random(void)
{
    static char *bytes;
    if (!bytes)
        bytes = (char *)getauxval(AT_RANDOM);
    return bytes;
}

/* Finds what the kernel has laid; -1 if it is not as expected. */
static int find_block(const struct hs_start *start)
{
    const char *const platform = (const char *)getauxval(AT_PLATFORM), *const random = hs_strings_random();
    char **end = start->envp;
    while (*end)
        end++;
    const uintptr_t *word = (const uintptr_t *)(end + 1);
    hs_block.number = (char *)(start->argv - 1);
    hs_block.auxiliary = (char *)word;
    while (*word)
        word += 2;
    hs_block.room = hs_block.auxiliary_end = (char *)(word + 2);
    hs_block.words = (size_t)(word + 2 - (uintptr_t *)hs_block.auxiliary);
    if (hs_block.words > VECTOR_MAX)
        return -1;
    memcpy(hs_block.copy, hs_block.auxiliary, hs_block.words * sizeof *hs_block.copy);
    hs_block.path = (char *)getauxval(AT_EXECFN);
    if (hs_block.path < hs_block.room || random < hs_block.room || random >= hs_block.path)
        return -1;
    hs_block.path_size = strlen(hs_block.path) + 1;
    hs_block.end = hs_block.path + hs_block.path_size + TAIL;
    if (page_of(hs_block.end) != hs_block.end)
        return -1;
    hs_block.room = (char *)random + HS_RANDOM_BYTES;
    if (platform >= hs_block.room && platform < hs_block.path)
        hs_block.room = (char *)platform + strlen(platform) + 1;
    return hs_block.room <= hs_block.path && hs_block.end - hs_block.number <= NOTED_ROOM ? 0 : -1;
}

/* Takes the place for requests' strings, for all forks of this zygote; -1 if there is none. What is on the stack of its own arguments and
 * environment goes, as nothing leads there any more. */
int hs_strings_open(const struct hs_start *start)
{
    if (open_above(start) != 0 || find_block(start) != 0)
        return -1;
    hs_zero((uintptr_t)hs_block.room, (uintptr_t)hs_block.path);
    return 0;
}

/* Where strings lie that do not lie on the stack. */
struct hs_place hs_strings_place(void)
{
    return (struct hs_place){(char *)hs_laid, hs_laid ? sizeof *hs_laid : 0};
}

/* Takes note of where the tool keeps the number of arguments; -1 if it is not there. A worker knows it from its zygote. */
int hs_strings_learn_counts(const struct hs_job *job, const struct hs_start *start)
{
    if (hs_layout.count_count || !job->head->count_count)
        return hs_layout.count_count == job->head->count_count ? 0 : -1;
    for (uint32_t i = 0; i < job->head->count_count; i++) {
        hs_layout.counts[i] = (uint32_t *)(uintptr_t)job->counts[i];
        if (*hs_layout.counts[i] != (uint32_t)start->argc)
            return -1;
    }
    hs_layout.count_count = job->head->count_count;
    return 0;
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

/* Has the arrays, which are complete, followed by the auxiliary vector, and tells them to all that main or libc may ask. The vector stays
 * where it was as well, since libc looks for it there. */
void hs_strings_tell(const struct hs_job *job, const struct hs_start *start, struct hs_call *call)
{
    const uint32_t argc = job->head->argc;
    char **const argv = start->argv;
    char *const behind = (char *)(argv + argc + job->head->envc + 2);
    const size_t size = (size_t)(hs_block.auxiliary_end - hs_block.auxiliary);
    ((long *)argv)[-1] = argc;
    hs_layout.argv = argv;
    hs_layout.is_complete = behind + size <= hs_block.auxiliary;
    if (hs_layout.is_complete)
        memcpy(behind, hs_block.auxiliary, size);
    hs_layout.behind = hs_layout.is_complete ? behind + size : behind;
    zero(hs_layout.behind, hs_block.auxiliary);
    *call = (struct hs_call){(int)argc, argv, argv + argc + 1};
    for (uint32_t i = 0; i < hs_layout.count_count; i++)
        *hs_layout.counts[i] = argc;
    hs_loader_tell(call);
    environ = call->envp;
    char *slash = strrchr(argv[0], '/');
    program_invocation_name = __progname_full = argv[0];
    program_invocation_short_name = __progname = slash ? slash + 1 : argv[0];
}

/* Puts the request's arguments and environment wherever libc, the kernel and main look for them. */
void hs_strings_lay(const struct hs_job *job, const struct hs_start *start, struct hs_call *call)
{
    const size_t size = (size_t)(job->end - job->strings);
    /* Its zygote was given as many strings as its requests can have. */
    if (size > (size_t)(hs_block.path - hs_block.room))
        __builtin_trap();
    draw();
    hs_layout.end = hs_block.path;
    hs_layout.begin = hs_layout.end - size;
    zero(hs_block.room, hs_layout.begin);
    hs_layout.environment = hs_layout.begin + (job->environment - job->strings);
    memcpy(hs_layout.begin, job->strings, size);
    point_at(point_at(start->argv, hs_layout.begin, job->head->argc), hs_layout.environment, job->head->envc);
    hs_strings_tell(job, start, call);
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
    /* Of a dry run nothing is believed. */
    if (hs_strings_are_dry())
        return 1;
    for (size_t i = 0; i < hs_block.words; i++)
        if (hs_block.copy[i] != ((const volatile uintptr_t *)hs_block.auxiliary)[i])
            return 0;
    return is_zero(hs_layout.behind, hs_block.auxiliary) && is_zero(hs_block.room, hs_layout.begin);
}
#endif

/* Has the kernel show these strings to others; 0 if it does. */
int hs_strings_show(void)
{
    return hs_title_set(hs_layout.begin, hs_layout.environment, hs_layout.end);
}

/* Between two requests. */
void hs_strings_hide(void)
{
    if (hs_layout.begin)
        hs_title_hide_strings(hs_layout.begin, hs_layout.end);
}

