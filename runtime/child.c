/* Makes a copy of the template and turns it into the requested process.
 *
 * A raw clone must do what libc's fork does to the child: let the kernel write the cached thread number and register
 * the list of robust mutexes again. Fork handlers are not run: to the tool there was no fork. The copy's part is
 * system calls that cannot fail for a request that the server has accepted.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch.h"
#include "runtime.h"

static int *thread_number;
static void *robust_list;
static size_t robust_size;

int hs_child_open(void)
{
    if (prctl(PR_GET_TID_ADDRESS, &thread_number, 0, 0, 0) != 0 || !thread_number)
        return -1;
    return (int)syscall(SYS_get_robust_list, 0, &robust_list, &robust_size);
}

int hs_child_clone(int32_t *pid_cell)
{
    unsigned long flags =
        CLONE_PARENT | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
    return (int)hs_clone(flags, pid_cell, thread_number);
}

/* Sources are above 2 always. Where a further descriptor's number is also a source's, all go above everything first. */
static void install_fds(const struct hs_job *job)
{
    int fds[HS_FDS_MAX];
    uint32_t count = job->head->fd_count;
    for (uint32_t i = 0; i < count; i++)
        fds[i] = count > 3 ? fcntl(job->fds[i], F_DUPFD, HS_RUNTIME_FD + 1) : job->fds[i];
    if (count > 3)
        syscall(SYS_close_range, 3, HS_RUNTIME_FD, 0);
    unsigned first = 3;
    for (uint32_t i = 0; i < count; i++) {
        dup2(fds[i], job->targets[i]);
        if ((unsigned)job->targets[i] >= first)
            first = (unsigned)job->targets[i] + 1;
    }
    syscall(SYS_close_range, first, ~0u, 0);
}

void hs_child_install(const struct hs_job *job)
{
    const struct hs_request *head = job->head;
    syscall(SYS_set_robust_list, robust_list, robust_size);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The runner may have died before its death could be signalled. */
    if (syscall(SYS_getppid) != head->runner)
        _exit(127);
    setpgid(0, head->pgid);
    install_fds(job);
    for (uint32_t i = 0; i < head->limit_count; i++) {
        struct rlimit limit = {job->limits[i].soft, job->limits[i].hard};
        setrlimit((int)job->limits[i].resource, &limit);
    }
}
