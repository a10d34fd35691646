/* The tool of the fault tests: ends in the way, or uses up what, its arguments say. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int number;

static void *exit_in_thread(void *unused)
{
    (void)unused;
    exit(number);
}

static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static int overflow(int depth)
{
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth < 0 ? 0 : overflow(depth + 1) + frame[0];
}

static int end(const char *way)
{
    if (strcmp(way, "return") == 0)
        return number;
    if (strcmp(way, "exit") == 0)
        exit(number);
    if (strcmp(way, "_exit") == 0)
        _exit(number);
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(number);
    if (strcmp(way, "abort") == 0)
        abort();
    if (strcmp(way, "signal") == 0)
        return kill(getpid(), number) == 0 ? 0 : 3;
    if (strcmp(way, "raise-default") == 0) {
        signal(number, SIG_DFL);
        return raise(number) == 0 ? 0 : 3;
    }
    if (strcmp(way, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, exit_in_thread, NULL);
        pause();
    }
    if (strcmp(way, "last-thread") == 0)
        pthread_exit(NULL);
    if (strcmp(way, "null") == 0)
        return *(volatile int *)8;
    if (strcmp(way, "trap") == 0)
        __builtin_trap();
    if (strcmp(way, "stack") == 0)
        return overflow(0);
    if (strcmp(way, "closed") == 0) {
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        return number;
    }
    return 99;
}

static int put(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const int good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return good ? 0 : -1;
}

/* The first time: says its number and waits until the gate is opened. Afterwards: ends at once. */
static int once(const char *directory)
{
    char path[4096], text[64];
    snprintf(path, sizeof path, "%s/runs", directory);
    snprintf(text, sizeof text, "%d\n", getpid());
    if (put(path, text) != 0)
        return 90;
    snprintf(path, sizeof path, "%s/first", directory);
    if (mkdir(path, 0777) != 0)
        return 0;
    snprintf(path, sizeof path, "%s/begun", directory);
    if (put(path, text) != 0)
        return 91;
    snprintf(path, sizeof path, "%s/gate", directory);
    const int gate = open(path, O_RDONLY | O_CLOEXEC);
    while (gate >= 0 && read(gate, text, sizeof text) > 0)
        ;
    return 0;
}

static int fill(const char *path, long bytes)
{
    static char block[4096];
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    for (; fd >= 0 && bytes > 0; bytes -= (long)sizeof block)
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
            break;
    if (fd < 0 || bytes > 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    return 0;
}

/* Takes as much as there is and says what the system said then; a limit of the tool's own where there would be no end. */
static int use_up(const char *what)
{
    int error = 0;
    if (strcmp(what, "descriptors") == 0) {
        while (open("/dev/null", O_RDONLY) >= 0)
            ;
        error = errno;
    } else if (strcmp(what, "memory") == 0) {
        const struct rlimit limit = {1u << 30, RLIM_INFINITY};
        setrlimit(RLIMIT_AS, &limit);
        while (mmap(NULL, 16u << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
            ;
        error = errno;
    } else if (strcmp(what, "threads") == 0) {
        pthread_t thread;
        for (int i = 0; i < 500 && error == 0; i++)
            error = pthread_create(&thread, NULL, wait_for_ever, NULL);
    } else if (strcmp(what, "processes") == 0) {
        pid_t made[500];
        int count = 0;
        while (count < 500 && error == 0) {
            made[count] = fork();
            if (made[count] == 0)
                wait_for_ever(NULL);
            error = made[count] < 0 ? errno : 0;
            count += error == 0;
        }
        while (count-- > 0) {
            kill(made[count], SIGKILL);
            waitpid(made[count], NULL, 0);
        }
    }
    printf("%s: %s\n", what, strerror(error));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 98;
    number = argc > 2 ? atoi(argv[2]) : 0;
    if (argc > 2 && strcmp(argv[1], "once") == 0)
        return once(argv[2]);
    if (argc > 3 && strcmp(argv[1], "fill") == 0)
        return fill(argv[2], atol(argv[3]));
    if (argc > 2 && strcmp(argv[1], "use-up") == 0)
        return use_up(argv[2]);
    if (argc > 3 && strcmp(argv[1], "exec") == 0)
        return execv(argv[2], argv + 3);
    if (argc > 2 && strcmp(argv[1], "put") == 0)
        return put(argv[2], "x\n") != 0;
    return end(argv[1]);
}
