/* Puts together what the job is to be given and what the server cannot see of this process from outside. */
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/stat.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "client.h"
#include "system.h"

#define IOPRIO_WHO_PROCESS 1
#define ECHILD 10
/* linux/sched.h, linux/prctl.h and linux/stat.h of later kernels than that of the build. */
#define SCHED_RESET_ON_FORK 0x40000000
#ifndef PR_GET_MDWE
#define PR_GET_MDWE 66
#endif
#ifndef PR_GET_MEMORY_MERGE
#define PR_GET_MEMORY_MERGE 68
#endif
#ifndef PR_GET_IO_FLUSHER
#define PR_GET_IO_FLUSHER 58
#endif
/* Nanoseconds, of a process that nobody has given another. */
#define TIMER_SLACK 50000

/* A variable may have been taken out of the environment's row, and another one added. */
enum part { RUN, TARGETS, DIRECTORY, PROGRAM, NAME, ARGUMENTS, ENVIRONMENT };

struct entry {
    uint64_t inode;
    int64_t next;
    unsigned short length;
    unsigned char type;
    char name[];
};

static int number_of(const char *name)
{
    int number = 0;
    if (*name < '0' || *name > '9')
        return -1;
    while (*name)
        number = number * 10 + (*name++ - '0');
    return number;
}

/* Every descriptor that is open now was inherited, so the command would have it, too. */
static const char *list_descriptors(struct message *message)
{
    char buffer[2048] __attribute__((aligned(8)));
    uint32_t count = 0, standard = 0;
    long got, fd = sys(__NR_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return "there is no /proc";
    while ((got = sys(__NR_getdents64, fd, buffer, sizeof buffer)) > 0)
        for (long at = 0; at < got; at += ((struct entry *)(buffer + at))->length) {
            int number = number_of(((struct entry *)(buffer + at))->name);
            if (number < 0 || number == fd)
                continue;
            if (count == HX_FDS_MAX)
                return "too many descriptors are open";
            standard += number < 3;
            message->targets[count++] = number;
        }
    sys(__NR_close, fd);
    message->run.fd_count = count;
    return standard == 3 ? NULL : "a standard stream is closed";
}

static const char *note_directory(struct message *message)
{
    const uint32_t wanted = STATX_BASIC_STATS | STATX_MNT_ID;
    struct statx here;
    long length = sys(__NR_getcwd, message->directory, sizeof message->directory);
    if (length <= 0 || message->directory[0] != '/' || sys(__NR_statx, AT_FDCWD, ".", 0, wanted, &here) != 0)
        return "the working directory has no path";
    message->run.directory_device = (uint64_t)here.stx_dev_major << 32 | here.stx_dev_minor;
    message->run.directory_inode = here.stx_ino;
    message->run.directory_mount = here.stx_mask & STATX_MNT_ID ? here.stx_mnt_id : 0;
    message->parts[DIRECTORY] = (struct iovec){message->directory, (size_t)length};
    return NULL;
}

/* The kernel lays the strings of a new process behind one another. */
static const char *span(struct iovec *part, int rows, char **strings, uint32_t *count)
{
    char *at = *strings;
    *part = (struct iovec){at, 0};
    for (*count = 0; strings[*count]; ++*count) {
        if (strings[*count] != at) {
            if (--rows == 0)
                return "arguments do not lie in a row";
            at = strings[*count];
            *++part = (struct iovec){at, 0};
        }
        const size_t length = text_length(at) + 1;
        part->iov_len += length;
        at += length;
    }
    return NULL;
}

static struct iovec whole(const char *text)
{
    return (struct iovec){(void *)text, text_length(text) + 1};
}

static void note_state(struct hx_run *run)
{
    for (int resource = 0; resource < HX_LIMITS; resource++)
        sys(__NR_prlimit64, 0, resource, NULL, &run->limits[resource]);
    run->io_priority = (uint32_t)sys(__NR_ioprio_get, IOPRIO_WHO_PROCESS, 0);
    run->personality = (uint32_t)sys(__NR_personality, 0xffffffff);
    run->securebits = (uint32_t)sys(__NR_prctl, PR_GET_SECUREBITS, 0, 0, 0, 0);
}

/* Whether an exec keeps a setting that is not the usual one, and that a job does not have (crates/launch/src/sys/settings.rs). */
static int has_unusual_settings(void)
{
    static const struct {
        int option;
        long usual;
    } settings[] = {{PR_GET_MDWE, 0}, {PR_MCE_KILL_GET, PR_MCE_KILL_DEFAULT}, {PR_GET_MEMORY_MERGE, 0}, {PR_GET_IO_FLUSHER, 0}};
    int access = PR_TSC_ENABLE, mode = 0;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const long value = sys(__NR_prctl, settings[i].option, 0, 0, 0, 0);
        if (value >= 0 && value != settings[i].usual)
            return 1;
    }
    sys(__NR_prctl, PR_GET_TSC, &access, 0, 0, 0);
    sys(__NR_get_mempolicy, &mode, NULL, 0, NULL, 0);
    const long policy = sys(__NR_sched_getscheduler, 0);
    return access != PR_TSC_ENABLE || mode != 0 || (policy >= 0 && policy & SCHED_RESET_ON_FORK);
}

/* What an exec keeps and a job in another process cannot be given. */
static const char *find_kept(const struct command *command)
{
    struct itimerval timer;
    int value = 0;
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
        /* Without a value, the kernel keeps the interval of those that count CPU time. */
        if (sys(__NR_getitimer, which, &timer) != 0 || timer.it_value.tv_sec || timer.it_value.tv_usec ||
            timer.it_interval.tv_sec || timer.it_interval.tv_usec)
            return "a timer is running";
    if (sys(__NR_waitid, P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT | __WALL) != -ECHILD)
        return "it has child processes already";
    /* A job that becomes this client by exec has SIGKILL from the server. */
    if (sys(__NR_prctl, PR_GET_PDEATHSIG, &value, 0, 0, 0) != 0 || (value && !(command->server && value == SIGKILL)))
        return "a signal is due when its parent ends";
    if (sys(__NR_prctl, PR_GET_CHILD_SUBREAPER, &value, 0, 0, 0) != 0 || value)
        return "it is a subreaper";
    if (sys(__NR_prctl, PR_GET_THP_DISABLE, 0, 0, 0, 0) != 0)
        return "it has no huge pages";
    if (has_unusual_settings())
        return "it has settings (prctl, NUMA policy) that are not the usual ones";
    return sys(__NR_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0) == TIMER_SLACK ? NULL : "its timers are more or less exact than usual";
}

const char *describe(struct message *message, const struct command *command)
{
    struct hx_run *run = &message->run;
    struct iovec *parts = message->parts;
    const char *why = list_descriptors(message);
    if (!why)
        why = note_directory(message);
    if (!why)
        why = span(&parts[ARGUMENTS], 1, command->argv + 1, &run->argc);
    if (!why)
        why = span(&parts[ENVIRONMENT], PARTS - ENVIRONMENT, command->envp, &run->envc);
    if (why)
        return why;
    parts[RUN] = (struct iovec){run, sizeof *run};
    parts[TARGETS] = (struct iovec){message->targets, run->fd_count * sizeof *message->targets};
    parts[PROGRAM] = whole(command->program);
    /* The name is not part of the row: a link's name is replaced by the compiler's path. */
    parts[NAME] = whole(command->argv[0]);
    run->argc++;
    run->blocked = command->mask;
    note_state(run);
    why = find_kept(command);
    if (why)
        return why;
    size_t length = 0;
    for (int part = 0; part < PARTS; part++)
        length += parts[part].iov_len;
    run->head = (struct hx_head){HX_MAGIC, HX_VERSION, (uint32_t)length, HX_RUN};
    return length > HX_MESSAGE_MAX ? "arguments and environment are too long" : NULL;
}
