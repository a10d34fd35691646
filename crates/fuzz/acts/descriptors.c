/* Descriptors: which there are, their flags, and what they refer to. */
#include "act.h"
#include <dirent.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#undef FAMILY
#define FAMILY "descriptors"

OBSERVE(fd_list)
{
    char line[1024] = "", one[16];
    for (int fd = 0; fd < 300; fd++)
        if (fcntl(fd, F_GETFD) >= 0) {
            snprintf(one, sizeof one, " %d", fd);
            strcat(line, one);
        }
    say("%s", line);
}

OBSERVE(fd_flags)
{
    for (int fd = 0; fd < 10; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            say("%d flags %d status %o owner %d signal %d", fd, fcntl(fd, F_GETFD), (unsigned)fcntl(fd, F_GETFL),
                fcntl(fd, F_GETOWN) != 0, fcntl(fd, F_GETSIG));
}

OBSERVE(fd_lowest)
{
    int fd = open("/dev/null", O_RDONLY);
    say_result("lowest", fd);
    close(fd);
}

OBSERVE(fd_kinds)
{
    struct stat now;
    for (int fd = 0; fd < 3; fd++)
        if (fstat(fd, &now) == 0)
            say("%d type %o size %d links %d", fd, now.st_mode & S_IFMT, fd == 0 ? (int)now.st_size : 0,
                (int)now.st_nlink);
        else
            say("%d absent", fd);
}

DISTURB(fd_open_many)
{
    int last = -1;
    for (int i = 0; i < 40; i++)
        last = open("/dev/null", O_RDONLY);
    say_result("last", last);
}

DISTURB(fd_high)
{
    say_result("dup2", dup2(1, 250));
    say_result("cloexec", fcntl(1, F_DUPFD_CLOEXEC, 100));
}

DISTURB(fd_close_input)
{
    say_result("close", close(0));
}

DISTURB(fd_close_output)
{
    say("closing");
    close(1);
}

DISTURB(fd_close_error)
{
    say_result("close", close(2));
}

DISTURB(fd_close_range)
{
    say_result("low", (long)close_range(3, 50, 0));
    say_result("cloexec", (long)close_range(3, 1000, CLOSE_RANGE_CLOEXEC));
}

DISTURB(fd_close_all)
{
    say_result("all", RAW(SYS_close_range, 3, 1000, 0));
}

DISTURB(fd_close_everything)
{
    say_result("everything", (long)close_range(3, ~0u, 0));
}

DISTURB(fd_nonblocking)
{
    say_result("input", fcntl(0, F_SETFL, O_NONBLOCK));
    say_result("output", fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_APPEND));
}

DISTURB(fd_cloexec_output)
{
    say_result("cloexec", fcntl(2, F_SETFD, FD_CLOEXEC));
}

DISTURB(fd_owner)
{
    int ends[2];
    if (pipe(ends) != 0)
        return say_result("pipe", -1);
    signal(SIGIO, SIG_IGN);
    SAY3("owner %ld signal %ld async %ld", fcntl(ends[0], F_SETOWN, getpid()), fcntl(ends[0], F_SETSIG, SIGIO),
         fcntl(ends[0], F_SETFL, O_ASYNC));
}

MIXED(fd_extra)
{
    char text[32] = "";
    ssize_t got = read(7, text, 5);
    say("extra %zd %s", got, got > 0 ? text : "");
    ssize_t sent = write(3, "to three\n", 9);
    say("three %d", sent > 0);
}

MIXED(pipe_pass)
{
    int ends[2];
    char text[8] = "";
    if (pipe2(ends, O_CLOEXEC) != 0)
        return say_result("pipe", -1);
    SAY2("wrote %ld read %ld", write(ends[1], "pass", 4), read(ends[0], text, 7));
    say("text %s", text);
    say_result("size", fcntl(ends[0], F_GETPIPE_SZ));
    say_result("resize", fcntl(ends[0], F_SETPIPE_SZ, 8192));
}

MIXED(pipe_full)
{
    int ends[2], count = 0;
    char block[4096] = {0};
    if (pipe2(ends, O_NONBLOCK) != 0)
        return say_result("pipe", -1);
    while (write(ends[1], block, sizeof block) > 0)
        count++;
    say("blocks %d error %d", count, errno);
}

MIXED(pipe_broken)
{
    int ends[2];
    void (*was)(int) = signal(SIGPIPE, SIG_IGN);
    if (pipe(ends) != 0)
        return say_result("pipe", -1);
    close(ends[0]);
    say("was default %d", was == SIG_DFL);
    say_result("write", write(ends[1], "x", 1));
    signal(SIGPIPE, was);
}

MIXED(socket_pair)
{
    int ends[2];
    char text[8] = "";
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return say_result("socketpair", -1);
    SAY2("sent %ld got %ld", send(ends[0], "abc", 3, 0), recv(ends[1], text, 7, 0));
}

/* The name is of the sequence's directory: an earlier run that still held it would show. */
MIXED(socket_abstract)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct stat shared;
    if (stat("../shared", &shared) != 0)
        return say_result("shared", -1);
    int length = snprintf(name.sun_path + 1, 100, "hotstart-fuzz-%ld", (long)shared.st_ino);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t size = (socklen_t)(sizeof name.sun_family + 1 + (size_t)length);
    say_result("bind", bind(fd, (struct sockaddr *)&name, size));
    say_result("listen", listen(fd, 1));
}

MIXED(epoll_wait_ready)
{
    struct epoll_event event = {.events = EPOLLIN}, got;
    int fd = epoll_create1(0), ready = eventfd(3, EFD_NONBLOCK);
    uint64_t value = 0;
    say_result("add", epoll_ctl(fd, EPOLL_CTL_ADD, ready, &event));
    say_result("wait", epoll_wait(fd, &got, 1, 0));
    SAY2("read %ld value %ld", read(ready, &value, 8), value);
}

MIXED(timerfd_armed)
{
    const struct itimerspec later = {.it_value = {1000, 0}};
    struct itimerspec left = {0};
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    say_result("set", timerfd_settime(fd, 0, &later, NULL));
    timerfd_gettime(fd, &left);
    say("left %d", left.it_value.tv_sec > 900);
}

MIXED(signalfd_read)
{
    sigset_t set;
    struct signalfd_siginfo info = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    raise(SIGUSR2);
    ssize_t got = read(fd, &info, sizeof info);
    say("got %zd signal %u own %d", got, info.ssi_signo, (pid_t)info.ssi_pid == getpid());
}

MIXED(memfd_sealed)
{
    int fd = memfd_create("fuzz", MFD_ALLOW_SEALING);
    SAY2("size %ld seal %ld", ftruncate(fd, 4096), fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    say_result("grow", ftruncate(fd, 8192));
}

MIXED(sendfile_part)
{
    char text[16] = "";
    int from = memfd_create("from", 0), to = memfd_create("to", 0);
    if (write(from, "0123456789", 10) != 10)
        return say_result("write", -1);
    off_t at = 4;
    SAY2("sent %ld at %ld", sendfile(to, from, &at, 3), at);
    say_result("read", pread(to, text, 15, 0));
    say("text %s", text);
}

MIXED(splice_tee)
{
    int a[2], b[2];
    if (pipe(a) != 0 || pipe(b) != 0 || write(a[1], "spliced", 7) != 7)
        return say_result("pipe", -1);
    SAY2("tee %ld splice %ld", tee(a[0], b[1], 3, 0), splice(a[0], NULL, b[1], NULL, 100, 0));
}

MIXED(vmsplice_lent)
{
    static char lent[100];
    int ends[2];
    struct iovec part = {lent, sizeof lent};
    if (pipe(ends) != 0)
        return say_result("pipe", -1);
    say_result("vmsplice", vmsplice(ends[1], &part, 1, 0));
}

MIXED(pidfd_self)
{
    int fd = (int)RAW(SYS_pidfd_open, getpid(), 0);
    struct pollfd poll_for = {.fd = fd, .events = POLLIN};
    say("open %d ready %d", fd >= 0, poll(&poll_for, 1, 0));
}

MIXED(poll_streams)
{
    struct pollfd streams[3] = {{0, POLLIN, 0}, {1, POLLOUT, 0}, {2, POLLOUT, 0}};
    say_result("ready", poll(streams, 3, 0));
    for (int i = 0; i < 3; i++)
        say("%d events %x", i, (unsigned)streams[i].revents);
}

OBSERVE(fd_input_offset)
{
    say_result("offset", lseek(0, 0, SEEK_CUR));
}

MIXED(fd_input_read)
{
    char text[8] = "";
    ssize_t got = read(0, text, 5);
    say("read %zd '%s'", got, got > 0 ? text : "");
}

MIXED(fd_output_twice)
{
    int fd = open("/proc/self/fd/2", O_WRONLY | O_APPEND);
    say("error stream %d", fd >= 0 && write(fd, "by another description\n", 23) == 23);
}

MIXED(aio_kernel)
{
    unsigned long context = 0;
    say_result("setup", RAW(SYS_io_setup, 8, &context));
    say("context %d", context != 0);
}

MIXED(uring_made)
{
    char params[120] = {0};
    int fd = (int)RAW(SYS_io_uring_setup, 4, params);
    say("ring %d", fd >= 0);
}

MIXED(mqueue_named)
{
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 8};
    mqd_t queue = mq_open("/hotstart-fuzz-absent", O_RDWR, 0600, &attributes);
    say_result("open", (long)queue);
}

MIXED(rlimit_then_fds)
{
    struct rlimit files, few;
    getrlimit(RLIMIT_NOFILE, &files);
    few = files;
    few.rlim_cur = 20;
    setrlimit(RLIMIT_NOFILE, &few);
    int count = 0;
    while (count < 30 && open("/dev/null", O_RDONLY) >= 0)
        count++;
    say("opened %d then %d", count, errno);
    say_result("put back", setrlimit(RLIMIT_NOFILE, &files));
}
