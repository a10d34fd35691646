/* A tool that tells what it was given, or ends in the way that its first argument names. Dynamically linked and
 * without constructors, so that it can be started warm. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A reset tool has its worker's socket, closed on exec, as 62. */
static void tell_descriptors(void)
{
    for (int fd = 0; fd < 300; fd++) {
        char path[64], target[256];
        if (fd == 62)
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = 0;
        /* Each run has other pipes. */
        if (strchr(target, ':'))
            *strchr(target, ':') = 0;
        printf("fd %d %s %ld %#x\n", fd, target, (long)lseek(fd, 0, SEEK_CUR), fcntl(fd, F_GETFL));
    }
}

static void tell_all(int argc, char **argv)
{
    char directory[4096], line[4096];
    mode_t mask = umask(0);
    umask(mask);
    printf("umask %o\ndirectory %s\n", mask, getcwd(directory, sizeof directory));
    printf("leads its process group %d\n", getpgrp() == getpid());
    for (int i = 0; i < argc; i++)
        printf("argument %s\n", argv[i]);
    for (char **var = environ; *var; var++)
        printf("variable %s\n", *var);
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        struct rlimit limit;
        getrlimit(resource, &limit);
        printf("limit %d %lu %lu\n", resource, (unsigned long)limit.rlim_cur, (unsigned long)limit.rlim_max);
    }
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int number = 1; number < NSIG; number++) {
        if (sigismember(&blocked, number) == 1)
            printf("signal %d is blocked\n", number);
        struct sigaction action;
        /* Signals 32 and 33 belong to libc. */
        if (number != 32 && number != 33 && sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            printf("signal %d is not default\n", number);
    }
    tell_descriptors();
    while (fgets(line, sizeof line, stdin))
        printf("input %s", line);
    fprintf(stderr, "to standard error\n");
}

static void note(const char *path, const char *text)
{
    FILE *out = fopen(path, "a");
    fprintf(out, "%s %d\n", text, (int)getpid());
    fclose(out);
}

static const char *noted;

static void on_signal(int number)
{
    char text[32];
    snprintf(text, sizeof text, "signal %d", number);
    note(noted, text);
    _exit(number);
}

/* Waits until the file `gate` is there, having said so in `log`. */
static int wait_for(const char *log, const char *gate)
{
    note(log, "begun");
    while (access(gate, F_OK) != 0)
        usleep(1000);
    note(log, "ended");
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "exit") == 0)
        return atoi(argv[2]);
    if (strcmp(what, "die") == 0) {
        signal(atoi(argv[2]), SIG_DFL);
        raise(atoi(argv[2]));
    }
    if (strcmp(what, "wait") == 0 || strcmp(what, "-c") == 0)
        return wait_for(argv[2], argv[3]);
    if (strcmp(what, "catch") == 0) {
        noted = argv[2];
        signal(SIGTERM, on_signal);
        signal(SIGINT, on_signal);
        signal(SIGTSTP, on_signal);
        signal(SIGWINCH, on_signal);
        signal(SIGCHLD, on_signal);
        signal(SIGSEGV, on_signal);
        return wait_for(argv[2], argv[3]);
    }
    if (strcmp(what, "stop") == 0) {
        raise(atoi(argv[2]));
        return wait_for(argv[3], argv[4]);
    }
    if (strcmp(what, "leave") == 0) {
        if (fork() != 0)
            return wait_for(argv[4], argv[3]);
        signal(SIGINT, SIG_IGN);
        return wait_for(argv[2], argv[3]);
    }
    if (strcmp(what, "vfork") == 0) {
        int status = -1;
        const int child = vfork();
        if (child == 0)
            _exit(wait_for(argv[2], argv[3]));
        waitpid(child, &status, 0);
        return status != 0;
    }
    if (strcmp(what, "child") == 0 && fork() == 0)
        return wait_for(argv[2], argv[3]);
    if (strcmp(what, "child") == 0)
        return wait_for(argv[4], argv[3]);
    tell_all(argc, argv);
    return 0;
}
