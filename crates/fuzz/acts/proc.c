/* What /proc shows of a process, and what can be written there. */
#include "act.h"

#undef FAMILY
#define FAMILY "proc"

static void say_file(const char *name)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/%s", name);
    int got = slurp(path, text, sizeof text);
    for (int i = 0; i < got; i++)
        if (!text[i])
            text[i] = '|';
    while (got > 0 && text[got - 1] == '\n')
        text[--got] = 0;
    say("%d %s", got, text);
}

static void set_file(const char *name, const char *value)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/%s", name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    say_result(name, fd < 0 ? -1 : write(fd, value, strlen(value)));
    close(fd);
}

OBSERVE(proc_status)
{
    say_status((const char *const[]){"Umask", "State", "TracerPid", "Threads", "SigP", "SigB", "SigI", "SigC",
                                     "ShdP", "CapInh", "CapAmb", "THP_enabled", "Cpus_allowed", "Mems_allowed_list",
                                     "CoreDumping", "untag_mask", "x86_", NULL});
}

OBSERVE(proc_cmdline)
{
    say_file("cmdline");
}

OBSERVE(proc_environ)
{
    say_file("environ");
}

OBSERVE(proc_comm)
{
    char name[32];
    slurp("/proc/self/comm", name, sizeof name);
    say("%d", !strncmp(name, "acts", 4));
}

OBSERVE(proc_limits)
{
    say_file("limits");
}

OBSERVE(proc_settings)
{
    say_file("oom_score_adj");
    say_file("coredump_filter");
    say_file("timerslack_ns");
    say_file("loginuid");
    say_file("setgroups");
}

OBSERVE(proc_cgroup)
{
    say_file("cgroup");
}

OBSERVE(proc_task_count)
{
    struct stat now = {0};
    stat("/proc/self/task", &now);
    say("threads %d", (int)now.st_nlink - 2);
}

OBSERVE(proc_executable)
{
    char path[4096] = "", again[4096] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    say("absolute %d there %d", length > 0 && path[0] == '/', access(path, X_OK));
    say("real %d", realpath(path, again) && !strcmp(path, again));
}

OBSERVE(proc_stat_fields)
{
    char text[1024];
    long fields[60] = {0};
    int count = 0;
    if (slurp("/proc/self/stat", text, sizeof text) <= 0)
        return say("none");
    char *rest = strrchr(text, ')') + 4;
    for (char *word; count < 60 && (word = strsep(&rest, " "));)
        fields[count++] = atol(word);
    /* From the parent's number on: process group, terminal, priority, nice, threads, exit signal. */
    say("parent %d terminal %ld priority %ld nice %ld threads %ld", fields[0] == getppid(), fields[3], fields[14], fields[15],
        fields[16]);
    say("exit signal %ld policy %ld", fields[34], fields[37]);
}

OBSERVE(proc_arguments_place)
{
    char text[4096];
    int got = slurp("/proc/self/cmdline", text, sizeof text), total = 0;
    for (char **argument = own_argv; *argument; argument++)
        total += (int)strlen(*argument) + 1;
    say("same %d", got == total && !memcmp(text, own_argv[0], strlen(own_argv[0])));
}

DISTURB(proc_comm_write)
{
    set_file("comm", "renamed");
}

DISTURB(proc_oom_write)
{
    set_file("oom_score_adj", "321");
}

DISTURB(proc_core_write)
{
    set_file("coredump_filter", "0x7f");
}

DISTURB(proc_slack_write)
{
    set_file("timerslack_ns", "77777");
}

DISTURB(proc_autogroup_write)
{
    set_file("autogroup", "5");
}

DISTURB(proc_refs_clear)
{
    set_file("clear_refs", "4");
}

DISTURB(proc_refs_clear_peak)
{
    set_file("clear_refs", "5");
}

DISTURB(proc_sched_write)
{
    set_file("sched", "0");
}

DISTURB(proc_attribute_write)
{
    set_file("attr/current", "unconfined");
}

DISTURB(proc_thread_write)
{
    int fd = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC);
    say_result("thread", fd < 0 ? -1 : write(fd, "thread", 6));
    close(fd);
}

/* By another name of the same process. */
DISTURB(proc_oom_write_by_number)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)getpid());
    say_result("write", spill(path, "123"));
}

/* By a child, which may as well. */
DISTURB(proc_oom_write_by_child)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)getpid());
    pid_t child = fork();
    if (child == 0)
        _exit(spill(path, "55") != 0);
    say_child(child);
}
