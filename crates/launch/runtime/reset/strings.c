/* Places the arguments and environment of a request, and the pointers to them.
 *
 * In a worker the address of each string depends on its index alone, and that of each pointer on the number of arguments. So a tool that
 * has copied the pointers, but has read no string, is in the same state for all requests with as many arguments (point.c). A request with
 * a string too long for its place keeps its strings where they were received.
 *
 * The name of a variable ends a page and its value begins the next. So page faults tell whether a tool has read a value or only names
 * (watch.c).
 *
 * Tools that keep the number of arguments before main (Rust's library does) have each request's number written into those
 * words, which the runner has found by observing the tool (crates/launch/src/warm/observe/compare.rs).
 *
 * The arrays come before the strings. A tool that overwrites its arguments as one area, from the first to the last, then meets only
 * strings. All lies above the stack, as what the kernel has laid there does: a tool may tell by its address whether something is local.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "runtime.h"

extern char **environ;
extern char *__progname, *__progname_full;
extern char *program_invocation_name, *program_invocation_short_name;

#define PAGE 4096
/* Each argument but the first; a room is no power of two, so that they do not meet in the processor's caches. */
#define ARGUMENTS_MAX 256
#define ARGUMENT_ROOM 2112
/* Bytes before an argument, and behind a variable, that are as the kernel lays them. */
#define BEFORE 64
#define BEHIND 64
#define POINTERS_OF_PAGE (PAGE / sizeof(char *))

/* The fixed addresses: of each string by its index, of each array by its length. No snapshot has them (hs_strings_place). */
static struct laid {
    /* At its end: the environment's array follows the arguments', as the kernel has it, and their number comes before them. */
    char *arguments[POINTERS_OF_PAGE];
    char *variables[7 * POINTERS_OF_PAGE]; /* and the auxiliary vector behind them */
    char name[PAGE];                       /* at its end: what follows it cannot be read in a watched run */
    char behind_name[PAGE];
    char argument[ARGUMENTS_MAX][ARGUMENT_ROOM];
    struct {
        char name[PAGE], value[PAGE];
    } variable[HS_VARIABLES_MAX];
} *laid;
/* From the end of the last mapping below, and to its own end. */
#define APART (16 * PAGE)
_Static_assert(ARGUMENTS_MAX * ARGUMENT_ROOM % PAGE == 0, "the variables begin a page");

/* While `is_fixed`, the request lies at its fixed addresses, with the counts and sizes that are noted here; `shown` and
 * `variables_shown` are its strings as they were received, where the kernel shows them. */
static struct {
    int is_apart; /* main's arrays are not the kernel's */
    int in_place; /* or are they, since the tool keeps a pointer to them? */
    int is_fixed;
    char *shown, *variables_shown;
    uint32_t argument_count, variable_count;
    /* Of each variable, what was received behind it, and whether that lies behind it here as well. */
    const char *behind[HS_VARIABLES_MAX];
    char is_followed[HS_VARIABLES_MAX];
    uint16_t argument_size[ARGUMENTS_MAX], name_size[HS_VARIABLES_MAX], value_size[HS_VARIABLES_MAX];
    /* Where the tool keeps the number of arguments. */
    uint32_t *counts[HS_COUNTS_MAX], count_count;
    /* The auxiliary vector, which the kernel laid behind the environment, and for which libraries look there. */
    const uintptr_t *auxiliary;
    size_t auxiliary_words;
    /* The program's name, which the kernel lays behind the last string. */
    const char *last;
    size_t last_size;
} layout;

/* Takes the place, for all forks of this zygote; -1 if there is none. Where addresses are not random, the stack is the last thing: then it
 * is among the runtime's other memory. */
int hs_strings_open(void)
{
    struct hs_mapping map;
    uintptr_t end = 0;
    for (const char *at = hs_maps_read(); at && (at = hs_maps_next(at, &map));)
        if (strcmp(map.path, "[vsyscall]") != 0)
            end = map.to;
    const long wanted = (long)(end + APART), flags = MAP_PRIVATE | MAP_ANONYMOUS;
    long made = HS_SYS(SYS_mmap, wanted, sizeof *laid, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, -1, 0);
    /* An older kernel takes the place for a wish. */
    if (made > 0 && made != wanted)
        HS_SYS(SYS_munmap, made, sizeof *laid);
    if (made != wanted)
        made = (long)hs_own_map(sizeof *laid, flags, -1);
    if (made == (long)MAP_FAILED)
        return -1;
    laid = (struct laid *)made;
    return 0;
}

/* Where the strings and arrays of a request are. */
struct hs_secret hs_strings_place(void)
{
    return (struct hs_secret){(char *)laid, laid ? sizeof *laid : 0};
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

/* The tool keeps a pointer to the arrays that the kernel made, which main must then be given, as it may change them. They cannot be
 * watched, so there are no deferred snapshots. */
void hs_strings_keep_list(void)
{
    layout.in_place = 1;
}

/* Finds the auxiliary vector, and the string that it tells of, before the first request is laid out. */
static void find_auxiliary(const struct hs_start *start)
{
    char **end = start->envp;
    while (*end)
        end++;
    layout.auxiliary = (const uintptr_t *)(end + 1);
    for (layout.auxiliary_words = 0; layout.auxiliary[layout.auxiliary_words]; layout.auxiliary_words += 2)
        ;
    layout.auxiliary_words += 2;
    layout.last = (const char *)getauxval(AT_EXECFN);
    layout.last_size = layout.last ? strlen(layout.last) + 1 : 0;
}

/* From here on, main's arrays are apart from the ones that the kernel made. */
void hs_strings_part(void)
{
    layout.is_apart = 1;
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

/* Where an argument is if each has its place. */
HS_GENERAL static char *place_of(uint32_t index)
{
    return index ? laid->argument[index] : laid->name + sizeof laid->name - layout.argument_size[0];
}

/* Copies without vector registers. */
static inline char *copy(char *to, const char *from, size_t count)
{
#if HS_RESETS
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
#else
    for (; count; count--)
        *(volatile char *)to++ = *from++;
#endif
    return to;
}

/* How many bytes follow a place among the strings of a request. */
HS_GENERAL static size_t rest_at(const struct hs_job *job, const char *at)
{
    return (size_t)(job->end - at) + layout.last_size;
}

/* Copies so many of them, which have come with the request but for the last string. */
HS_GENERAL static void copy_rest(char *to, const struct hs_job *job, const char *at, size_t count)
{
    const size_t received = (size_t)(job->end - at), first = count < received ? count : received;
    copy(copy(to, at, first), layout.last, count - first);
}

/* Fills a room with a string of `size` bytes and what follows that, as far as there is room, and its end with what comes before the next
 * string: a tool that reads behind an argument by mistake, or before it, finds its neighbours. */
static void fill_room(char *room, size_t room_size, const char *string, size_t size, const struct hs_job *job)
{
    const char *const next = string + size;
    const size_t limit = room_size - BEFORE, rest = rest_at(job, string), before = (size_t)(next - job->strings);
    const size_t filled = size > limit ? size : rest < limit ? rest : limit;
    copy_rest(room, job, string, filled);
    memset(room + filled, 0, room_size - filled);
    if (size <= limit && next < job->environment) {
        const size_t kept = before < BEFORE ? before : BEFORE;
        memcpy(room + room_size - kept, next - kept, kept);
    }
}

/* Copies each argument to its place; whether they fit. */
static int place_arguments(const struct hs_job *job)
{
    const char *string = job->strings;
    const size_t name_size = strlen(string) + 1;
    if (job->head->argc > ARGUMENTS_MAX || name_size > sizeof laid->name)
        return 0;
    layout.argument_size[0] = (uint16_t)name_size;
    memset(laid->name, 0, sizeof laid->name - name_size);
    memcpy(place_of(0), string, name_size);
    string += name_size;
    fill_room(laid->behind_name, sizeof laid->behind_name, string, 0, job);
    for (uint32_t i = 1; i < job->head->argc; i++) {
        const size_t size = strlen(string) + 1;
        if (size > sizeof laid->argument[i])
            return 0;
        fill_room(laid->argument[i], sizeof laid->argument[i], string, size, job);
        layout.argument_size[i] = (uint16_t)size;
        string += size;
    }
    for (uint32_t i = job->head->argc; i < ARGUMENTS_MAX && layout.argument_size[i]; i++) {
        memset(laid->argument[i], 0, sizeof laid->argument[i]);
        layout.argument_size[i] = 0;
    }
    return 1;
}

/* How much of what follows a variable there is room for. */
HS_GENERAL static size_t room_behind(uint32_t index)
{
    const size_t room = sizeof laid->variable[index].value - layout.value_size[index];
    return room < BEHIND ? room : BEHIND;
}

/* Clears what was laid for a variable. Its two pages are not cleared as a whole: a request has many variables. */
static void clear_variable(uint32_t index)
{
    char *value = laid->variable[index].value;
    memset(value - layout.name_size[index], 0, layout.name_size[index] + layout.value_size[index] + room_behind(index));
    layout.name_size[index] = layout.value_size[index] = 0;
}

/* Copies each variable to its place; whether they fit. */
static int place_variables(const struct hs_job *job)
{
    const char *string = job->environment;
    if (job->head->envc > HS_VARIABLES_MAX)
        return 0;
    for (uint32_t i = 0; i < job->head->envc; i++) {
        const char *sign = strchr(string, '=');
        const size_t name = sign ? (size_t)(sign + 1 - string) : PAGE + 1, value = sign ? strlen(sign + 1) + 1 : 0;
        if (name > PAGE || value > PAGE)
            return 0;
        clear_variable(i);
        laid->variables[i] = memcpy(laid->variable[i].value - name, string, name);
        memcpy(laid->variable[i].value, sign + 1, value);
        layout.name_size[i] = (uint16_t)name;
        layout.value_size[i] = (uint16_t)value;
        string += name + value;
        layout.behind[i] = string;
        layout.is_followed[i] = 0;
    }
    for (uint32_t i = job->head->envc; i < HS_VARIABLES_MAX && layout.name_size[i]; i++)
        clear_variable(i);
    laid->variables[job->head->envc] = NULL;
    return 1;
}

/* Lays the request out at its fixed addresses; where argv begins, or NULL if it does not fit. */
static char **lay_fixed(const struct hs_job *job)
{
    const uint32_t argc = job->head->argc;
    if (!place_arguments(job) || !place_variables(job))
        return NULL;
    layout.shown = job->strings;
    layout.variables_shown = job->environment;
    layout.argument_count = argc;
    layout.variable_count = job->head->envc;
    char **argv = laid->variables - (argc + 1);
    for (uint32_t i = 0; i < argc; i++)
        argv[i] = place_of(i);
    argv[argc] = NULL;
    return argv;
}

static char **lay_as_received(const struct hs_job *job, char **argv)
{
    point_at(point_at(argv, job->strings, job->head->argc), job->environment, job->head->envc);
    return argv;
}

/* The kernel's random bytes for this process; NULL if it has given none. */
char *hs_strings_random(void)
{
    static char *bytes;
    if (!bytes)
        bytes = (char *)getauxval(AT_RANDOM);
    return bytes;
}

/* Draws them anew for each request: programs take seeds and the names of files from there. libc has made its guards of them before main,
 * which stay. In a worker every other run is given the opposite of the last one's: no bit that a tool keeps is then the same in all runs
 * that learn a deferred snapshot. */
static void draw(void)
{
#ifndef HS_WITHOUT_RANDOM
    static unsigned char last[HS_RANDOM_BYTES];
    static int is_opposite;
    char *bytes = hs_strings_random();
    if (!bytes)
        return;
    is_opposite = layout.is_apart && !is_opposite;
    if (!is_opposite)
        HS_SYS(SYS_getrandom, last, sizeof last, 0);
    for (size_t i = 0; i < sizeof last; i++)
        bytes[i] = (char)(is_opposite ? ~last[i] : last[i]);
#endif
}

/* The kernel lays the auxiliary vector behind the environment, and programs look for it there. It stays where it is, and a copy of it comes
 * behind each environment that leaves room for it below `end`. */
static void lay_auxiliary(char **to, const void *end)
{
    const size_t size = layout.auxiliary_words * sizeof *layout.auxiliary;
    if ((uintptr_t)to + size <= (uintptr_t)end)
        memcpy(to, layout.auxiliary, size);
}

/* Puts the request's arguments and environment wherever libc, the kernel and main look for them; also into the array that
 * the kernel laid on the stack, so that a kept pointer to it leads to the right ones. */
void hs_strings_lay(const struct hs_job *job, const struct hs_start *start, struct hs_call *call)
{
    const uint32_t argc = job->head->argc, count = argc + job->head->envc + 2;
    const int is_apart = layout.is_apart && !layout.in_place;
    if (!layout.auxiliary)
        find_auxiliary(start);
    char **argv = is_apart ? lay_fixed(job) : lay_as_received(job, start->argv);
    layout.is_fixed = is_apart && argv;
    if (!argv)
        argv = lay_as_received(job, laid->arguments + 1);
    ((long *)argv)[-1] = argc;
    ((long *)start->argv)[-1] = argc; /* as __libc_stack_end leads there */
    if (is_apart) {
        memcpy(start->argv, argv, count * sizeof *argv);
        lay_auxiliary(argv + count, laid->name);
    }
    lay_auxiliary(start->argv + count, layout.auxiliary);
    draw();
    *call = (struct hs_call){(int)argc, argv, argv + argc + 1};
    for (uint32_t i = 0; i < layout.count_count; i++)
        *layout.counts[i] = argc;
    hs_loader_tell(call);
    environ = call->envp;
    char *slash = strrchr(argv[0], '/');
    program_invocation_name = __progname_full = argv[0];
    program_invocation_short_name = __progname = slash ? slash + 1 : argv[0];
}

/* Has the kernel show others what the tool has made of its strings, which are at addresses that the kernel does not know. */
HS_GENERAL void hs_strings_show(void)
{
    char *to = layout.shown;
    for (uint32_t i = 0; layout.is_fixed && i < layout.argument_count; i++)
        to = copy(to, place_of(i), layout.argument_size[i]);
    to = layout.variables_shown;
    for (uint32_t i = 0; layout.is_fixed && i < layout.variable_count; i++) {
        to = copy(to, laid->variable[i].value - layout.name_size[i], layout.name_size[i]);
        to = copy(to, laid->variable[i].value, layout.value_size[i]);
    }
}

/* How much there is behind a variable. */
HS_GENERAL static size_t size_behind(const struct hs_job *job, uint32_t index)
{
    const size_t rest = rest_at(job, layout.behind[index]), room = room_behind(index);
    return rest < room ? rest : room;
}

/* Has the next strings follow a variable; returns the last variable of which something is there then. */
HS_GENERAL uint32_t hs_strings_follow_one(const struct hs_job *job, uint32_t index)
{
    const size_t size = size_behind(job, index);
    copy_rest(laid->variable[index].value + layout.value_size[index], job, layout.behind[index], size);
    layout.is_followed[index] = 1;
    for (size_t there = 0; there < size && index + 1 < layout.variable_count;)
        index++, there += layout.name_size[index] + layout.value_size[index];
    return index;
}

/* The same for all. In a watched run that would tell of values that the tool has not looked at. */
HS_GENERAL void hs_strings_follow(const struct hs_job *job)
{
    for (uint32_t i = 0; layout.is_fixed && i < layout.variable_count; i++)
        if (!layout.is_followed[i])
            hs_strings_follow_one(job, i);
}

/* Whether the tool has written into a string, or behind one. In a fresh process the strings lie side by side; here what lies around
 * one is a copy of its neighbours, which does not change with them. */
int hs_strings_are_written(const struct hs_job *job)
{
    static char room[PAGE];
    const char *string = job->strings + layout.argument_size[0];
    if (!layout.is_fixed)
        return 0;
    fill_room(room, sizeof laid->behind_name, string, 0, job);
    int found = strcmp(place_of(0), job->strings) != 0 || memcmp(room, laid->behind_name, sizeof laid->behind_name) != 0;
    for (uint32_t i = 1; i < layout.argument_count; i++) {
        fill_room(room, sizeof laid->argument[i], string, layout.argument_size[i], job);
        found |= memcmp(room, laid->argument[i], sizeof laid->argument[i]) != 0;
        string += layout.argument_size[i];
    }
    for (uint32_t i = 0; i < layout.variable_count; i++) {
        const size_t size = layout.name_size[i] + layout.value_size[i], more = layout.is_followed[i] ? size_behind(job, i) : 0;
        copy_rest(room, job, layout.behind[i], more);
        found |= memcmp(laid->variable[i].value - layout.name_size[i], layout.behind[i] - size, size) != 0 ||
                 memcmp(laid->variable[i].value + layout.value_size[i], room, more) != 0;
    }
    return found;
}

/* Whether each string is where it is in every request. */
int hs_strings_are_fixed(void)
{
    return layout.is_fixed;
}

/* What tells of the request: its strings, but for the first. The names of variables may be read (watch.c). */
void hs_strings_secrets(struct hs_secret out[HS_SECRETS])
{
    out[HS_SECRET_ARGUMENTS] = (struct hs_secret){laid->behind_name, sizeof laid->behind_name + sizeof laid->argument};
    out[HS_SECRET_ENVIRONMENT] = (struct hs_secret){laid->variable[0].name, sizeof laid->variable};
}

/* Whether the tool has left all but its arguments' strings as they were laid, and has been given fixed addresses. */
int hs_strings_are_untouched(const struct hs_job *job, const struct hs_call *call)
{
    const char *slash = strrchr(job->strings, '/');
    const char *name = place_of(0), *short_name = name + (slash ? slash + 1 - job->strings : 0);
    const char *string = job->environment;
    int same = layout.is_fixed && environ == call->envp && program_invocation_name == name &&
               program_invocation_short_name == short_name && strcmp(name, job->strings) == 0 &&
               !laid->variables[job->head->envc];
    for (uint32_t i = 0; i < layout.count_count; i++)
        same &= *layout.counts[i] == job->head->argc;
    for (int i = 0; i <= call->argc; i++)
        same &= call->argv[i] == (i < call->argc ? place_of((uint32_t)i) : NULL);
    for (uint32_t i = 0; same && i < job->head->envc; i++, string += strlen(string) + 1) {
        const char *place = laid->variable[i].value - (strchr(string, '=') + 1 - string);
        same &= laid->variables[i] == place && strcmp(place, string) == 0;
    }
    return same;
}
