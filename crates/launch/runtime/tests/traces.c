/* What a tool can see of the process that it runs in: who sent its signals, who has its locks, what lies behind its memory, and what was
 * left below its stack. Each way prints a line. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile int sender;

static void note_sender(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    sender = info->si_pid;
}

static int of_peer(void)
{
    int ends[2];
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 &&
                   getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
               ? peer.pid
               : -1;
}

static int of_handler(int number)
{
    const struct sigaction action = {.sa_sigaction = note_sender, .sa_flags = SA_SIGINFO};
    sigaction(number, &action, NULL);
    if (number == SIGPIPE) {
        int ends[2];
        if (pipe(ends) == 0 && close(ends[0]) == 0 && write(ends[1], "x", 1) < 0)
            return sender;
        return -1;
    }
    raise(number);
    return sender;
}

static int of_wait(void)
{
    sigset_t set;
    siginfo_t info = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    return sigwaitinfo(&set, &info) == SIGUSR1 ? info.si_pid : -1;
}

static int of_lock(void)
{
    const int one = open("locked", O_RDWR | O_CREAT, 0600), other = open("locked", O_RDWR);
    struct flock lock = {.l_type = F_WRLCK}, asked = {.l_type = F_WRLCK};
    return fcntl(one, F_SETLK, &lock) == 0 && fcntl(other, F_OFD_GETLK, &asked) == 0 ? asked.l_pid : -1;
}

static int of_netlink(void)
{
    const int fd = socket(AF_NETLINK, SOCK_RAW, 0);
    struct sockaddr_nl name = {.nl_family = AF_NETLINK};
    socklen_t size = sizeof name;
    if (bind(fd, (struct sockaddr *)&name, sizeof name) != 0 || getsockname(fd, (struct sockaddr *)&name, &size) != 0)
        return -1;
    return (int)name.nl_pid;
}

/* Whether the kernel can write there; it may not fault. */
static int can_write(char *at)
{
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1)
        return -1;
    const int could = read(ends[0], at, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return could;
}

/* A letter for each page behind a block that libc maps. Behind the first ones, which are the loader's, none can be written. */
static void behind(void)
{
    char *block = malloc(300000);
    char *end = (char *)(((uintptr_t)block + 300000 + 4095) & -4096ul);
    for (int page = 3; page < 60; page++)
        putchar(can_write(end + page * 4096) ? 'w' : '-');
    putchar('\n');
}

static __attribute__((noinline)) int any_left(void)
{
    volatile char left[64];
    int found = 0;
    for (size_t i = 0; i < sizeof left; i++)
        found |= left[i];
    return found != 0;
}

static __attribute__((noinline)) int left_at(size_t depth)
{
    volatile char *room = __builtin_alloca(depth);
    __asm__ volatile("" ::"r"(room));
    return any_left();
}

/* In which depths something is left, before anything else was done. */
static void below(void)
{
    static const size_t depths[] = {64, 400, 800, 1000, 1200, 1800, 2200, 2600, 3000, 3500, 4000};
    char found[sizeof depths / sizeof *depths + 1] = "";
    for (size_t i = sizeof depths / sizeof *depths; i-- > 0;)
        found[i] = left_at(depths[i]) ? '1' : '0';
    puts(found);
}

/* The random bytes that the kernel gives each process. */
static void of_random(void)
{
    const unsigned char *bytes = (const unsigned char *)getauxval(AT_RANDOM);
    for (int i = 0; i < 16; i++)
        printf("%02x", bytes[i]);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const char *how = argv[1];
    if (strcmp(how, "behind") == 0)
        behind();
    else if (strcmp(how, "below") == 0)
        below();
    else if (strcmp(how, "random") == 0)
        of_random();
    else if (strcmp(how, "peer") == 0)
        printf("%d\n", of_peer());
    else if (strcmp(how, "handler") == 0)
        printf("%d\n", of_handler(SIGUSR1));
    else if (strcmp(how, "pipe") == 0)
        printf("%d\n", of_handler(SIGPIPE));
    else if (strcmp(how, "wait") == 0)
        printf("%d\n", of_wait());
    else if (strcmp(how, "lock") == 0)
        printf("%d\n", of_lock());
    else if (strcmp(how, "netlink") == 0)
        printf("%d\n", of_netlink());
    else
        return 2;
    return 0;
}
