/* A persistent process: runs main again and again, and resets itself in between.
 *
 * It has a stack of its own, because the tool's stack is reset. main is entered on the tool's stack as libc had called it, so a return
 * from it runs exit, its handlers and the flushing of streams as in any process. The gate (gate.c) passes the system call that would end
 * the process to this file. If anything prevents another run, the process ends as it would have ended without the runtime: an end that
 * is reported as RETIRED is a real one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime.h"

#if HS_RESETS

#define STACK_BYTES (64 * 1024)
/* In AT_HWCAP2: programs may set segment bases (HWCAP2_FSGSBASE of asm/hwcap2.h). */
#define FSGSBASE 2ul
/* ld.so's new bindings are looked up after each of the first LEARNING runs, and once in LEARNING runs from then on. */
#define LEARNING 16

static char own_stack[STACK_BYTES] __attribute__((aligned(64)));
/* `running` from right before main until it ends. Between two runs all is as in the snapshot at `level`, where the next one begins. */
static struct {
    struct hs_page *page; /* shared with the runner */
    struct hs_start start;
    const struct hs_job *job;
    struct hs_call first_call;
    int process;
    struct stat channel; /* the socket, by which it is known again */
    int is_once;         /* main runs here once only */
    int running;
    int is_shared;  /* its memory is shared with a clone, and it has run nothing since */
    int has_clones; /* it, or a process of which it is a clone, has made one */
    int has_new_number; /* the process began with the run that is next, or under way */
    int exit_code;
    unsigned runs;
    enum hs_level level;
    uint32_t point_differs;
    int is_bound; /* to a processor, for a dry run */
    int signal; /* that has ended a dry run */
    int is_late; /* a dry run came before the run */
    int is_signalled; /* then */
    /* As a process has them at main. */
    struct hs_segments segments;
    int has_bases;
} worker;

/* Whether the tool has left segments as they are at main. */
int hs_worker_has_segments(void)
{
    struct hs_segments now;
    hs_segments_read(&now, worker.has_bases);
    return memcmp(&now, &worker.segments, sizeof now) == 0;
}

/* Whether an earlier run has used this process, whose age and CPU time another program would have. */
int hs_worker_has_past(void)
{
    return worker.runs > 0;
}

/* Whether an earlier run has had the process's number. */
int hs_worker_has_old_number(void)
{
    return !worker.has_new_number;
}

/* Whether workers can be made here at all; called in the zygote. */
int hs_worker_open(void)
{
    hs_gate_prepare();
    return !hs_shadow_stack() && hs_extended_known && hs_memory_save() == 0 && hs_slots_take_stack() == 0 ? 0 : -1;
}

__attribute__((noreturn)) static void leave(int status)
{
    for (;;)
        HS_SYS(SYS_exit_group, status);
}

static void choose(enum hs_level wanted)
{
    worker.level = wanted;
    hs_memory_choose(wanted);
    hs_state_choose(wanted);
}

/* All but what the tool may look at is as it is to be. */
static void make_ready(void)
{
    /* Calls of the runtime itself do not count. */
    hs_marks_take();
    if (worker.runs > 0)
        hs_state_name();
    hs_call_begin(worker.level);
    worker.page->doubts = 0;
    worker.page->begun = 1;
#ifndef HS_WITHOUT_SEGMENTS
    hs_segments_write(&worker.segments, worker.has_bases);
#endif
}

static void enter(const struct hs_call *call)
{
    hs_frame_give(call);
    hs_gate_close();
    errno = hs_first_errno;
    hs_enter(hs_real_main, call->argc, call->argv, call->envp, &hs_frame);
}

/* A fresh process would have got a signal that came during the dry runs in main, and perhaps handled it. */
static void take_signals(void)
{
    worker.is_late = 0;
    if (worker.signal)
        HS_SYS(SYS_kill, HS_SYS(SYS_getpid), worker.signal);
    if (worker.is_signalled || hs_state_has_signal())
        hs_call_mark();
    worker.signal = worker.is_signalled = 0;
    hs_state_unblock();
}

static void run(const struct hs_call *call)
{
    make_ready();
    worker.running = 1;
    if (worker.is_late)
        take_signals();
    if (worker.level == HS_AT_POINT) {
        hs_gate_close();
        hs_point_enter(worker.job);
    }
    enter(call);
}

/* Has main run dry. Returns if this request cannot. */
static void run_dry(void)
{
    static struct hs_call call;
    const uint32_t flags = worker.job->head->flags;
    unsigned before;
    int is_learned;
    const unsigned char *const is_secret = hs_point_may_run_dry(worker.job, &before, &is_learned);
    if (!is_secret)
        return;
    worker.is_bound = flags & HS_REQUEST_BOUND && hs_point_wants_to_move(worker.job) && hs_affinity_move();
    if (hs_strings_lay_dry(worker.job, &worker.start, &call, is_secret, before, is_learned) != 0)
        hs_worker_give_up();
    make_ready();
    hs_state_block_dry();
    hs_point_begin_dry(worker.job, &call);
    enter(&call);
}

static uint64_t microseconds(struct timeval from, struct timeval to)
{
    return (uint64_t)((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_usec - from.tv_usec));
}

static void account(struct hs_end *end)
{
    struct rusage now, before = *hs_usage_before();
    HS_SYS(SYS_getrusage, RUSAGE_SELF, &now);
    end->user_us = microseconds(before.ru_utime, now.ru_utime);
    end->system_us = microseconds(before.ru_stime, now.ru_stime);
    end->minor_faults = (uint64_t)(now.ru_minflt - before.ru_minflt);
    end->major_faults = (uint64_t)(now.ru_majflt - before.ru_majflt);
    end->voluntary = (uint64_t)(now.ru_nvcsw - before.ru_nvcsw);
    end->involuntary = (uint64_t)(now.ru_nivcsw - before.ru_nivcsw);
    end->max_rss_kib = (uint64_t)now.ru_maxrss;
}

static void report(const struct hs_end *end)
{
    long sent;
    do
        sent = HS_SYS(SYS_sendto, HS_CONTROL_FD, end, sizeof *end, MSG_NOSIGNAL, 0, 0);
    while (sent == -EINTR);
    if (sent < 0)
        leave(end->status);
}

/* Whether the socket is still where it was: a tool may close, or use, any number. */
HS_GENERAL int hs_worker_is_connected(void)
{
    struct stat now;
    return HS_SYS(SYS_fstat, HS_CONTROL_FD, &now) == 0 && now.st_ino == worker.channel.st_ino &&
           now.st_dev == worker.channel.st_dev;
}

/* Has the runner wait for the end of the process: the run goes on in a way that is not followed. Whoever has a copy of the descriptor, such
 * as the parent of a vfork, finds its end. Before main, and in a dry run, there is nothing to believe yet. */
void hs_worker_disconnect(void)
{
    /* Only one thread does it, since the number may be a file's of the tool's own afterwards. The others wait a while: a handler may have
     * interrupted that very thread. */
    static int is_under_way;
    if (!worker.running || !hs_gate_is_worker())
        return;
    for (int waits = 0; __atomic_exchange_n(&is_under_way, 1, __ATOMIC_ACQUIRE); waits++) {
        if (waits == 1000)
            return;
        HS_SYS(SYS_sched_yield);
    }
    if (hs_worker_is_connected()) {
        HS_SYS(SYS_shutdown, HS_CONTROL_FD, SHUT_RDWR);
        HS_SYS(SYS_close, HS_CONTROL_FD);
    }
    __atomic_store_n(&is_under_way, 0, __ATOMIC_RELEASE);
}

static uint32_t audit(void)
{
    uint32_t found = worker.point_differs | hs_state_differs();
    if (hs_memory_differs())
        found |= HS_DIFFERS_MEMORY;
    if (hs_mappings_differ())
        found |= HS_DIFFERS_MAPPINGS;
    return found;
}

/* Closes what main used, before anybody is told of its end, and right before: who reads from it wakes up by this, and is
 * to find the report. */
static void close_all(void)
{
#ifndef HS_WITHOUT_DESCRIPTORS
    HS_SYS(SYS_close_range, HS_CONTROL_FD + 1, ~0u, 0);
    HS_SYS(SYS_close_range, 0, HS_CONTROL_FD - 1, 0);
#endif
}

/* What cannot be restored. */
static uint32_t losses(void)
{
    uint32_t found = hs_state_doubts();
    if (found & HS_RETIRED_THREADS)
        return found;
    if (hs_call_seen() & HS_SEEN_UNKNOWN || hs_child_holds_mutexes())
        found |= HS_RETIRED_CALLS;
    if (hs_call_seen() & HS_SEEN_NUMBER && !worker.has_new_number)
        found |= HS_RETIRED_NUMBER;
    if (hs_mappings_lost())
        found |= HS_RETIRED_MAPPINGS;
    /* What is changed later is found before the next run, which is then lost. */
    if (!hs_outside_is_kept())
        found |= HS_RETIRED_LIMITS;
    return found;
}

static uint32_t retirement(void)
{
    const uint32_t found = losses();
    /* Out of the job's process group, before the end is told: what signals that group next is not for this process. The
     * leader of a session cannot leave. */
    if (!(found & HS_RETIRED_THREADS) && HS_SYS(SYS_setpgid, 0, 0) != 0)
        return found | HS_RETIRED_NUMBER;
    return found;
}

/* Whether the run that is next is to begin where it first looks at its request. If it is audited, a dry run comes first, which
 * is compared. */
static int begins_at_point(int was_dry)
{
    return (was_dry || !(worker.job->head->flags & HS_REQUEST_AUDIT)) && hs_point_is_ready() && hs_point_serves(worker.job);
}

/* Restores what a run, or a dry run, has changed. */
static void restore(void)
{
    hs_memory_restore();
    hs_memory_renew_kernels();
    hs_cache_clean();
    hs_state_restore();
    hs_signals_forget_fault();
}

static void back_to_main(struct hs_call *call)
{
    choose(HS_AT_MAIN);
    hs_mappings_reset_heap();
    hs_memory_restore();
    hs_state_restore();
    hs_strings_lay(worker.job, &worker.start, call);
}

/* Has somebody else run the request: main was entered for a dry run at most, which had no effect. If that has had a signal, which the other
 * one would not get, the run is one that nobody believes. */
void hs_worker_give_up(void)
{
    worker.is_signalled |= hs_state_has_signal();
    worker.page->begun = worker.is_signalled;
    if (worker.is_signalled)
        hs_worker_doubts(HS_RUN_CALLS);
    leave(127);
}

/* A dry run is over: resets the process as far as it has changed anything, and begins the run itself. */
static void after_dry(void)
{
    struct hs_call call;
    hs_gate_lift();
    if (worker.is_bound && hs_affinity_free(worker.job->head->flags & HS_REQUEST_ANYWHERE) != 0)
        hs_worker_give_up();
    /* The kernel drops one that is ignored by default, when its action is. */
    worker.is_signalled |= worker.signal || hs_state_has_signal();
    hs_state_keep_signals(1);
    hs_strings_end_dry();
    const int learns_on = !worker.is_signalled && hs_point_learns_on(worker.job);
    choose(!learns_on && begins_at_point(1) ? HS_AT_POINT : HS_AT_MAIN);
    if (losses() || hs_mappings_undo() != 0)
        hs_worker_give_up();
    hs_mappings_reset_heap();
    restore();
    hs_pays_end();
    hs_state_keep_signals(0);
    hs_strings_lay(worker.job, &worker.start, &call);
    if (learns_on)
        run_dry();
    if (hs_strings_show() != 0)
        hs_worker_give_up();
    worker.is_late = 1;
    run(&call);
}

/* Ends a dry run, from wherever it is; the signal of this number has ended it, 0 if none has. */
void hs_worker_end_dry(int number)
{
    worker.signal = number;
    hs_switch_stack(own_stack + sizeof own_stack, after_dry);
}

/* Another process has the memory from now on. Returns as hs_number_renew does. */
static int hand_over(int leads)
{
    const int found = hs_number_renew(&worker.page->clone, worker.job->head->runner, leads);
    if (found == 0) {
        worker.process = (int)HS_SYS(SYS_getpid);
        hs_point_renumbered();
    }
    return found;
}

/* Gets the process a number that no run before has had, and tells the runner. */
static void renumber(void)
{
#ifndef HS_WITHOUT_RENUMBER
    if (!worker.has_new_number && hand_over(worker.job->head->pgid == HS_GROUP_OWN) != 0)
        leave(127);
#endif
    worker.has_new_number = 1;
    const struct hs_reply reply = {HS_VERSION, sizeof reply, worker.process, 0, 0, 0};
    if (hs_send(&reply, sizeof reply) != 0)
        leave(0);
}

static void take_next(void)
{
    struct hs_call call;
    worker.job = hs_serve_next(&worker.start, &call);
    if (!worker.job)
        leave(0);
    if (!hs_outside_is_kept())
        hs_worker_give_up();
    if (worker.job->head->flags & HS_REQUEST_RENUMBER)
        renumber();
    if (worker.is_shared)
        hs_memory_make_present();
    worker.is_shared = 0;
    if (hs_point_is_ready())
        hs_pays_note_request(hs_point_serves(worker.job));
    if (worker.level == HS_AT_POINT && !begins_at_point(0))
        back_to_main(&call);
    if (worker.job->head->fd_count > 3)
        hs_child_fds(worker.job, HS_CONTROL_FD);
    if (worker.level == HS_AT_MAIN && (hs_point_learns_from(worker.job) || worker.job->head->flags & HS_REQUEST_AUDIT))
        run_dry();
    run(&call);
}

static void hide(void)
{
    /* No directory of a test's stays in use. */
    HS_SYS(SYS_chdir, "/");
    hs_strings_hide();
    hs_title_hide_name();
}

/* A run has looked at its number: nobody may find that when the end is told, and no other run may have it. */
static void give_up_number(struct hs_end *end)
{
    const int found = hand_over(1);
    /* The runner finds that the end was not told. */
    if (found < 0)
        leave(127);
    if (found > 0) {
        end->retired = HS_RETIRED_NUMBER;
        end->ending = HS_ENDING_RETIRED;
    }
}

/* main has ended. */
static void finish(void)
{
    struct hs_end end = {.version = HS_VERSION, .length = sizeof end, .status = worker.exit_code & 0xff};
    /* They can still make no calls. Were one left behind the gate, it could end this process with a status of its own. */
    if (hs_call_seen() & HS_SEEN_THREADS && hs_threads_end() != 0) {
        end.retired = HS_RETIRED_THREADS;
        end.ending = HS_ENDING_RETIRED;
        if (hs_worker_is_connected())
            report(&end);
        leave(worker.exit_code);
    }
    hs_gate_lift();
    worker.point_differs = hs_point_differs();
    const int audited = worker.job->head->flags & HS_REQUEST_AUDIT;
    if (!hs_worker_is_connected())
        leave(worker.exit_code);
    account(&end);
    end.point = worker.level == HS_AT_POINT;
    end.shown = (hs_call_seen() & HS_SEEN_NUMBER) != 0;
    const int waits_there = hs_pays_to_wait_there() || worker.job->head->flags & HS_REQUEST_LEARN;
    choose(hs_point_is_ready() && waits_there && !end.shown ? HS_AT_POINT : HS_AT_MAIN);
    end.retired = retirement();
    end.children = hs_children_count();
    /* A mapping keeps its file open, and the lock on it: it is gone before anybody goes on, as with a process. */
    if (!end.retired && (hs_mappings_undo() != 0 || (audited && hs_mappings_unseen())))
        end.retired = HS_RETIRED_MAPPINGS;
    end.ending = end.retired ? HS_ENDING_RETIRED : HS_ENDING_RESET;
    /* Before anybody goes on, and may look for processes with the tool's name. */
    if (!end.retired)
        hide();
    worker.has_new_number = 0;
#ifndef HS_WITHOUT_RENUMBER
    if (!end.retired && end.shown)
        give_up_number(&end);
#endif
    /* A process that ends now closes its descriptors later than it gives up its locks, and does not wait for what a socket still holds. */
    if (!end.retired)
        close_all();
    end.learned = hs_point_learned();
    end.found = hs_point_findings();
    if (end.retired || !audited)
        report(&end);
    if (end.retired)
        leave(worker.exit_code);
    const int has_code = hs_mappings_have_code();
    hs_mappings_reset_heap();
    if (!has_code && (worker.runs < LEARNING || worker.runs % LEARNING == 0))
        hs_memory_learn();
    worker.runs++;
    restore();
    if (audited) {
        end.differs = audit();
        report(&end);
        if (end.differs)
            leave(worker.exit_code);
    }
    /* The restored stack has no strings. */
    hs_strings_hide();
    /* A page that is written becomes a mapping of its own. */
    if (hs_gate_patch())
        hs_mappings_note_base();
    take_next();
}

/* Whether the end of a run, or what may be one, is that of a fresh process. */
void hs_worker_may_end(void)
{
    hs_call_end();
    if (!hs_strings_are_kept())
        hs_call_mark();
}

/* The tool ends by exit_group. Returns for a process that it made, for a thread, and after the only run: these end as they would. */
void hs_worker_ended(int status)
{
    if (!worker.running)
        return;
    const int is_main = HS_SYS(SYS_gettid) == worker.process;
    if (is_main)
        hs_call_stop_others();
    hs_children_end();
    hs_worker_may_end();
    if (worker.is_once || !is_main)
        return;
    worker.running = 0;
    worker.exit_code = status;
    hs_switch_stack(own_stack + sizeof own_stack, finish);
}

/* The runner is told at once: the tool may end in a way that comes not back here. */
void hs_worker_doubts(enum hs_run_doubt doubt)
{
    if (hs_gate_is_worker())
        worker.page->doubts |= doubt;
}

/* Names the first call that makes the run doubtful, for the report. */
void hs_worker_names_call(long number)
{
    if (hs_gate_is_worker() && worker.page->doubts >> HS_RUN_CALL_SHIFT == 0)
        worker.page->doubts |= (int32_t)(number + 1) << HS_RUN_CALL_SHIFT;
}

/* In a clone, all is as in the process that made it, but for what the kernel does not copy, or copies wrongly. Its parent's page and kept
 * blocks are not there; the signal stack, actions, mask, name, limits and rseq are. */
static int settle_clone(const struct hs_job *job)
{
    const int socket = job->fds[0], page = job->fds[1];
    hs_child_begin(job);
    /* It waits. */
    hs_title_hide_name();
    worker.process = (int)HS_SYS(SYS_getpid);
    /* A clone is made for the run that follows. */
    worker.has_new_number = 1;
    const long made = HS_SYS(SYS_mmap, worker.page, sizeof *worker.page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, page, 0);
    if (made != (long)worker.page || HS_SYS(SYS_madvise, made, sizeof *worker.page, MADV_DONTFORK) != 0)
        return -1;
    if (HS_SYS(SYS_dup3, socket, HS_CONTROL_FD, O_CLOEXEC) < 0 || HS_SYS(SYS_fstat, HS_CONTROL_FD, &worker.channel) != 0)
        return -1;
    hs_mappings_open_again();
    hs_point_cloned();
    return hs_gate_open_again();
}

/* Makes a clone of this process. Returns in both. */
void hs_worker_clone(const struct hs_job *job)
{
    struct hs_reply reply = {HS_VERSION, sizeof reply, 0, 0, HS_STAGE_CLONE, 0};
    if (!worker.has_clones)
        hs_text_share();
    worker.is_shared = worker.has_clones = 1;
    reply.pid = hs_child_clone_worker(&worker.page->clone);
    if (reply.pid < 0) {
        reply.error = -reply.pid;
        reply.pid = 0;
    } else if (reply.pid == 0) {
        if (settle_clone(job) != 0)
            leave(127);
        reply.pid = worker.process;
    }
    HS_SYS(SYS_close, job->fds[0]);
    HS_SYS(SYS_close, job->fds[1]);
    if (hs_send(&reply, sizeof reply) != 0)
        leave(0);
}

static int settle(void)
{
    const int given = (int)worker.job->head->fd_count;
    worker.process = (int)HS_SYS(SYS_getpid);
    worker.has_new_number = 1;
    HS_SYS(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    hs_child_begin(worker.job);
    worker.page = hs_own_map(sizeof *worker.page, MAP_SHARED, worker.job->fds[given + 1]);
    if (worker.page == MAP_FAILED || madvise(worker.page, sizeof *worker.page, MADV_DONTFORK) != 0)
        return -1;
    if (dup3(worker.job->fds[given], HS_CONTROL_FD, O_CLOEXEC) < 0 || fstat(HS_CONTROL_FD, &worker.channel) != 0)
        return -1;
    hs_child_fds(worker.job, HS_CONTROL_FD);
    worker.is_once = (worker.job->head->flags & HS_REQUEST_ONCE) != 0;
    worker.has_bases = (getauxval(AT_HWCAP2) & FSGSBASE) != 0;
    hs_segments_read(&worker.segments, worker.has_bases);
    hs_point_open();
    if (hs_state_save() != 0 || hs_gate_open() != 0 || hs_mappings_open() != 0)
        return -1;
    hs_child_limit(worker.job);
    hs_outside_note();
    hs_strings_lay(worker.job, &worker.start, &worker.first_call);
    return 0;
}

static void first(void)
{
    if (settle() != 0)
        leave(127);
    run(&worker.first_call);
}

void hs_worker_begin(const struct hs_start *from, const struct hs_call *call, const struct hs_job *request)
{
    worker.start = *from;
    worker.first_call = *call;
    worker.job = request;
    hs_switch_stack(own_stack + sizeof own_stack, first);
}

#endif
