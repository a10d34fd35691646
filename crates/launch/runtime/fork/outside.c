/* What other processes can change of this one, unseen: limits, how it is scheduled, how exact its timers are.
 *
 * They can find the process by a name, a process group or an open file (prlimit, renice, chrt). The tool need not have shown its number.
 * A fresh process inherits all of this from its parent. So it is noted when the process is ready, and compared before each request and
 * after each run. A process that was changed ends, and another one serves the request.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime.h"

#define IOPRIO_WHO_PROCESS 1

/* As sched_getattr lays it out (linux/sched/types.h). Runtime to period are the kernel's own for usual policies. */
struct schedule {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t least, most;
};

struct outside {
    struct rlimit limits[RLIM_NLIMITS];
    struct schedule schedule;
    long io_priority, slack;
};

static struct outside noted;

static void look(struct outside *now)
{
    memset(now, 0, sizeof *now);
    for (int which = 0; which < RLIM_NLIMITS; which++)
        HS_SYS(SYS_prlimit64, 0, which, 0, &now->limits[which]);
    HS_SYS(SYS_sched_getattr, 0, &now->schedule, sizeof now->schedule, 0);
    now->schedule.runtime = now->schedule.deadline = now->schedule.period = 0;
    now->io_priority = HS_SYS(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
    now->slack = HS_SYS(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0);
}

void hs_outside_note(void)
{
    look(&noted);
}

/* Whether nobody has changed it since. */
int hs_outside_is_kept(void)
{
    struct outside now;
#ifdef HS_WITHOUT_LIMITS
    return 1;
#endif
    look(&now);
    return memcmp(&now, &noted, sizeof now) == 0;
}
