/* What /proc shows of a process, and what can be written there. */
#include "act.h"
#include <dirent.h>
#include <link.h>
#include <linux/openat2.h>

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

static int is_alike(const char *number, const char *own)
{
    char path[64], name[32], program[1024];
    snprintf(path, sizeof path, "/proc/%.16s/exe", number);
    const ssize_t length = readlink(path, program, sizeof program - 1);
    program[length < 0 ? 0 : length] = 0;
    snprintf(path, sizeof path, "/proc/%.16s/comm", number);
    return strcmp(program, own_path) == 0 && slurp(path, name, sizeof name) > 0 && strcmp(name, own) == 0;
}

/* As pgrep looks for a program that has ended. */
OBSERVE(proc_named_alike)
{
    char own[32];
    int count = 0;
    DIR *processes = opendir("/proc");
    slurp("/proc/self/comm", own, sizeof own);
    for (struct dirent *entry; processes && (entry = readdir(processes));)
        count += atoi(entry->d_name) > 0 && is_alike(entry->d_name, own);
    if (processes)
        closedir(processes);
    say("%d", count);
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

/* A thread that was joined is counted until the kernel has taken it down. */
enum { JOINED_MS = 50 };

OBSERVE(proc_stat_fields)
{
    char text[1024];
    long fields[60] = {0};
    for (int waited = 0; waited < JOINED_MS && fields[16] != 1; waited++) {
        int count = 0;
        if (waited)
            usleep(1000);
        if (slurp("/proc/self/stat", text, sizeof text) <= 0)
            return say("none");
        char *rest = strrchr(text, ')') + 4;
        for (char *word; count < 60 && (word = strsep(&rest, " "));)
            fields[count++] = atol(word);
    }
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

DISTURB(proc_arguments_overwrite)
{
    memset(own_argv[0], 'z', strlen(own_argv[0]));
    say_file("cmdline");
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

/* Opened by the newer call. */
static long open_newly(const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags};
    return RAW(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

/* The lines of a file that begin with one of the words. */
static void say_lines(int fd, const char *const *words)
{
    char text[8192], *rest = text;
    ssize_t got = read(fd, text, sizeof text - 1);
    text[got > 0 ? got : 0] = 0;
    close(fd);
    for (char *line; (line = strsep(&rest, "\n"));)
        for (const char *const *word = words; *word; word++)
            if (!strncmp(line, *word, strlen(*word)))
                say("%s", line);
}

OBSERVE(proc_status_newly)
{
    const long fd = open_newly("/proc/self/status", O_RDONLY | O_CLOEXEC);
    say_result("open", fd < 0 ? fd : 0);
    say_lines((int)fd, (const char *const[]){"Threads", "SigB", "SigI", "SigC", "Seccomp", "NoNewPrivs", NULL});
}

DISTURB(proc_comm_newly)
{
    const long fd = open_newly("/proc/self/comm", O_WRONLY | O_CLOEXEC);
    say_result("write", fd < 0 ? fd : write((int)fd, "newly", 5));
    close((int)fd);
}

DISTURB(proc_oom_newly)
{
    const long fd = open_newly("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    say_result("write", fd < 0 ? fd : write((int)fd, "222", 3));
    close((int)fd);
}

/* From a descriptor of the directory, from the working directory, through a link, and as a thread's. */
OBSERVE(proc_status_otherwise)
{
    static const char *const words[] = {"SigCgt", "SigBlk", NULL};
    int directory = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    say_lines(openat(directory, "status", O_RDONLY | O_CLOEXEC), words);
    say_lines(openat(directory, "task/../status", O_RDONLY | O_CLOEXEC), words);
    close(directory);
    unlink("status-link");
    if (symlink("/proc/self/status", "status-link") == 0)
        say_lines(open("status-link", O_RDONLY | O_CLOEXEC), words);
    unlink("status-link");
    say_lines(open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC), words);
}

OBSERVE(proc_files_open)
{
    static const char *const names[] = {"stat", "statm", "io", "status", "wchan", "schedstat", "sched", "smaps_rollup",
                                        "pagemap", "mem", "auxv", "personality", "syscall", "stack", "numa_maps",
                                        "map_files", "timers", "mountstats", "oom_score", "patch_state", "arch_status"};
    for (size_t i = 0; i < CHECK_SIZE(names); i++) {
        char path[64], byte;
        snprintf(path, sizeof path, "/proc/self/%s", names[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        say_result(names[i], fd < 0 ? -1 : 0);
        if (fd >= 0 && strcmp(names[i], "mem") != 0)
            say("some %d", read(fd, &byte, 1) >= 0);
        close(fd);
    }
}

/* Its own number, by which of many paths leads to a file that everyone has; `before` and `behind` are what is around the number. */
static int number_by_way(const char *before, const char *behind)
{
    char path[96];
    for (int number = getppid() + 1, last = number + 50000; number < last; number++) {
        snprintf(path, sizeof path, "%s/%d/%s", before, number, behind);
        if (access(path, F_OK) == 0)
            return number;
    }
    return 0;
}

OBSERVE(proc_number_by_way)
{
    say("new %d", is_new("numbers-by-way", (unsigned long)number_by_way("/proc/self/task", "root/etc/passwd")));
}

OBSERVE(proc_number_by_linked_way)
{
    unlink("way-link");
    if (symlink("/proc/self", "way-link") == 0)
        say("new %d", is_new("numbers-by-linked-way", (unsigned long)number_by_way("way-link/task", "cwd/.")));
    unlink("way-link");
}

static int ask_for_text(struct dl_phdr_info *object, size_t size, void *unused)
{
    char path[96];
    (void)size, (void)unused;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const unsigned long from = object->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", from & -4096ul, (from + part->p_memsz + 4095) & -4096ul);
        say_result("text", access(path, F_OK));
    }
    return 1; /* The program is the first. */
}

/* Whether its text is a mapping of a file, as the kernel has it. */
OBSERVE(proc_mapping_by_way)
{
    dl_iterate_phdr(ask_for_text, NULL);
}

OBSERVE(proc_auxiliary)
{
    char text[1024];
    int got = slurp("/proc/self/auxv", text, sizeof text);
    say("bytes %d", got > 0 && got % 16 == 0);
}

OBSERVE(proc_timers)
{
    say_file("timers");
}

/* What the kernel says this thread waits in, while it reads that. */
OBSERVE(proc_call)
{
    char text[512];
    slurp("/proc/self/syscall", text, sizeof text);
    say("read %d", atoi(text) == SYS_read || !strncmp(text, "running", 7));
}

/* A child looks at its parent, as a debugger or a shell does. */
OBSERVE(proc_status_by_child)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", (int)getpid());
    /* libc blocks all signals while it forks, since glibc 2.41. */
    int forked[2];
    char byte = 0;
    if (pipe(forked) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        (void)!read(forked[0], &byte, 1);
        say_lines(open(path, O_RDONLY), (const char *const[]){"SigBlk", "SigIgn", "SigCgt", "Seccomp:", NULL});
        _exit(0);
    }
    (void)!write(forked[1], &byte, 1);
    say_child(child);
    close(forked[0]);
    close(forked[1]);
}

OBSERVE(proc_descriptors_by_child)
{
    char path[64];
    struct stat now;
    snprintf(path, sizeof path, "/proc/%d/fd/62", (int)getpid());
    pid_t child = fork();
    if (child == 0)
        _exit(lstat(path, &now) == 0);
    say_child(child);
}
