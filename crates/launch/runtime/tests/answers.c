/* What another process would be answered than one that has run something before: each word of the arguments is a question. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096l

static void nap(long milliseconds)
{
    nanosleep(&(struct timespec){0, milliseconds * 1000000}, NULL);
}

/* Threads that main does not wait for. All signals are blocked in them, as is usual. */
static void *write_late(void *unused)
{
    nap(9);
    return write(1, "late\n", 5) == 5 ? unused : NULL;
}

static void *exit_late(void *unused)
{
    nap(9);
    _exit(0);
    return unused;
}

static void *read_nothing(void *unused)
{
    int ends[2];
    char byte;
    return pipe(ends) == 0 && read(ends[0], &byte, 1) == 1 ? unused : NULL;
}

static void *write_on(void *file)
{
    static char block[1 << 16];
    for (;;)
        if (write(*(int *)file, block, sizeof block) < 0)
            return NULL;
}

static void leave_behind(void *(*function)(void *), void *argument)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_create(&thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    nap(2);
}

static const char *of(const void *made)
{
    return made == MAP_FAILED ? strerror(errno) : "mapped";
}

static void *reserve(uintptr_t at, int flags)
{
    return mmap((void *)at, 16ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

/* How many of many places can be read. */
static int readable(void)
{
    int ends[2], count = 0;
    if (pipe(ends) != 0)
        return -1;
    for (uintptr_t at = 0x1d0000000000; at < 0x1e0000000000; at += 1ul << 32)
        count += write(ends[1], (const void *)at, 1) == 1;
    return count;
}

/* Grows the break right up to another mapping, which the kernel refuses. */
static int grow(int with_guard)
{
    char *const now = sbrk(0), *const end = (char *)(((uintptr_t)now + PAGE - 1) & -PAGE) + 64 * PAGE;
    if (with_guard && mmap(end, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != end)
        return 0;
    return brk(end) == 0;
}

/* The same, by lists of buffers. */
static int writable(void)
{
    int ends[2], count = 0;
    if (pipe(ends) != 0)
        return -1;
    for (uintptr_t at = 0x1d0000000000; at < 0x1e0000000000; at += 1ul << 32)
        count += writev(ends[1], &(struct iovec){(void *)at, 1}, 1) == 1;
    return count;
}

/* Whether the last of three large mappings that fill most of the space lies right below the one before. */
static int are_adjacent(void)
{
    const size_t sizes[] = {40, 46, 12};
    char *made[3];
    for (int i = 0; i < 3; i++)
        made[i] = mmap(NULL, sizes[i] << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return made[2] + (sizes[2] << 40) == made[1];
}

/* Descriptors that a process without any left can name. */
static int named(void)
{
    char path[64];
    int count = 0;
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
    for (int fd = 3; fd < 100; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        count += access(path, F_OK) == 0;
    }
    return count;
}

/* More than a fresh process has above main's frame, without many arguments, and much less than a zygote could do with. */
#define FAR_OVER (20 * 1024)

/* Writes, or reads, from main's arrays on. */
static void run_far_over(char **argv, int writes)
{
    volatile char *at = (volatile char *)argv + 9 * 1024;
    for (; at < (char *)argv + FAR_OVER; at++)
        if (writes)
            *at = 1;
        else
            (void)*at;
}

/* Writes below main's arrays, as what runs over a buffer does, and ends otherwise than by exit. */
static void overrun(char **argv)
{
    *(volatile long *)(argv - 6) = 1;
}

static void show_file(const char *path)
{
    static char text[1 << 16];
    const int file = open(path, O_RDONLY);
    const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text);
    printf("%s: %d %.*s\n", path, length > 0, length > 0 ? (int)length : 0, text);
}

int main(int argc, char **argv)
{
    struct tms now;
    static int file;
    const char *const how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "writes") == 0)
        leave_behind(write_late, NULL);
    else if (strcmp(how, "exits") == 0)
        leave_behind(exit_late, NULL);
    else if (strcmp(how, "reads nothing") == 0)
        leave_behind(read_nothing, NULL);
    else if (strcmp(how, "goes on") == 0) {
        file = memfd_create("x", 0);
        leave_behind(write_on, &file);
    } else if (strcmp(how, "fixed") == 0)
        puts(of(reserve(0x100000000000, MAP_FIXED_NOREPLACE)));
    else if (strcmp(how, "hint") == 0)
        puts(reserve(0x100000000000, 0) == (void *)0x100000000000 ? "there" : "elsewhere");
    else if (strcmp(how, "reads") == 0)
        printf("%d\n", readable());
    else if (strcmp(how, "grows") == 0)
        printf("%d\n", grow(0));
    else if (strcmp(how, "guarded") == 0)
        printf("%d\n", grow(1));
    else if (strcmp(how, "ticks") == 0) {
        times(&now);
        printf("%d\n", now.tms_utime > 5 || now.tms_stime > 5);
    } else if (strcmp(how, "writes lists") == 0)
        printf("%d\n", writable());
    else if (strcmp(how, "far") == 0)
        printf("%d\n", are_adjacent());
    else if (strcmp(how, "names") == 0)
        printf("%d\n", named());
    else if (strcmp(how, "grows down") == 0)
        puts(of(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0)));
    else if (strcmp(how, "runs over and executes") == 0) {
        overrun(argv);
        execl("/bin/sh", "sh", "-c", "exit 3", NULL);
    } else if (strcmp(how, "runs over and leaves") == 0) {
        overrun(argv);
        syscall(SYS_exit, 3);
    } else if (strcmp(how, "runs far over") == 0 || strcmp(how, "reads far over") == 0) {
        run_far_over(argv, how[1] == 'u');
        _exit(3);
    } else if (strcmp(how, "signals") == 0)
        kill(1, SIGURG);
    else if (strcmp(how, "connects") == 0) {
        /* The kernel makes up a name. */
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        socklen_t size = sizeof name.sun_family;
        const int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
        bind(server, (const struct sockaddr *)&name, size);
        size = sizeof name;
        if (getsockname(server, (struct sockaddr *)&name, &size) != 0 || listen(server, 1) != 0 ||
            connect(client, (const struct sockaddr *)&name, size) != 0)
            return 1;
    } else if (strcmp(how, "limit") == 0)
        printf("%d\n", setrlimit(RLIMIT_CPU, &(struct rlimit){1, 2}));
    else
        show_file(how);
    return 3;
}
