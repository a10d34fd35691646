/* The deferred snapshot: a snapshot later than main, where a run first looks at its arguments or at anything outside.
 *
 * Until then many tools register and set up what they may need. That takes longer than a small test's own work, and is the same in each
 * run. So before some runs main is entered for a dry run, which watch.c watches until it comes to the first instruction that depends
 * on its request. Nothing of it has had an effect by then. The state there is saved, or compared with the saved one, and the process is
 * reset. Then the run itself begins. So whatever a dry run is shown instead of its request, no run ever is.
 *
 * The state can serve a request if everything that may have gone into it is the same. That is the snapshot's key: the number of
 * arguments, the first of them, and the environment. A variable whose value changes from run to run (lit tells each test its name) is
 * secret from then on: its value is hidden as arguments are, and not in the key. Pointers to strings are kept under names (pointers.c). For
 * each number of arguments there is a snapshot. All but the first are kept as their differences to it (delta.c).
 *
 * A snapshot is used once four dry runs have come to the same instruction with the same registers and the same memory in every word. Where
 * strings lie differs in each of them (strings.c). Audited runs compare it again.
 *
 * All these are runs of one process, so they do not show whether its number is in that state: libc keeps it in locks that are held. A
 * clone, whose number is another one, has to come to the same state itself first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"

#if HS_RESETS

/* A snapshot is used once dry runs with their strings in each of the places agree. */
#define ALL_PLACES ((1u << HS_DRY_PLACES) - 1)
/* Dry runs that may disagree: what ld.so binds in the first ones leaves its traces on the stack. */
#define DISAGREEING_MAX 4
/* Dry runs after which the thread may have been on another processor. */
#define UNSURE_MAX 32
/* Dry runs of one request. More than one begins as soon as requests are known to have the same environment. */
#define IN_A_ROW_MAX (2 * HS_DRY_PLACES)
#define ARGUMENTS_MAX 256
#define VARIANTS_MAX 64
#define NAME_BYTES 4096
/* Runs in a row with another key than the saved one's before the values that differ are secret, and before all is learned anew. */
#define OTHERS_FEW 2
#define OTHERS_MAX 48
#define STACK_BYTES (64 * 1024)
#define RED_ZONE 128

/* The snapshot for one number of arguments. */
struct variant {
    int argc;
    /* ON_TRIAL: the process of which this is a clone had AGREED. */
    enum { UNKNOWN, LEARNING, ON_TRIAL, AGREED, REFUSED } stage;
    unsigned runs, dry_runs, disagreeing, unsure;
    unsigned places; /* in which the dry runs that agree had their strings (hs_strings_lay_dry), as bits */
    unsigned processor; /* of the dry run that was saved */
    int has_moved;      /* one on another processor has agreed, but for what may drift */
    int saved_errno;
    struct hs_delta delta;
    struct hs_pointers pointers;
    struct hs_arrival arrival;
};
/* While `have_saved`, memory.c and state.c hold the snapshot of `whole`, and saved_* its key. A variant that is AGREED, of which there is
 * one if `is_ready`, has been reached in the same state from ALL_PLACES; that state is the whole snapshot with the variant's delta. */
static struct {
    struct variant variants[VARIANTS_MAX], *whole;
    unsigned count;
    unsigned char number_of[ARGUMENTS_MAX]; /* which variant a number of arguments has, counted from 1; 0: none */
    int is_open, is_ready, have_saved;
    int is_clone;
    uint64_t findings; /* of enum hs_finding */
    unsigned others; /* requests in a row that had another key */
    int is_steady;      /* a request that came later has had the key of what is saved */
    unsigned in_a_row;  /* dry runs of the request that is served */
    uint32_t differs;
    uintptr_t saved_given;
    char saved_name[NAME_BYTES];
    char saved_environment[HS_MESSAGE_MAX];
    size_t saved_size;
    unsigned char is_secret[HS_ROOM]; /* by the order of variables */
    unsigned secrets;
    /* The dry run that is under way. */
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

/* The slot that is entered again uses rcx and r11. */
__attribute__((naked, used)) void hs_point_arrive_by_slot(void)
{
    __asm__("xor %ecx, %ecx\n\txor %r11d, %r11d");
    HS_NOTE_GENERAL(arrival, hs_point_arrive);
}

/* Where an arrival notes its registers. */
struct hs_arrival *hs_point_arrival(void)
{
    return &arrival;
}

/* Prepares for learning, in a new worker, before its mappings are recorded. */
void hs_point_open(void)
{
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

/* What was found since it was asked for last, of enum hs_finding. */
uint64_t hs_point_findings(void)
{
    const uint64_t found = point.findings;
    point.findings = 0;
    return found;
}

/* In a new clone: what it is given may have the number of the process that was cloned, or anything made of that. A trial compares with
 * what was given, so that is not saved anew before. */
void hs_point_cloned(void)
{
    point.is_ready = 0;
    point.is_clone = 1;
    point.findings = 0;
    for (unsigned i = 0; i < point.count; i++)
        if (point.variants[i].stage == AGREED)
            point.variants[i].stage = ON_TRIAL;
}

static void forget(void)
{
    hs_delta_forget();
    hs_pointers_forget();
    memset(point.number_of, 0, sizeof point.number_of);
    for (unsigned i = 0; i < point.count; i++)
        point.variants[i] = (struct variant){.stage = UNKNOWN};
    point.count = 0;
    point.is_ready = point.have_saved = point.is_steady = 0;
    point.others = 0;
}

/* In a process that has taken over the memory of another, and has not its number. What was learned may contain that, and so would what this
 * one learns when the number changes again. A trial each time would cost what is gained: its runs begin at main. */
void hs_point_renumbered(void)
{
    if (!point.is_open)
        return;
    forget();
    point.is_open = 0;
}

/* The variant of a request, NULL if there cannot be one. */
static struct variant *variant_of(const struct hs_job *request)
{
    const uint32_t argc = request->head->argc;
    if (!point.is_open || argc >= ARGUMENTS_MAX || !hs_strings_are_complete(request))
        return NULL;
    if (!point.number_of[argc]) {
        if (point.count == VARIANTS_MAX)
            return NULL;
        point.variants[point.count].argc = (int)argc;
        point.number_of[argc] = (unsigned char)++point.count;
    }
    return &point.variants[point.number_of[argc] - 1];
}

/* Whether a request has the same variables in the same order, with the same values but for secret ones. Those that have another one are
 * made secret if it is to be `learned`; fails if these are too many. */
static int has_environment(const struct hs_job *request, int learned)
{
    const char *now = request->environment, *then = point.saved_environment;
    const char *const end = point.saved_environment + point.saved_size;
    for (uint32_t i = 0; i < request->head->envc; i++) {
        const size_t length = strlen(now), name = (size_t)(strchrnul(now, '=') - now);
        if (then >= end || strncmp(now, then, name + 1) != 0)
            return 0;
        if (!point.is_secret[i] && strcmp(now, then) != 0) {
            if (!learned || name == length || point.secrets == HS_SECRETS_MAX)
                return 0;
            point.is_secret[i] = 1;
            point.secrets++;
        }
        now += length + 1;
        then += strlen(then) + 1;
    }
    return then == end;
}

/* Whether a request has the key of what is saved, but for the number of arguments. */
static int has_key(const struct hs_job *request)
{
    return strcmp(request->strings, point.saved_name) == 0 && has_environment(request, 0);
}

/* Whether there is a snapshot that can serve a request. */
int hs_point_serves(const struct hs_job *request)
{
    const struct variant *variant = variant_of(request);
    return variant && variant->stage == AGREED && has_key(request);
}

/* Makes the variables secret that a request has with other values than those saved. If these are too many, or it has other variables, all
 * stay as they are: what was learned with those that are secret is kept. */
static int hide_others(const struct hs_job *request)
{
    static unsigned char before[HS_ROOM];
    const unsigned secrets = point.secrets;
    memcpy(before, point.is_secret, sizeof before);
    if (has_environment(request, 1))
        return 1;
    memcpy(point.is_secret, before, sizeof before);
    point.secrets = secrets;
    return 0;
}

/* A request has another key. */
static void note_other(const struct hs_job *request)
{
    int is_outdated = 0;
    point.others++;
    if (point.others == OTHERS_FEW && strcmp(request->strings, point.saved_name) == 0) {
        is_outdated = hide_others(request);
        if (is_outdated)
            forget();
    }
    if (point.others == OTHERS_MAX) {
        is_outdated = 1;
        forget();
        memset(point.is_secret, 0, sizeof point.is_secret);
        point.secrets = 0;
    }
    /* From now on it is no clone of the one that it was made of. */
    if (is_outdated && point.is_clone) {
        point.is_clone = 0;
        point.findings |= HS_FOUND_OUTDATED;
    }
}

/* Whether there is to be a dry run though nobody audits this one. */
int hs_point_learns_from(const struct hs_job *request)
{
    struct variant *variant = variant_of(request);
    if (!variant)
        return 0;
    if (point.have_saved && !has_key(request)) {
        note_other(request);
        return 0;
    }
    point.others = 0;
    point.is_steady |= point.have_saved;
    point.in_a_row = 1;
    const int is_asked = (request->head->flags & HS_REQUEST_LEARN) != 0;
    /* A trial is one dry run. */
    const int is_due = ++variant->runs >= hs_pays_after() || variant->stage == ON_TRIAL || is_asked;
    return is_due && variant->stage < AGREED;
}

/* Whether another dry run is to follow that of this request, which is over. The first of a number of arguments does not: ld.so binds
 * functions in it, and the process keeps these bindings after the run. */
int hs_point_learns_on(const struct hs_job *request)
{
    const struct variant *variant = variant_of(request);
    return variant && variant->stage < ON_TRIAL && variant->runs > 1 && point.is_steady && has_key(request) &&
           point.in_a_row++ < IN_A_ROW_MAX;
}

/* Whether the next dry run is to be made on another processor, so that a state that depends on the processor's number differs: the first
 * half of those that agree had the one on which this thread is. */
int hs_point_wants_to_move(const struct hs_job *request)
{
    const struct variant *variant = variant_of(request);
    unsigned now;
    return variant && variant->stage == LEARNING && __builtin_popcount(variant->places) == HS_DRY_PLACES / 2 &&
           !variant->has_moved && HS_SYS(SYS_getcpu, &now, 0, 0) == 0 && now == variant->processor;
}

static void end_dry(int number) __attribute__((noreturn));
static void end_dry(int number)
{
    hs_asked_stop();
    hs_worker_end_dry(number);
}

/* The dry run has met a fault of its own. From a signal handler. */
static void refuse(void)
{
    if (point.watched->stage == AGREED)
        point.differs = HS_DIFFERS_POINT | HS_DIFFERS_POINT_FAULT;
    point.watched->stage = REFUSED;
    hs_watch_stop();
    end_dry(0);
}

/* A signal has come for which a dry run had set a handler. The run itself gets it at main, where it has not. If it came to the runtime, all
 * may be half done. From the handler. One of an instruction of the tool's own comes again in the run by itself; the code tells it apart,
 * NULL if that is not known. */
void hs_point_interrupt(void *context, int number, const int *code)
{
    const int may_be_own = number == SIGTRAP || number == SIGILL || number == SIGFPE || number == SIGBUS;
    if (may_be_own && code && *code > 0)
        refuse();
    if ((may_be_own && !code) || hs_watch_is_own((uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]))
        hs_worker_give_up();
    hs_watch_stop();
    end_dry(number);
}

/* Whether a dry run of this request can be learned from, or be compared; how many there were before with as many arguments, and whether
 * it is compared. Returns which variables are secret, or NULL. */
const unsigned char *hs_point_may_run_dry(const struct hs_job *request, unsigned *before, int *is_learned)
{
    struct variant *variant = variant_of(request);
    if (!variant || variant->stage == REFUSED || (point.have_saved && !has_key(request)))
        return NULL;
    /* Unlike those of the saved environment, these may have no values at all. */
    const char *at = request->environment;
    for (uint32_t i = 0; i < request->head->envc; i++) {
        if (point.is_secret[i] && !strchr(at, '='))
            return NULL;
        at += strlen(at) + 1;
    }
    *before = variant->dry_runs++;
    *is_learned = is_relied_on(variant);
    return point.is_secret;
}

/* Watches the dry run that is about to begin. */
void hs_point_begin_dry(const struct hs_job *request, const struct hs_call *with)
{
    point.differs = 0;
    point.watched = variant_of(request);
    point.job = request;
    point.call = with;
    hs_zero((uintptr_t)&arrival, (uintptr_t)(&arrival + 1));
    hs_asked_resume();
    hs_memory_note_kernels();
    hs_pays_begin();
    hs_watch_begin(refuse);
}

/* What the last dry run has found, of enum hs_difference; asked for once. */
uint32_t hs_point_differs(void)
{
    const uint32_t found = point.differs;
    point.differs = 0;
    return found;
}

/* Whether this run has arrived in the same state as the one that is saved. Notes what differs first. */
static enum hs_agreement compare(struct variant *saved, uintptr_t given, int number, const struct hs_pointers *pointers,
                                 uint32_t *differs)
{
    *differs = HS_DIFFERS_POINT;
    if (given != point.saved_given || number != saved->saved_errno || !hs_state_is_at_point())
        *differs |= HS_DIFFERS_POINT_KERNEL;
    else if (!hs_memory_stack_is_at_point())
        *differs |= HS_DIFFERS_POINT_STACK;
    else if (!hs_delta_matches(&saved->delta))
        *differs |= HS_DIFFERS_POINT_MEMORY;
    else {
        *differs |= HS_DIFFERS_POINT_REGISTERS;
        return hs_pointers_compare_registers(&saved->pointers, &saved->arrival, pointers, &arrival);
    }
    return HS_DISAGREES;
}

/* Whether the process is in a state that can be saved and returned to. */
static int is_plain(uintptr_t *given)
{
    unsigned long total, wanted = HS_CONTROL_FD;
    for (uint32_t i = 0; i < point.job->head->fd_count; i++)
        wanted += (unsigned long)point.job->targets[i];
    return !hs_mappings_touched(given) && !hs_child_holds_mutexes() &&
           hs_strings_are_untouched(point.job, point.call) && arrival.general[HS_RSP] - RED_ZONE >= hs_memory_stack_low() &&
           hs_state_is_blocked_dry() && hs_worker_has_segments() && hs_count_entries("/proc/self/fd", &total) >= 0 && total == wanted;
}

/* Saves all memory. The other snapshots are kept as their differences to this one. */
static int save_whole(uintptr_t given)
{
    const size_t size = (size_t)(point.job->end - point.job->environment);
    if (point.have_saved)
        return 0;
    if (strlen(point.job->strings) >= sizeof point.saved_name ||
        hs_memory_save_point(arrival.general[HS_RSP] - RED_ZONE, given) != 0)
        return -1;
    strcpy(point.saved_name, point.job->strings);
    memcpy(point.saved_environment, point.job->environment, size);
    point.saved_size = size;
    point.saved_given = given;
    hs_state_save_point();
    hs_usage_note_point();
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

/* The place of the dry run that is under way, as a bit. */
static unsigned place_of_dry(void)
{
    return 1u << (point.watched->dry_runs - 1) % HS_DRY_PLACES;
}

static void save(uintptr_t given, int number, const struct hs_pointers *pointers)
{
    if (point.watched == point.whole && !whole_is_relied_on())
        forget_whole();
    if (save_whole(given) != 0 || given != point.saved_given || !hs_state_is_at_point() ||
        hs_delta_take(&point.watched->delta) != 0) {
        point.watched->stage = REFUSED;
        return;
    }
    point.watched->arrival = arrival;
    point.watched->saved_errno = number;
    point.watched->pointers = *pointers;
    point.watched->places = place_of_dry();
    HS_SYS(SYS_getcpu, &point.watched->processor, 0, 0);
    point.watched->stage = LEARNING;
}

/* A dry run agrees, but for what may drift. Returns whether it is the first such on another processor than the one that was saved. */
static int note_move(void)
{
    unsigned now;
    const int moves = !point.watched->has_moved && HS_SYS(SYS_getcpu, &now, 0, 0) == 0 && now != point.watched->processor;
    point.watched->has_moved |= moves;
    return moves;
}

static void learn(uintptr_t given, int number, const struct hs_pointers *pointers)
{
    if (point.watched->stage == UNKNOWN) {
        point.watched->has_moved = 0;
        save(given, number, pointers);
        return;
    }
    uint32_t differs;
    const enum hs_agreement found = compare(point.watched, given, number, pointers, &differs);
    const int moves = found == HS_AGREES || found == HS_DRIFTED ? note_move() : 0;
    if (found == HS_DRIFTED && ++point.watched->unsure < UNSURE_MAX) {
        /* What drifts when a thread moves says nothing about the tool. The next dry run is in the same place. */
        if (moves) {
            hs_pointers_drop(pointers);
            point.watched->dry_runs--;
        } else
            save(given, number, pointers);
    } else if (found != HS_AGREES && ++point.watched->disagreeing == DISAGREEING_MAX) {
        point.watched->stage = REFUSED;
    } else if (found == HS_DISAGREES || found == HS_DRIFTED) {
        point.watched->has_moved = 0;
        save(given, number, pointers);
    } else {
        hs_pointers_drop(pointers);
        if (found != HS_AGREES)
            return;
        point.watched->places |= place_of_dry();
        if (point.watched->places == ALL_PLACES)
            point.watched->stage = AGREED;
    }
}

/* Compares the state of a dry run that has arrived. If that of a clone is not the one that was saved, this process learns for itself. */
static void judge(uintptr_t given, int number, const struct hs_pointers *pointers)
{
    if (point.watched->stage != AGREED && point.watched->stage != ON_TRIAL) {
        learn(given, number, pointers);
        return;
    }
    uint32_t differs;
    const enum hs_agreement found = compare(point.watched, given, number, pointers, &differs);
    hs_pointers_drop(pointers);
    if (point.watched->stage == AGREED) {
        point.differs = found == HS_DISAGREES ? differs : 0;
    } else if (found == HS_AGREES) {
        point.watched->stage = AGREED;
    } else if (found == HS_DISAGREES) {
        forget();
        point.findings |= HS_FOUND_UNLIKE;
    }
}

/* The same of one whose state cannot be compared, for this reason. */
static void judge_unnamed(uint32_t why)
{
    if (point.watched->stage == AGREED) {
        point.differs = HS_DIFFERS_POINT | why;
    } else if (point.watched->stage == ON_TRIAL) {
        forget();
        point.findings |= HS_FOUND_UNLIKE;
    } else {
        point.watched->stage = REFUSED;
        if (why == HS_DIFFERS_POINT_POINTERS)
            point.findings |= HS_FOUND_IN_THE_WAY;
    }
}

/* The same if the kernel may have written there, or the tool: nothing is said, but not for ever. */
static void judge_unsure(void)
{
    if (point.watched->stage == AGREED)
        return;
    /* The next one is in the same place. */
    point.watched->dry_runs--;
    if (++point.watched->unsure == UNSURE_MAX)
        judge_unnamed(HS_DIFFERS_POINT_STATE);
}

/* The dry run has come to an instruction that depends on its request. */
static void arrived(void)
{
    struct hs_pointers pointers;
    uintptr_t given;
    const int number = errno;
    hs_strings_show_stack();
    hs_pays_arrived();
    const enum hs_kernels kernels = hs_memory_kernels();
    if (kernels == HS_KERNELS_MOVED)
        judge_unsure();
    else if (kernels == HS_KERNELS_WRITTEN || !is_plain(&given))
        judge_unnamed(HS_DIFFERS_POINT_STATE);
    else if (hs_pointers_rename(&pointers, &arrival, given) != 0)
        judge_unnamed(HS_DIFFERS_POINT_POINTERS);
    else
        judge(given, number, &pointers);
    point.is_ready |= point.watched->stage == AGREED;
    end_dry(0);
}

/* Enters main where it was saved, with the arguments that are laid. */
void hs_point_enter(const struct hs_job *request)
{
    static struct hs_arrival from;
    const struct variant *variant = variant_of(request);
    hs_delta_apply(&variant->delta);
    hs_pointers_apply(&variant->pointers);
    from = variant->arrival;
    hs_pointers_apply_to_registers(&variant->pointers, &from);
    errno = variant->saved_errno;
    hs_arrive(&from, &go_on);
}

#endif
