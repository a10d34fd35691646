/* Serves requests: reports what was found in the stopped process, then makes a fork or a worker for each request.
 *
 * Everything that can fail is done before the clone. So a failed request leaves no process, and the runner can start the tool cold.
 * All memory that differs for a fork is written here as well, which saves the fork page faults.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime.h"

/* One message at a time: from its receipt until its reply is sent, `job` points into `message`. A fork inherits both, and uses them until
 * it runs main. The rest is set before the first request, and stays. */
static char message[HS_MESSAGE_MAX] __attribute__((aligned(4096)));
static struct {
    struct hs_job job;
    struct hs_slot *slots; /* shared with the runner */
    int is_python;
    uintptr_t stack_low; /* where the stack began when main would have */
    mode_t mask; /* of a process that does not ask for another */
} server;

struct listing {
    char *at, *end;
    uint32_t count;
    int full;
};

static int list_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct listing *out = data;
    const char *name = info->dlpi_name;
    (void)size;
    if (name[0] != '/' || strncmp(name, "/proc/self/fd/", 14) == 0)
        return 0;
    size_t length = strlen(name) + 1;
    if (length > (size_t)(out->end - out->at)) {
        out->full = 1;
        return 1;
    }
    memcpy(out->at, name, length);
    out->at += length;
    out->count++;
    return 0;
}

static int announce(uint32_t doubts, uint64_t place)
{
    struct hs_ready *ready = (struct hs_ready *)message;
    struct listing list = {message + sizeof *ready, message + 64 * 1024, 0, 0};
    dl_iterate_phdr(list_object, &list);
    if (list.full)
        doubts |= HS_DOUBT_ASKED_FULL;
    uint32_t names;
    list.at += hs_asked_names(list.at, 8192, &names);
    *ready = (struct hs_ready){HS_VERSION, (uint32_t)(list.at - message), (int32_t)syscall(SYS_getpid),
                               doubts, list.count, names, place};
    return hs_send(message, ready->length);
}

/* Gives 0, 1 and 2 the null device, whatever stood there for constructors to look at, and shares the slots with the runner. */
static int settle(void)
{
    const size_t size = HS_SLOTS * sizeof *server.slots;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    server.slots = hs_own_map(size, MAP_SHARED, HS_SLOTS_FD);
    if (server.slots == MAP_FAILED || madvise(server.slots, size, MADV_DONTFORK) != 0)
        return -1;
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        return -1;
    close(null);
    close(HS_SLOTS_FD);
    close(HS_RUNTIME_FD);
    return fcntl(HS_CONTROL_FD, F_SETFD, FD_CLOEXEC);
}

static int limits_allowed(void)
{
    for (uint32_t i = 0; i < server.job.head->limit_count; i++) {
        struct rlimit now;
        const struct hs_limit *wanted = &server.job.limits[i];
        if (getrlimit((int)wanted->resource, &now) != 0 || wanted->hard > now.rlim_max ||
            wanted->soft > wanted->hard)
            return 0;
    }
    return 1;
}

/* Does all that can fail; returns the stage that did, or 0. Without `call`, the arguments are left to the caller. */
static int prepare(const struct hs_start *start, struct hs_call *call)
{
    errno = EPROTO;
    if (chdir(server.job.cwd) != 0)
        return HS_STAGE_DIRECTORY;
    errno = EPERM;
    if (!limits_allowed() || !hs_child_has_room(&server.job))
        return HS_STAGE_LIMITS;
    if (call)
        hs_strings_lay(&server.job, start, call);
    if ((call ? hs_strings_show() : hs_title_set(server.job.strings, server.job.environment, server.job.end)) != 0)
        return HS_STAGE_TITLE;
    umask(server.job.head->umask != HS_UMASK_KEEP ? server.job.head->umask : server.mask);
    return 0;
}

static void close_fds(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        close(server.job.fds[i]);
}

/* Whether such a worker can be made; found out at the first request for one. */
static int worker_possible(uint32_t flags)
{
#if HS_RESETS
    static int is_open = -1;
    if (server.is_python)
        return 0;
    if (is_open < 0)
        is_open = hs_worker_open() == 0;
    return is_open && (flags & HS_REQUEST_ONCE || hs_state_limits_fit());
#else
    (void)flags;
    return 0;
#endif
}

/* Receives a request and decodes it; its length, -1 if it cannot be served, and 0 if this process is to end: when the runner
 * is gone, or where it might stay bound to a processor. */
static long next_request(uint32_t room, uint32_t *fd_count)
{
    static long last;
    long length = hs_receive(message, sizeof message, server.job.fds, fd_count);
    if (length < (long)sizeof(struct hs_request))
        return 0;
    /* A tool that reads behind its strings by mistake finds nothing of an earlier request. */
    if (length < last)
        memset(message + length, 0, (size_t)(last - length));
    last = length;
    const uint32_t flags = ((const struct hs_request *)message)->flags;
    if (flags & HS_REQUEST_BOUND && hs_affinity_free(flags & HS_REQUEST_ANYWHERE) != 0)
        return 0;
    const uint32_t own = flags & HS_REQUEST_WORKER ? 2 : 0;
    return hs_decode(message, length, room, &server.job) == 0 && server.job.head->fd_count + own == *fd_count ? length : -1;
}

/* Makes the requested fork; returns 1 in it. */
static int make_fork(const struct hs_start *start, struct hs_call *call, struct hs_reply *reply)
{
    if (hs_strings_learn_counts(&server.job, start) != 0)
        return 0;
    hs_residue_clear(&server.job, server.stack_low);
    if (server.job.head->flags & HS_REQUEST_WORKER && !worker_possible(server.job.head->flags)) {
        reply->stage = HS_STAGE_RESET;
        return 0;
    }
    if (server.job.head->flags & HS_REQUEST_ENLARGE)
        hs_text_enlarge();
#if HS_RESETS
    if (server.job.head->flags & HS_REQUEST_WORKER)
        hs_gate_patch_reported();
#endif
    reply->stage = (uint32_t)prepare(start, call);
    if (reply->stage != 0) {
        reply->error = errno;
        return 0;
    }
    reply->pid = hs_child_clone((int32_t *)&server.slots[server.job.head->slot].pid, server.job.head->pgid);
    if (reply->pid == 0)
        return 1;
    reply->stage = HS_STAGE_CLONE;
    reply->error = reply->pid > 0 ? 0 : errno;
    return 0;
}

static void hide_strings(void)
{
    if (server.is_python)
        hs_title_hide_strings(server.job.strings, server.job.end);
    else
        hs_strings_hide();
}

/* Takes one request; returns 1 in the fork, 0 in the zygote. */
static int take_request(const struct hs_start *start, struct hs_call *call)
{
    const uint32_t room = server.is_python ? HS_ROOM : (uint32_t)start->argc;
    uint32_t fd_count;
    struct hs_reply reply = {HS_VERSION, sizeof reply, 0, EPROTO, HS_STAGE_REQUEST, 0};
    long length = next_request(room, &fd_count);
    if (length == 0 || !hs_outside_is_kept())
        _exit(0);
    if (length > 0) {
        if (make_fork(start, call, &reply))
            return 1;
        hide_strings();
    }
    /* No directory of a test's stays in use, and no file. */
    close_fds(fd_count);
    if (chdir("/") != 0 || hs_send(&reply, sizeof reply))
        _exit(0);
    return 0;
}

#if HS_RESETS
/* Whether the runner wants a clone of this worker. */
static int asks_for_clone(uint32_t fd_count)
{
    server.job.head = (const struct hs_request *)message;
    return server.job.head->version == HS_VERSION && server.job.head->length == sizeof(struct hs_request) &&
           server.job.head->flags == HS_REQUEST_CLONE && fd_count == 2;
}
#endif

/* A worker's next request, ready to be run; NULL when the runner is gone. */
const struct hs_job *hs_serve_next(const struct hs_start *start, struct hs_call *call)
{
    for (;;) {
        uint32_t fd_count;
        long length = next_request((uint32_t)start->argc, &fd_count);
        if (length == 0)
            return NULL;
        if (length > 0 && prepare(start, call) == 0)
            return &server.job;
#if HS_RESETS
        if (length < 0 && asks_for_clone(fd_count)) {
            hs_worker_clone(&server.job);
            continue;
        }
#endif
        const struct hs_end refused = {.version = HS_VERSION, .length = sizeof refused, .ending = HS_ENDING_REFUSED};
        close_fds(fd_count);
        if (chdir("/") != 0 || hs_send(&refused, sizeof refused) != 0)
            return NULL;
    }
}

/* Tells the runner what was found, and that requests are served from now on. */
static void offer(uint32_t doubts, uint64_t place)
{
    if (settle() != 0)
        doubts |= HS_DOUBT_KERNEL;
    hs_title_hide_zygote();
    if (announce(doubts, place) != 0)
        _exit(0);
    server.mask = umask(0);
    umask(server.mask);
}

/* Of the stack that the kernel maps for each program, the pointers to the empty arguments take a part. As much more of it is mapped below,
 * by a call that reads there: it fails where the limit forbids it. */
static void lower_stack(const struct hs_start *start)
{
    const uintptr_t page = 4096, taken = ((uintptr_t)start->argc * sizeof *start->argv + page - 1) & -page;
    struct hs_mapping map;
    for (const char *at = hs_maps_read(); at && (at = hs_maps_next(at, &map));)
        if ((uintptr_t)start->argv >= map.from && (uintptr_t)start->argv < map.to) {
            server.stack_low = map.from;
            HS_SYS(SYS_faccessat, AT_FDCWD, map.from - taken, F_OK);
        }
}

/* Makes a zygote of the stopped process; returns what speaks against it so far. */
static uint32_t become_zygote(uint64_t place)
{
    const int is_shown = hs_vdso_show() == 0;
    hs_asked_tell(place);
#if HS_RESETS
    hs_usage_note_start();
#endif
    hs_asked_stop();
    hs_marks_resolve();
    hs_threads_resolve();
    const int failed = !is_shown || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || hs_title_open() != 0 || hs_child_open() != 0;
    return hs_asked_doubts() | (failed ? HS_DOUBT_KERNEL : 0);
}

/* Serves requests of a Python script that has halted. Returns the request in a fork only. */
const struct hs_job *hs_serve_python(const struct hs_start *start, uint64_t place)
{
    server.is_python = 1;
    uint32_t doubts = become_zygote(place);
    doubts |= hs_snapshot_doubts_of_python();
    hs_affinity_open();
    hs_outside_note();
    offer(doubts, place);
    while (!take_request(start, NULL))
        ;
    hs_child_install(&server.job);
    hs_marks_take();
    return &server.job;
}

void hs_serve(const struct hs_start *start, struct hs_call *call)
{
    uint32_t doubts = become_zygote(0);
    lower_stack(start);
    doubts |= hs_snapshot_doubts(start);
    if (hs_strings_open(start) != 0)
        doubts |= HS_DOUBT_KERNEL;
    hs_loader_find(start);
    hs_nested_open();
    if (hs_bind_all() != 0)
        doubts |= HS_DOUBT_FUNCTIONS;
    hs_affinity_open();
    hs_outside_note();
    offer(doubts, 0);
    while (!take_request(start, call))
        ;
#if HS_RESETS
    if (server.job.head->flags & HS_REQUEST_WORKER)
        hs_worker_begin(start, call, &server.job);
#endif
    hs_child_install(&server.job);
    /* Calls of the runtime itself do not count. */
    hs_marks_take();
}
