/* Clones the zygote and turns the clone into the requested process.
 *
 * A raw clone must do for the child what libc's fork does: have the kernel write the cached thread number, and register the list of
 * robust mutexes again. Handlers of pthread_atfork are not called, since the tool has not forked. The fork's own part consists of system
 * calls that cannot fail for a request that the server has accepted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime.h"

/* Set by hs_child_open, in the zygote. */
static struct {
    int *number;  /* where libc keeps the thread's number */
    int *cleared; /* what the kernel clears when the thread ends: the same until glibc 2.42 */
    void *robust_list;
    size_t robust_size;
} thread;

/* The word that holds the number, if there is only one between the thread's block and the word that the kernel clears. */
static int *find_number(void)
{
    const int number = (int)syscall(SYS_gettid);
    int *found = *thread.cleared == number ? thread.cleared : NULL;
    for (int *at = __builtin_thread_pointer(); !found && at < thread.cleared; at++)
        if (*at == number)
            found = at;
    for (int *at = found + 1; found && at < thread.cleared; at++)
        if (*at == number)
            return NULL;
    return found;
}

int hs_child_open(void)
{
    if (prctl(PR_GET_TID_ADDRESS, &thread.cleared, 0, 0, 0) != 0 || !thread.cleared)
        return -1;
    thread.number = find_number();
    if (!thread.number)
        return -1;
    return (int)syscall(SYS_get_robust_list, 0, &thread.robust_list, &thread.robust_size);
}

static void block(uint64_t signals)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &signals, NULL, HS_SET_BYTES);
}

/* Returns to the zygote's own process group. Signals that came for the other one are dropped. */
static void leave_group(void)
{
    const uint64_t all = ~0ull;
    const struct timespec at_once = {0, 0};
    const int saved = errno;
    setpgid(0, 0);
    while (syscall(SYS_rt_sigtimedwait, &all, NULL, &at_once, HS_SET_BYTES) > 0)
        ;
    errno = saved;
}

/* The fork is born in its process group, so that a signal to the group reaches it from the start. If the runner moved it later, that would
 * undo a group which the tool makes at once. The zygote is in that group for a moment, with all signals blocked. */
int hs_child_clone(int32_t *pid_cell, int32_t group)
{
    unsigned long flags =
        CLONE_PARENT | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
    block(~0ull);
    int pid = -1;
    if (group == HS_GROUP_OWN || setpgid(0, group) == 0)
        pid = (int)hs_clone(flags, pid_cell, thread.number);
    if (pid != 0)
        leave_group();
    block(0);
    return pid;
}

#if HS_RESETS
/* The same for a worker that waits: its clone waits, too, in a group of its own. Only the runtime's text makes calls here. */
int hs_child_clone_worker(volatile int32_t *pid_cell)
{
    const long flags = CLONE_PARENT | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
    return (int)HS_SYS(SYS_clone, flags, 0, pid_cell, thread.number, 0);
}
#endif

/* Whether robust mutexes are held. The kernel notifies their waiters when a process ends. */
int hs_child_holds_mutexes(void)
{
    /* An empty list points at itself. */
    return *(void **)thread.robust_list != thread.robust_list;
}

#if HS_RESETS
/* What the kernel is to do when the first thread ends: that is of the process that goes on, if another one takes over its memory. */
void hs_child_leave_memory(void)
{
    syscall(SYS_set_tid_address, NULL);
}

/* The calling process has the memory from now on. */
void hs_child_take_memory(void)
{
    syscall(SYS_set_robust_list, thread.robust_list, thread.robust_size);
    syscall(SYS_set_tid_address, thread.cleared);
}

/* Makes a process with this memory, and these descriptors, and ends the calling one. Returns in the new one, or with -errno. */
long hs_child_hand_over(volatile int32_t *pid_cell)
{
    const unsigned long flags = CLONE_VM | CLONE_FILES | CLONE_PARENT | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD;
    return hs_hand_over(flags, pid_cell, thread.number);
}
#endif

int *hs_child_number(void)
{
    return thread.number;
}

static void close_all(unsigned from, unsigned to, int keep)
{
    if (keep >= (int)from && (unsigned)keep <= to) {
        syscall(SYS_close_range, from, keep - 1, 0);
        from = (unsigned)keep + 1;
    }
    syscall(SYS_close_range, from, to, 0);
}

/* The highest number that a request wants, or that is in use here. */
static int highest(const struct hs_job *job)
{
    int found = HS_RUNTIME_FD;
    for (uint32_t i = 0; i < job->head->fd_count; i++)
        if (job->targets[i] > found)
            found = job->targets[i];
    return found;
}

/* Whether there are as many numbers as hs_child_fds needs. */
int hs_child_has_room(const struct hs_job *job)
{
    struct rlimit files;
    return job->head->fd_count <= 3 || getrlimit(RLIMIT_NOFILE, &files) != 0 ||
           (rlim_t)highest(job) + 1 + job->head->fd_count <= files.rlim_cur;
}

/* Gives the request's descriptors their numbers and closes all others but `keep`, -1 for none. Where a number is wanted
 * that a source may have, all go above everything first; three alone are in order already. */
void hs_child_fds(const struct hs_job *job, int keep)
{
    int fds[HS_FDS_MAX];
    const uint32_t count = job->head->fd_count;
    const int last = count > 3 ? highest(job) : 2;
    for (uint32_t i = 0; i < count; i++)
        fds[i] = count > 3 ? fcntl(job->fds[i], F_DUPFD, last + 1) : job->fds[i];
    if (count > 3)
        close_all(3, (unsigned)last, keep);
    for (uint32_t i = 0; i < count; i++)
        dup2(fds[i], job->targets[i]);
    close_all((unsigned)last + 1, ~0u, keep);
}

/* The first step of every fork: it registers with the kernel as a process of its own, and ends if the runner is gone. From then on the
 * guard ends it. (A signal at the runner's end would show, also in what it executes: only the gate can hide that.) */
void hs_child_begin(const struct hs_job *job)
{
    syscall(SYS_set_robust_list, thread.robust_list, thread.robust_size);
    if (thread.cleared != thread.number)
        syscall(SYS_set_tid_address, thread.cleared);
    hs_title_show();
    if (syscall(SYS_getppid) != job->head->runner)
        _exit(127);
    if (job->head->pgid == HS_GROUP_OWN)
        setpgid(0, 0);
}

void hs_child_limit(const struct hs_job *job)
{
    for (uint32_t i = 0; i < job->head->limit_count; i++) {
        struct rlimit limit = {job->limits[i].soft, job->limits[i].hard};
        setrlimit((int)job->limits[i].resource, &limit);
    }
}

void hs_child_install(const struct hs_job *job)
{
    hs_child_begin(job);
    hs_child_fds(job, -1);
    hs_child_limit(job);
}
