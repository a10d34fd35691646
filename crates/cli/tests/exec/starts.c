/* A tool that starts another: starts FUNCTION PROGRAM ARGUMENTS. It tells what the function returned, or how the child
 * ended. With "open" as its first argument, descriptor 7 is opened for the child. Functions from "vfork-" on do something more. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void execute(const char *how, char **argv)
{
    if (strcmp(how, "execv") == 0)
        execv(*argv, argv);
    if (strcmp(how, "execve") == 0)
        execve(*argv, argv, environ);
    if (strcmp(how, "execvp") == 0)
        execvp(*argv, argv);
    if (strcmp(how, "execvpe") == 0)
        execvpe(*argv, argv, environ);
    if (strcmp(how, "execl") == 0)
        execl(*argv, *argv, argv[1], (char *)NULL);
    if (strcmp(how, "traced") == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execv(*argv, argv);
    }
    printf("%s failed: %s\n", how, strerror(errno));
    fflush(stdout);
    _exit(126);
}

/* Stops are counted: a tracer meets one for each program that is executed. */
static int await(pid_t child)
{
    int status, stops = 0;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        stops++;
        ptrace(PTRACE_CONT, child, 0, 0);
    }
    printf("status %#x after %d stops\n", status, stops);
    return 0;
}

static int spawn(int search, int closes, char **argv)
{
    posix_spawn_file_actions_t actions;
    pid_t child = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 7, "/dev/zero", O_RDONLY, 0);
    if (closes)
        posix_spawn_file_actions_addclose(&actions, 0);
    int error = (search ? posix_spawnp : posix_spawn)(&child, *argv, &actions, NULL, argv, environ);
    printf("returned %d\n", error);
    return error ? 0 : await(child);
}

/* What a child of vfork does before its exec, beside the closing of a descriptor. */
static void in_child(const char *what, char **argv)
{
    sigset_t all;
    close(5);
    dup2(1, 5);
    if (strcmp(what, "directory") == 0 && chdir("/") != 0)
        _exit(2);
    if (strcmp(what, "mask") == 0) {
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
    if (strcmp(what, "memory") == 0)
        sbrk(1 << 20);
    if (strcmp(what, "twice") == 0)
        execv("/nowhere/clang", argv);
    execv(*argv, argv);
    _exit(126);
}

static volatile sig_atomic_t came;

static void note(int number)
{
    (void)number;
    came++;
}

static int make_vfork(const char *what, char **argv)
{
    struct rusage usage;
    struct tms ticks;
    if (strcmp(what, "usage") == 0) {
        getrusage(RUSAGE_CHILDREN, &usage);
        times(&ticks);
        printf("children had %ld faults and %ld ticks\n", usage.ru_minflt, (long)(ticks.tms_cutime + ticks.tms_cstime));
    }
    fflush(stdout);
    if (strcmp(what, "handler") == 0)
        signal(SIGCHLD, note);
    if (strcmp(what, "blocked") == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
    if (strcmp(what, "ignored") == 0)
        signal(SIGSYS, SIG_IGN);
    pid_t child = vfork();
    if (child == 0)
        in_child(what, argv);
    if (strcmp(what, "left") == 0)
        return 0;
    await(child);
    printf("%d signals\n", (int)came);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *how = argv[1];
    if (strncmp(how, "vfork-", 6) == 0)
        return make_vfork(how + 6, argv + 2);
    if (strncmp(how, "spawn", 5) == 0)
        return spawn(how[5] == 'p', strcmp(how, "spawn-closed") == 0, argv + 2);
    if (strcmp(how, "instead") == 0)
        execute("execv", argv + 2);
    pid_t child = strcmp(how, "vfork") == 0 ? vfork() : fork();
    if (child == 0) {
        execute(strcmp(how, "vfork") == 0 ? "execv" : how, argv + 2);
        _exit(1);
    }
    return await(child);
}
