/* A snapshot later than main: where an LLVM tool parses its options.
 *
 * Until then such a tool sets up handlers and registers passes and targets, which takes opt longer than a small test's own
 * work. The recipe is the symbol of the function that parses: if main calls it with the very arguments it was given, the
 * state at that call is saved, and later requests are entered there.
 *
 * That is right only if nothing of the request went into that state. Each run that is to show it is watched (watch.c, and
 * audit.c for the environment): any other system call than setting up signals, any look at an argument but the first or at
 * a variable that is set, and there is no snapshot. What is left is the number of arguments, which main is given in a
 * register. Where it is kept shows when two runs with different numbers are compared: at the places that differ, each has
 * its own. No place may differ otherwise. Audits compare again.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "runtime.h"

#if HS_REWIND

/* Runs that must agree before the snapshot is used, the one it is of not counted. */
#define AGREEING 3
/* Runs that may end before they come there, and those that may disagree: what ld.so binds in the first ones leaves its
 * traces on the stack. */
#define MISSES_MAX 4
#define DISAGREEING_MAX 3
#define COUNTS_MAX 256
#define CELLS_MAX 64
#define NAME_MAX_BYTES 1024
#define STACK_BYTES (64 * 1024)
/* What a function may use below its stack pointer. */
#define RED_ZONE 128

/* llvm::cl::ParseCommandLineOptions: LLVM 6 to 20, by clang and by gcc. */
static const char *const names[] = {
    "_ZN4llvm2cl23ParseCommandLineOptionsEiPKPKcNS_9StringRefEPNS_11raw_ostreamES3_b",
    "_ZN4llvm2cl23ParseCommandLineOptionsEiPKPKcNS_9StringRefEPNS_11raw_ostreamES2_b",
};

static enum { OFF, LEARNING, READY } stage;
static unsigned char *function;
static unsigned char own_code[HS_JUMP_LENGTH];
static int armed;
static unsigned agreeing, disagreeing, misses;
static uint32_t differs;

/* The request that is watched, and the one that the snapshot is of. */
static const struct hs_start *start;
static const struct hs_job *job;
static const struct hs_call *call;
static int saved_argc, saved_errno, arrived_errno;
static uintptr_t saved_given;
static int have_saved;
static char saved_name[NAME_MAX_BYTES];
/* The first argument: the only one that may be looked at, and always in the same place. */
static char name[NAME_MAX_BYTES];

static struct hs_arrival arrival, saved_arrival;
static char stack[STACK_BYTES] __attribute__((aligned(64)));
__attribute__((used)) static char *const stack_top = stack + sizeof stack;

/* Places of the number of arguments, once `cells_known`: in memory, and a bit for each register in `kept`. */
static uint32_t *cells[CELLS_MAX];
static size_t cell_count, cells_met;
static unsigned register_cells;
static int cells_known;
/* What is known of each number of arguments: whether a run with so many came here as the saved one did, or how many such runs
 * there were. What main does may depend on the number, so that each is learned by itself; to be watched costs a run four
 * times what it would save. */
static unsigned char counts[COUNTS_MAX];
enum { PAYS_AT = 4, AGREED, REFUSED };

__attribute__((used)) static void arrived(void);

__attribute__((naked)) static void arrive(void)
{
    HS_NOTE_ARRIVAL(arrival, stack_top, arrived);
}

static uint32_t hash(const char *text)
{
    uint32_t sum = 5381;
    for (; *text; text++)
        sum = sum * 33 + (unsigned char)*text;
    return sum;
}

/* What an object's dynamic section says, as far as it is needed here. */
struct tables {
    const ElfW(Sym) *symbols;
    const char *strings;
    const uint32_t *hashes;
};

static struct tables tables_of(const struct link_map *map)
{
    struct tables found = {NULL, NULL, NULL};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        const void *at = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB)
            found.symbols = at;
        if (entry->d_tag == DT_STRTAB)
            found.strings = at;
        if (entry->d_tag == DT_GNU_HASH)
            found.hashes = at;
    }
    /* ld.so turns these into addresses, except in objects whose dynamic section cannot be written (the vDSO). */
    if ((ElfW(Addr))found.hashes < map->l_addr)
        found.hashes = NULL;
    return found;
}

/* A function that an object defines. dlsym is not asked: where it finds nothing, it leaves a message on the heap. */
static void *look_up(const struct link_map *map, const char *name)
{
    const struct tables object = tables_of(map);
    const uint32_t *head = object.hashes, wanted = hash(name);
    if (!head || !object.symbols || !object.strings || !head[0])
        return NULL;
    const uint32_t *buckets = (const uint32_t *)((const ElfW(Addr) *)(head + 4) + head[2]);
    const uint32_t *chain = buckets + head[0];
    uint32_t index = buckets[wanted % head[0]];
    for (; index >= head[1]; index++) {
        const ElfW(Sym) *symbol = &object.symbols[index];
        const uint32_t found = chain[index - head[1]];
        if ((found | 1) == (wanted | 1) && symbol->st_shndx != SHN_UNDEF &&
            strcmp(object.strings + symbol->st_name, name) == 0)
            return (void *)(map->l_addr + symbol->st_value);
        if (found & 1)
            break;
    }
    return NULL;
}

static void *find(uint64_t offset)
{
    if (offset)
        return (void *)(_r_debug.r_map->l_addr + offset);
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            void *found = look_up(map, names[i]);
            if (found)
                return found;
        }
    return NULL;
}

/* Prepares for learning, in a new worker, if the tool has that function. */
void hs_point_open(uint64_t offset, const struct hs_start *from)
{
    start = from;
    function = find(offset);
    if (!function || hs_memory_open_point() != 0)
        return;
    memcpy(own_code, function, sizeof own_code);
    /* A page that was written is a mapping of its own, before it is noted what is mapped. */
    if (hs_mappings_write_code(function, own_code) == 0)
        stage = LEARNING;
}

/* Puts the first argument where every request has it. */
void hs_point_name(const struct hs_job *request, const struct hs_call *with)
{
    if (stage == OFF || strlen(request->strings) >= sizeof name)
        return;
    strcpy(name, request->strings);
    with->argv[0] = start->argv[0] = name;
}

int hs_point_is_ready(void)
{
    return stage == READY;
}

static int is_named(const char *variable, const char *wanted)
{
    const size_t length = strlen(wanted);
    return strncmp(variable, wanted, length) == 0 && variable[length] == '=';
}

/* Whether a variable is set that was not when it was asked for. */
static int is_set(const char *wanted, const struct hs_job *request)
{
    const char *variable = request->environment;
    for (uint32_t i = 0; i < request->head->envc; i++, variable += strlen(variable) + 1)
        if (is_named(variable, wanted))
            return 1;
    return 0;
}

/* Whether what went into the snapshot is as it was, but for the number of arguments. */
static int is_as_saved(const struct hs_job *request)
{
    if (strcmp(request->strings, saved_name) != 0)
        return 0;
    const char *asked = hs_audit_asked_since();
    for (; asked && *asked; asked += strlen(asked) + 1)
        if (is_set(asked, request))
            return 0;
    return asked != NULL;
}

/* What is known of a number of arguments; of too large ones, that it is not to be tried. */
static int known_of(int argc)
{
    return argc < COUNTS_MAX ? counts[argc] : REFUSED;
}

static void note(int argc, int what)
{
    if (argc < COUNTS_MAX)
        counts[argc] = (unsigned char)what;
}

/* Whether the snapshot can serve a request. */
int hs_point_serves(const struct hs_job *request)
{
    return stage == READY && known_of((int)request->head->argc) == AGREED && is_as_saved(request);
}

/* Whether a run that begins at main is to be watched though nobody audits it. */
int hs_point_learns_from(const struct hs_job *request)
{
    const int argc = (int)request->head->argc;
    if (stage != READY || !is_as_saved(request))
        return stage == LEARNING;
    if (known_of(argc) < PAYS_AT)
        note(argc, known_of(argc) + 1);
    return known_of(argc) == PAYS_AT;
}

/* For good: from a signal handler, too. */
static void give_up(void)
{
    stage = OFF;
    hs_audit_stop();
    if (armed)
        hs_mappings_write_code(function, own_code);
    armed = 0;
}

/* Watches the run that is about to begin, on its way to the point. */
void hs_point_watch(const struct hs_job *request, const struct hs_call *with)
{
    unsigned char jump[HS_JUMP_LENGTH];
    struct hs_secret secrets[2];
    hs_serve_secrets(secrets);
    differs = 0;
    if (stage == OFF || strlen(request->strings) >= sizeof name)
        return;
    job = request;
    call = with;
    hs_write_jump(jump, (const void *)arrive);
    if (hs_mappings_write_code(function, jump) != 0) {
        give_up();
        return;
    }
    armed = 1;
    hs_audit_resume();
    /* The copy at which main is to look is elsewhere. */
    if (hs_watch_begin(secrets, give_up) != 0)
        give_up();
}

/* Ends the watch of a run that has ended; what it showed, of enum hs_difference. */
uint32_t hs_point_unwatch(void)
{
    if (!armed)
        return differs;
    hs_watch_end();
    hs_audit_stop();
    hs_mappings_write_code(function, own_code);
    armed = 0;
    if (stage == LEARNING && ++misses == MISSES_MAX)
        stage = OFF;
    /* With the saved name and variables, only the number can have made the difference. */
    if (stage == READY && known_of(call->argc) == AGREED && is_as_saved(job))
        return HS_DIFFERS_POINT;
    note(call->argc, REFUSED);
    return 0;
}

/* What each request writes anew: its array of strings, and libc's pointers to them. */
static int is_of_request(const void *place)
{
    extern char **environ, *program_invocation_name, *program_invocation_short_name;
    const void *own[] = {&environ, &program_invocation_name, &program_invocation_short_name};
    if (place >= (void *)start->argv && place < (void *)(start->argv + start->argc + 2))
        return 1;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (place >= own[i] && place < (void *)((char *)own[i] + sizeof(char *)))
            return 1;
    return 0;
}

static int is_known(const uint32_t *place)
{
    for (size_t i = 0; i < cell_count; i++)
        if (cells[i] == place)
            return 1;
    return 0;
}

/* Whether it lies on the stack's last page that was saved, but below what is in use. */
static int is_below_stack(uintptr_t place)
{
    const uintptr_t low = saved_arrival.stack - RED_ZONE;
    return place < low && place >= (low & -4096ul);
}

/* Whether a word that is not as saved speaks against the snapshot. */
static int word_differs(uint32_t *place, uint32_t saved)
{
    if (is_of_request(place) || is_below_stack((uintptr_t)place))
        return 0;
    if (call->argc == saved_argc || saved != (uint32_t)saved_argc || *place != (uint32_t)call->argc)
        return 1;
    cells_met++;
    if (cells_known)
        return !is_known(place);
    if (cell_count == CELLS_MAX)
        return 1;
    cells[cell_count++] = place;
    return 0;
}

/* The modes of x87 and SSE, which is what is left of extended state across a call. */
static uint64_t modes(const struct hs_arrival *at)
{
    uint16_t x87;
    uint32_t sse;
    memcpy(&x87, at->extended, sizeof x87);
    memcpy(&sse, at->extended + 24, sizeof sse);
    return (uint64_t)sse << 16 | x87;
}

static int registers_agree(void)
{
    unsigned found = 0;
    for (int i = 0; i < 6; i++) {
        if (arrival.kept[i] == saved_arrival.kept[i])
            continue;
        if (arrival.kept[i] != (uintptr_t)call->argc || saved_arrival.kept[i] != (uintptr_t)saved_argc)
            return 0;
        found |= 1u << i;
    }
    for (int i = 2; i < 6; i++)
        if (arrival.arguments[i] != saved_arrival.arguments[i])
            return 0;
    if (arrival.stack != saved_arrival.stack || modes(&arrival) != modes(&saved_arrival))
        return 0;
    if (call->argc != saved_argc && cells_known && found != register_cells)
        return 0;
    if (call->argc != saved_argc)
        register_cells = found;
    return 1;
}

/* Whether this run came here in the same state as the one that was saved, but for the number of arguments. */
static int agrees(uintptr_t given)
{
    cells_met = 0;
    if (given != saved_given || !registers_agree() || !hs_memory_compare_point(word_differs))
        return 0;
    if (call->argc != saved_argc && cells_known && cells_met != cell_count)
        return 0;
    cells_known |= call->argc != saved_argc;
    note(call->argc, AGREED);
    return 1;
}

/* Whether the process is in a state that can be saved and returned to. */
static int is_plain(uintptr_t *given)
{
    unsigned long total, wanted = HS_CONTROL_FD;
    for (uint32_t i = 0; i < job->head->fd_count; i++)
        wanted += (unsigned long)job->targets[i];
    return stage != OFF && arrival.arguments[0] == (uintptr_t)call->argc &&
           arrival.arguments[1] == (uintptr_t)call->argv && !hs_mappings_touched(given) && !hs_audit_doubts() &&
           hs_audit_asked_since() && !hs_child_holds_mutexes() && hs_count_entries("/proc/self/fd", &total) >= 0 &&
           total == wanted;
}

static void forget_cells(void)
{
    register_cells = 0;
    cell_count = 0;
    cells_known = 0;
}

static void save(uintptr_t given)
{
    /* What it is compared by. */
    saved_arrival = arrival;
    saved_argc = call->argc;
    saved_errno = arrived_errno;
    strcpy(saved_name, name);
    if (hs_memory_save_point(arrival.stack - RED_ZONE, given) != 0) {
        stage = OFF;
        return;
    }
    hs_state_save_point();
    saved_given = given;
    have_saved = 1;
    agreeing = 0;
    forget_cells();
    memset(counts, 0, sizeof counts);
    note(saved_argc, AGREED);
}

/* Learns from a run that came to the point. */
static void learn(void)
{
    uintptr_t given;
    if (!is_plain(&given))
        stage = OFF;
    else if (!have_saved)
        save(given);
    else if (!agrees(given))
        ++disagreeing < DISAGREEING_MAX ? save(given) : give_up();
    else if (++agreeing == AGREEING)
        stage = READY;
}

/* A run has not come here as the saved one did. With a number of arguments that has not been seen yet, it is that which
 * makes the difference, and runs with so many begin at main. */
static void disagree(void)
{
    if (known_of(call->argc) == AGREED) {
        differs = HS_DIFFERS_POINT;
        return;
    }
    note(call->argc, REFUSED);
    if (!cells_known)
        forget_cells();
}

/* main has called the function. */
static void arrived(void)
{
    uintptr_t given;
    int now = errno;
    hs_watch_end();
    hs_audit_stop();
    hs_mappings_write_code(function, own_code);
    armed = 0;
    arrived_errno = now;
    if (stage == LEARNING)
        learn();
    else if (stage == READY && !(is_plain(&given) && agrees(given)))
        disagree();
    errno = now;
    hs_arrive(function, &arrival);
}

/* Enters main where it was saved, with another request's arguments. */
void hs_point_enter(const struct hs_call *with)
{
    arrival = saved_arrival;
    arrival.arguments[0] = (uintptr_t)with->argc;
    arrival.arguments[1] = (uintptr_t)with->argv;
    for (size_t i = 0; i < cell_count && with->argc != saved_argc; i++)
        *cells[i] = (uint32_t)with->argc;
    for (int i = 0; i < 6; i++)
        if (register_cells & 1u << i)
            arrival.kept[i] = (uintptr_t)with->argc;
    errno = saved_errno;
    hs_arrive(function, &arrival);
}

#endif
