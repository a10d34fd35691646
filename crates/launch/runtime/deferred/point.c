/* The deferred snapshot: a snapshot later than main, where a run first looks at its arguments or at anything outside.
 *
 * Until then many tools register and set up what they may need. That takes longer than a small test's own work, and is the same in each
 * run. So watch.c watches runs until they come to the first instruction that depends on their request. The state there is saved, and
 * later requests are entered there.
 *
 * The state can serve a request if everything that may have gone into it is the same. That is the snapshot's key: the number of
 * arguments, whose strings are at addresses that depend on it alone (strings.c); the first argument; and of the environment all names, in
 * their order, and the values that the run has looked at. For each number of arguments there is a snapshot. All but the first are kept as
 * their differences to it (delta.c).
 *
 * A snapshot is used once four runs have come to the same instruction with the same registers and the same memory in every word. Audited
 * runs compare it again.
 *
 * All these are runs of one process, so they do not show whether its number is in that state: libc keeps it in locks that are held. A
 * clone, whose number is another one, has to come to the same state itself first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "runtime.h"

#if HS_RESETS

/* Runs that must agree before a snapshot is used, the one it is of not counted. */
#define AGREEING 3
/* Runs that may end before they arrive, and those that may disagree: what ld.so binds in the first ones leaves its traces on
 * the stack. */
#define MISSES_MAX 2
#define DISAGREEING_MAX 4
/* Runs with one number of arguments before it is learned: most numbers come often or once. */
#define PAYS_AT 1
#define ARGUMENTS_MAX 256
#define VARIANTS_MAX 64
#define NAME_BYTES 4096
#define ENVIRONMENT_BYTES (64 * 1024)
/* Runs in a row with another key than the saved one's before all is learned anew. */
#define OTHERS_MAX 48
#define STACK_BYTES (64 * 1024)
#define RED_ZONE 128

/* The snapshot for one number of arguments. */
struct variant {
    int argc;
    /* ON_TRIAL: the process of which this is a clone had AGREED. */
    enum { UNKNOWN, LEARNING, ON_TRIAL, AGREED, REFUSED } stage;
    unsigned runs, agreeing, disagreeing, misses;
    int saved_errno;
    struct hs_looks looks;
    struct hs_delta delta;
    struct hs_arrival arrival;
};
/* While `have_saved`, memory.c and state.c hold the snapshot of `whole`, and saved_* its key. A variant that is AGREED, of which there is
 * one if `is_ready`, has been reached by AGREEING runs in the same state; that state is the whole snapshot with the variant's delta. */
static struct {
    struct variant variants[VARIANTS_MAX], *whole;
    unsigned count;
    unsigned char number_of[ARGUMENTS_MAX]; /* which variant a number of arguments has, counted from 1; 0: none */
    const struct hs_start *start;
    int is_open, is_ready, have_saved;
    int is_unlike; /* a trial has failed */
    unsigned others; /* requests in a row that had another key */
    uint32_t differs;
    uintptr_t saved_given;
    char saved_name[NAME_BYTES];
    char saved_environment[ENVIRONMENT_BYTES];
    size_t saved_size;
    /* The request that is watched. */
    int is_watched;
    const struct hs_job *job;
    const struct hs_call *call;
    struct variant *watched;
} point;

/* Named by the code that saves registers. */
static struct hs_arrival arrival;
static uintptr_t go_on;
static char stack[STACK_BYTES] __attribute__((aligned(64)));
__attribute__((used)) static char *const stack_top = stack + sizeof stack;

__attribute__((used)) static void arrived(void);

__attribute__((naked, used)) void hs_point_arrive(void)
{
    HS_NOTE_EXTENDED(arrival, stack_top, arrived);
}

__attribute__((naked, used)) void hs_point_arrive_by_slot(void)
{
    HS_NOTE_GENERAL(arrival, hs_point_arrive);
}

/* Where an arrival notes its registers. */
struct hs_arrival *hs_point_arrival(void)
{
    return &arrival;
}

/* Prepares for learning, in a new worker, before its mappings are recorded. */
void hs_point_open(const struct hs_start *from)
{
    point.start = from;
    point.is_open = hs_memory_open_point() == 0;
}

int hs_point_is_ready(void)
{
    return point.is_ready;
}

/* Whether a snapshot is used, or may be after its trial. */
static int is_relied_on(const struct variant *variant)
{
    return variant->stage == AGREED || variant->stage == ON_TRIAL;
}

/* The numbers of arguments for which there is a snapshot, be it on trial, as bits. */
uint64_t hs_point_learned(void)
{
    uint64_t found = 0;
    for (unsigned i = 0; i < point.count; i++)
        if (is_relied_on(&point.variants[i]) && point.variants[i].argc < 64)
            found |= 1ull << point.variants[i].argc;
    return found;
}

int hs_point_is_unlike(void)
{
    return point.is_unlike;
}

/* In a new clone: what it is given may have the number of the process that was cloned, or anything made of that. A trial compares with
 * what was given, so that is not saved anew before. */
void hs_point_cloned(void)
{
    point.is_ready = 0;
    for (unsigned i = 0; i < point.count; i++)
        if (point.variants[i].stage == AGREED) {
            point.variants[i].stage = ON_TRIAL;
            point.variants[i].misses = 0;
        }
}

static void forget(void)
{
    hs_delta_forget();
    memset(point.number_of, 0, sizeof point.number_of);
    for (unsigned i = 0; i < point.count; i++)
        point.variants[i] = (struct variant){.stage = UNKNOWN};
    point.count = 0;
    point.is_ready = point.have_saved = 0;
    point.others = 0;
}

/* The variant of a request, NULL if there cannot be one. */
static struct variant *variant_of(const struct hs_job *request)
{
    const uint32_t argc = request->head->argc;
    if (!point.is_open || argc >= ARGUMENTS_MAX || !hs_strings_are_fixed())
        return NULL;
    if (!point.number_of[argc]) {
        if (point.count == VARIANTS_MAX)
            return NULL;
        point.variants[point.count].argc = (int)argc;
        point.number_of[argc] = (unsigned char)++point.count;
    }
    return &point.variants[point.number_of[argc] - 1];
}

/* Whether a request has the same variables in the same order, with the same values where these were looked at. */
static int has_what_was_seen(const struct hs_job *request, const struct hs_looks *looks)
{
    const char *now = request->environment, *then = point.saved_environment;
    const char *const end = point.saved_environment + point.saved_size;
    for (uint32_t i = 0; i < request->head->envc; i++) {
        const size_t name = (size_t)(strchrnul(now, '=') + 1 - now), length = strlen(now);
        const size_t known = looks->values[i] || name > length ? length + 1 : name;
        if (then >= end || strncmp(now, then, known) != 0)
            return 0;
        now += length + 1;
        then += strlen(then) + 1;
    }
    return then == end;
}

/* Whether a request has the key of what is saved, but for the number of arguments. */
static int has_key(const struct hs_job *request, const struct hs_looks *looks)
{
    return strcmp(request->strings, point.saved_name) == 0 && has_what_was_seen(request, looks);
}

/* Whether there is a snapshot that can serve a request. */
int hs_point_serves(const struct hs_job *request)
{
    const struct variant *variant = variant_of(request);
    return variant && variant->stage == AGREED && has_key(request, &variant->looks);
}

/* Whether a run that begins at main is to be watched though nobody audits it. */
int hs_point_learns_from(const struct hs_job *request)
{
    struct variant *variant = variant_of(request);
    if (!variant)
        return 0;
    if (point.have_saved && !has_key(request, &variant->looks)) {
        if (++point.others == OTHERS_MAX)
            forget();
        return 0;
    }
    point.others = 0;
    return ++variant->runs >= (point.have_saved ? PAYS_AT : 1) && variant->stage < AGREED;
}

/* From a signal handler, too. */
static void refuse(void)
{
    if (point.watched->stage == AGREED)
        point.differs = HS_DIFFERS_POINT;
    point.watched->stage = REFUSED;
    hs_asked_stop();
    point.is_watched = 0;
}

/* Watches the run that is about to begin. */
void hs_point_watch(const struct hs_job *request, const struct hs_call *with)
{
    point.differs = 0;
    point.watched = variant_of(request);
    if (!point.watched || point.watched->stage == REFUSED || (point.have_saved && !has_key(request, &point.watched->looks)))
        return;
    point.job = request;
    point.call = with;
    hs_zero((uintptr_t)&arrival, (uintptr_t)(&arrival + 1));
    point.is_watched = 1;
    hs_asked_resume();
    hs_watch_begin(request, refuse);
}

/* Ends the watch of a run that has ended. Returns its findings, of enum hs_difference. */
uint32_t hs_point_unwatch(void)
{
    if (!point.is_watched)
        return point.differs;
    hs_watch_end();
    hs_asked_stop();
    point.is_watched = 0;
    if (point.watched->stage == AGREED)
        return HS_DIFFERS_POINT;
    if (++point.watched->misses == MISSES_MAX)
        point.watched->stage = REFUSED;
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

static int same_extended(const struct hs_arrival *saved)
{
    static struct hs_arrival a, b;
    a = arrival;
    b = *saved;
    normalize(&a);
    normalize(&b);
    return memcmp(a.extended, b.extended, 512) == 0 &&
           memcmp(a.extended + 512 + 64, b.extended + 512 + 64, sizeof a.extended - 512 - 64) == 0;
}

/* Whether this run has arrived in the same state as the one that is saved. */
static int agrees(struct variant *saved, uintptr_t given, int number)
{
    return given == point.saved_given && number == saved->saved_errno && arrival.place == saved->arrival.place &&
           arrival.flags == saved->arrival.flags &&
           memcmp(arrival.general, saved->arrival.general, sizeof arrival.general) == 0 &&
           same_extended(&saved->arrival) && memcmp(hs_watch_looks(), &saved->looks, sizeof saved->looks) == 0 &&
           hs_state_is_at_point() && hs_memory_stack_is_at_point() && hs_delta_matches(&saved->delta, point.start, arrival.general[HS_RSP]);
}

/* Whether the process is in a state that can be saved and returned to. */
static int is_plain(uintptr_t *given)
{
    unsigned long total, wanted = HS_CONTROL_FD;
    for (uint32_t i = 0; i < point.job->head->fd_count; i++)
        wanted += (unsigned long)point.job->targets[i];
    return !hs_mappings_touched(given) && !hs_asked_doubts() && !hs_child_holds_mutexes() &&
           hs_strings_are_untouched(point.job, point.call) && arrival.general[HS_RSP] - RED_ZONE >= hs_memory_stack_low() &&
           hs_state_blocks_nothing() && hs_worker_has_segments() && hs_count_entries("/proc/self/fd", &total) >= 0 && total == wanted;
}

/* Saves all memory. The other snapshots are kept as their differences to this one. */
static int save_whole(uintptr_t given)
{
    const size_t size = (size_t)(point.job->end - point.job->environment);
    if (point.have_saved)
        return 0;
    if (strlen(point.job->strings) >= sizeof point.saved_name || size > sizeof point.saved_environment ||
        hs_memory_save_point(arrival.general[HS_RSP] - RED_ZONE, given) != 0)
        return -1;
    strcpy(point.saved_name, point.job->strings);
    memcpy(point.saved_environment, point.job->environment, size);
    point.saved_size = size;
    point.saved_given = given;
    hs_state_save_point();
    point.have_saved = 1;
    point.whole = point.watched;
    return 0;
}

/* Whether a snapshot is kept as its difference to what is saved. */
static int whole_is_relied_on(void)
{
    for (unsigned i = 0; i < point.count; i++)
        if (is_relied_on(&point.variants[i]))
            return 1;
    return 0;
}

/* The variants that were compared with it are learned anew. */
static void forget_whole(void)
{
    point.have_saved = 0;
    hs_delta_forget();
    for (unsigned i = 0; i < point.count; i++)
        if (point.variants[i].stage == LEARNING)
            point.variants[i].stage = UNKNOWN;
}

static void save(uintptr_t given, int number)
{
    if (point.watched == point.whole && !whole_is_relied_on())
        forget_whole();
    if (point.have_saved && !has_key(point.job, hs_watch_looks())) {
        point.watched->stage = ++point.watched->disagreeing < DISAGREEING_MAX ? UNKNOWN : REFUSED;
        return;
    }
    if (save_whole(given) != 0 || given != point.saved_given || !hs_state_is_at_point() ||
        hs_delta_take(&point.watched->delta, point.start, arrival.general[HS_RSP]) != 0) {
        point.watched->stage = REFUSED;
        return;
    }
    point.watched->arrival = arrival;
    point.watched->saved_errno = number;
    point.watched->looks = *hs_watch_looks();
    point.watched->agreeing = 0;
    point.watched->stage = LEARNING;
}

static void learn(int number)
{
    uintptr_t given;
    if (!is_plain(&given))
        point.watched->stage = REFUSED;
    else if (point.watched->stage == UNKNOWN)
        save(given, number);
    else if (agrees(point.watched, given, number))
        point.watched->stage = ++point.watched->agreeing == AGREEING ? AGREED : LEARNING;
    else if (++point.watched->disagreeing < DISAGREEING_MAX)
        save(given, number);
    else
        point.watched->stage = REFUSED;
    point.is_ready |= point.watched->stage == AGREED;
}

/* The first run of a clone that arrives. If the state is not that which was saved, this process learns for itself. */
static void try_out(int number)
{
    uintptr_t given;
    if (is_plain(&given) && agrees(point.watched, given, number)) {
        point.watched->stage = AGREED;
        point.is_ready = 1;
    } else {
        forget();
        point.is_unlike = 1;
    }
}

/* The run has come to an instruction that depends on its request. */
static void arrived(void)
{
    uintptr_t given;
    const int now = errno;
    hs_asked_stop();
    point.is_watched = 0;
    if (point.watched->stage == ON_TRIAL)
        try_out(now);
    else if (point.watched->stage != AGREED)
        learn(now);
    else if (!(is_plain(&given) && agrees(point.watched, given, now)))
        point.differs = HS_DIFFERS_POINT;
    errno = now;
    hs_arrive(&arrival, &go_on);
}

/* Enters main where it was saved, with another request's arguments. */
void hs_point_enter(const struct hs_job *request)
{
    const struct variant *variant = variant_of(request);
    hs_delta_apply(&variant->delta);
    errno = variant->saved_errno;
    hs_arrive(&variant->arrival, &go_on);
}

#endif
