/* One descriptor, which a program that did not open it does not have: 62, where a worker holds its socket. Every call that takes a
 * descriptor is asked. */
#include "act.h"
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/wait.h>

#undef FAMILY
#define FAMILY "reserved"

#define RESERVED 62

OBSERVE(reserved_flags)
{
    say_result("flags", fcntl(RESERVED, F_GETFD));
    say_result("status", fcntl(RESERVED, F_GETFL));
    say_result("owner", fcntl(RESERVED, F_GETOWN));
    say_result("by call", RAW(SYS_fcntl, RESERVED, F_GETFD));
}

OBSERVE(reserved_kind)
{
    struct stat now;
    struct statfs system;
    char buffer[256];
    say_result("fstat", fstat(RESERVED, &now));
    say_result("fstatfs", fstatfs(RESERVED, &system));
    say_result("seek", lseek(RESERVED, 0, SEEK_CUR));
    say_result("fstatat", fstatat(RESERVED, "", &now, AT_EMPTY_PATH));
    say_result("statx", RAW(SYS_statx, RESERVED, "", AT_EMPTY_PATH, 0x7ff, buffer));
    say_result("terminal", isatty(RESERVED) ? 1 : -1);
}

OBSERVE(reserved_transfer)
{
    char byte = 'x';
    struct iovec part = {&byte, 1};
    say_result("write", write(RESERVED, &byte, 1));
    say_result("writev", writev(RESERVED, &part, 1));
    say_result("pwrite", pwrite(RESERVED, &byte, 1, 0));
    say_result("by call", RAW(SYS_write, RESERVED, &byte, 1));
    say_result("sendfile", sendfile(RESERVED, 0, NULL, 1));
    say_result("none", write(RESERVED, &byte, 0));
}

OBSERVE(reserved_reading)
{
    char byte;
    struct iovec part = {&byte, 1};
    /* Reading from a descriptor that is open could wait for ever. */
    if (fcntl(RESERVED, F_GETFD) >= 0)
        return say("open");
    say_result("read", read(RESERVED, &byte, 1));
    say_result("readv", readv(RESERVED, &part, 1));
    say_result("splice", splice(RESERVED, NULL, 1, NULL, 1, SPLICE_F_NONBLOCK));
}

OBSERVE(reserved_socket)
{
    struct timeval soon = {0, 1000};
    int value = 0;
    socklen_t size = sizeof value;
    say_result("send", send(RESERVED, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
    say_result("receive", recv(RESERVED, &value, 1, MSG_DONTWAIT));
    say_result("get", getsockopt(RESERVED, SOL_SOCKET, SO_TYPE, &value, &size));
    say_result("set", setsockopt(RESERVED, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon));
    say_result("shut", shutdown(RESERVED, SHUT_RDWR));
    say_result("by call", RAW(SYS_shutdown, RESERVED, SHUT_RDWR));
}

/* A file of the program's own has the number for a while. */
OBSERVE(reserved_own)
{
    const int file = open("/dev/null", O_WRONLY);
    say_result("given", dup2(file, RESERVED));
    say_result("write", write(RESERVED, "x", 1));
    say_result("flags", fcntl(RESERVED, F_GETFD));
    say_result("closed", close(RESERVED));
    say_result("again", close(RESERVED));
    close(file);
}

static int speak(void *none)
{
    (void)none;
    const int sent = (int)send(RESERVED, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    return (sent >= 0) + 2 * (fcntl(RESERVED, F_GETFD) >= 0);
}

/* A child that no function of libc's has made. */
OBSERVE(reserved_in_unfollowed_child)
{
    static char stack[65536] __attribute__((aligned(16)));
    int status = -1;
    const pid_t child = clone(speak, stack + sizeof stack, SIGCHLD, NULL);
    say("ended %d", child > 0 && waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -1);
}

OBSERVE(reserved_control)
{
    int value = 1;
    say_result("unblocked", ioctl(RESERVED, FIONBIO, &value));
    say_result("inherited", ioctl(RESERVED, FIONCLEX));
    say_result("count", ioctl(RESERVED, FIONREAD, &value));
    say_result("lock", flock(RESERVED, LOCK_SH | LOCK_NB));
    say_result("directory", fchdir(RESERVED));
    say_result("map", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, RESERVED, 0) == MAP_FAILED ? -1 : 0);
}

/* Every further argument that is a descriptor. */
OBSERVE(reserved_directory)
{
    char text[64];
    struct stat now;
    say_result("openat", openat(RESERVED, "absent", O_RDONLY));
    say_result("readlinkat", readlinkat(RESERVED, "absent", text, sizeof text));
    say_result("mkdirat", mkdirat(RESERVED, "absent", 0700));
    say_result("mknodat", mknodat(RESERVED, "absent", S_IFIFO | 0600, 0));
    say_result("fstatat", fstatat(RESERVED, "absent", &now, 0));
    say_result("unlinkat", unlinkat(RESERVED, "absent", 0));
    say_result("linkat", linkat(AT_FDCWD, own_path, RESERVED, "absent", 0));
    say_result("renameat", renameat(AT_FDCWD, own_path, RESERVED, "absent"));
    say_result("symlinkat", symlinkat("absent", RESERVED, "absent"));
    say_result("execveat", RAW(SYS_execveat, RESERVED, "absent", 0, 0, 0));
}

OBSERVE(reserved_target)
{
    int ends[2];
    const int other = open("reserved-target", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (pipe(ends) != 0 || write(ends[1], "hello", 5) != 5)
        return say_result("pipe", -1);
    say_result("tee", tee(ends[0], RESERVED, 5, 0));
    say_result("splice", splice(ends[0], NULL, RESERVED, NULL, 5, 0));
    say_result("sendfile", sendfile(other, RESERVED, NULL, 5));
    say_result("copy", copy_file_range(other, NULL, RESERVED, NULL, 5, 0));
    say_result("clone", ioctl(other, 0x40049409ul, RESERVED));
    say_result("part", ioctl(other, 0x4020940dul, (long long[]){RESERVED, 0, 0, 0}));
    say_result("no file", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, RESERVED, 0) == MAP_FAILED ? -1 : 0);
    close(ends[0]), close(ends[1]), close(other);
    unlink("reserved-target");
}

OBSERVE(reserved_waited_for)
{
    struct pollfd list[20];
    for (int i = 0; i < 20; i++)
        list[i] = (struct pollfd){.fd = i == 17 ? RESERVED : -1, .events = POLLIN};
    say_result("poll", poll(list, 20, -1));
    say("events %x of %d", (unsigned)list[17].revents, list[17].fd);
    say_result("ppoll", ppoll(list, 20, NULL, NULL));
}

OBSERVE(reserved_through_name)
{
    char text[64];
    struct stat now;
    /* An earlier act may have opened a device there, which is everybody's. */
    if (stat("/proc/self/fd/62", &now) != 0 || S_ISREG(now.st_mode))
        say_result("mode", chmod("/proc/self/fd/62", 0600));
    say_result("path", open("/proc/self/fd/62", O_PATH | O_CLOEXEC) >= 0 ? 0 : -1);
    say_result("directory", open("/dev/fd/62", O_RDONLY | O_DIRECTORY) >= 0 ? 0 : -1);
    say_result("attributes", RAW(SYS_listxattr, "/proc/self/fd/62", text, sizeof text));
    say_result("remove", unlink("/proc/self/fd/62"));
    say_result("make", mkdir("/proc/self/fd/62", 0700));
}

OBSERVE(reserved_polled)
{
    struct pollfd one = {.fd = RESERVED, .events = POLLIN | POLLOUT};
    struct timeval at_once = {0, 0};
    struct epoll_event event = {.events = EPOLLIN};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(RESERVED, &set);
    int ready = poll(&one, 1, 0), pool = epoll_create1(EPOLL_CLOEXEC);
    say("poll %d events %x", ready, (unsigned)one.revents);
    say_result("select", select(RESERVED + 1, NULL, &set, NULL, &at_once));
    say_result("epoll", epoll_ctl(pool, EPOLL_CTL_ADD, RESERVED, &event));
    close(pool);
}

/* The kernel ignores descriptors beyond the process's table, which is as large as the largest one ever was. */
OBSERVE(selected_beyond)
{
    struct timeval at_once = {0, 0};
    const struct timespec at_once_too = {0, 0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(127, &set);
    say_result("select", select(128, &set, NULL, NULL, &at_once));
    FD_ZERO(&set);
    FD_SET(700, &set);
    say_result("pselect", pselect(FD_SETSIZE, NULL, NULL, &set, &at_once_too, NULL));
    FD_ZERO(&set);
    say_result("none", select(FD_SETSIZE, &set, &set, &set, &at_once));
}

OBSERVE(reserved_copied)
{
    say_result("dup", dup(RESERVED));
    say_result("dup2", dup2(RESERVED, 70));
    say_result("dup3", dup3(RESERVED, 71, O_CLOEXEC));
    say_result("fcntl", fcntl(RESERVED, F_DUPFD, 0));
    int own = (int)RAW(SYS_pidfd_open, getpid(), 0);
    say_result("of process", RAW(SYS_pidfd_getfd, own, RESERVED, 0));
    close(own);
}

OBSERVE(reserved_compared)
{
    const int own = getpid();
    const long order = RAW(SYS_kcmp, own, own, 0, RESERVED, 1);
    say_result("other file", order > 0 ? 1 : order);
}

OBSERVE(reserved_sent)
{
    char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    const int number = RESERVED;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return say_result("pair", -1);
    *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof number)};
    memcpy(CMSG_DATA(head), &number, sizeof number);
    say_result("sent", sendmsg(ends[0], &message, 0));
    close(ends[0]), close(ends[1]);
}

OBSERVE(reserved_by_name)
{
    char target[256];
    struct stat now;
    say_result("link", readlink("/proc/self/fd/62", target, sizeof target) >= 0 ? 0 : -1);
    say_result("stat", stat("/proc/self/fd/62", &now));
    say_result("access", access("/dev/fd/62", F_OK));
    say_result("open", open("/proc/self/fd/62", O_RDONLY | O_NONBLOCK) >= 0 ? 0 : -1);
    say_result("information", open("/proc/self/fdinfo/62", O_RDONLY) >= 0 ? 0 : -1);
    say_result("of thread", readlink("/proc/thread-self/fd/62", target, sizeof target) >= 0 ? 0 : -1);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void list_directory(const char *path)
{
    int numbers[400], count = 0, used = 0;
    char line[1600] = "";
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && count < 400 && (entry = readdir(directory));)
        if (entry->d_name[0] != '.')
            numbers[count++] = atoi(entry->d_name);
    if (directory)
        closedir(directory);
    qsort(numbers, (size_t)count, sizeof *numbers, by_number);
    for (int i = 0; i < count && used < (int)sizeof line - 16; i++)
        used += snprintf(line + used, sizeof line - (size_t)used, " %d", numbers[i]);
    say("%d:%s", count, line);
}

OBSERVE(reserved_listed)
{
    list_directory("/proc/self/fd");
}

OBSERVE(reserved_listed_otherwise)
{
    list_directory("/proc/self/fdinfo");
    list_directory("/dev/fd");
    list_directory("/proc/thread-self/fd");
}

/* Newer kernels tell by its size how many there are. */
OBSERVE(reserved_counted)
{
    struct stat now = {0};
    stat("/proc/self/fd", &now);
    say("size %ld", (long)now.st_size);
}

OBSERVE(reserved_next)
{
    int fd = fcntl(1, F_DUPFD, RESERVED);
    say_result("from it on", fd);
    close(fd);
    fd = fcntl(1, F_DUPFD_CLOEXEC, RESERVED - 1);
    say_result("below", fd);
    close(fd);
}

DISTURB(reserved_taken)
{
    say_result("dup2", dup2(1, RESERVED));
    say_result("inherited", fcntl(RESERVED, F_SETFD, 0));
}

DISTURB(reserved_taken_by_call)
{
    say_result("dup3", RAW(SYS_dup3, 2, RESERVED, 0));
}

MIXED(reserved_used)
{
    int taken = dup2(2, RESERVED);
    say_result("dup2", taken);
    say("wrote %d", write(RESERVED, "by the reserved one\n", 20) == 20);
    say_result("close", close(RESERVED));
    say_result("again", close(RESERVED));
}

DISTURB(reserved_closed)
{
    say_result("close", close(RESERVED));
}

DISTURB(reserved_closed_by_call)
{
    say_result("close", RAW(SYS_close, RESERVED));
}

DISTURB(reserved_closed_by_range)
{
    say_result("it alone", RAW(SYS_close_range, RESERVED, RESERVED, 0));
    say_result("flag", RAW(SYS_close_range, RESERVED, RESERVED, 4));
}

/* As daemons do. */
DISTURB(reserved_closed_with_all)
{
    int count = 0;
    for (int fd = 3; fd < 256; fd++)
        count += close(fd) == 0;
    say("closed %d", count);
}

DISTURB(reserved_opened_over)
{
    int last = -1, count = 0;
    for (; count < 80; count++)
        last = open("/dev/null", O_RDONLY);
    say("last %d", last);
}

DISTURB(reserved_flags_of_all)
{
    int count = 0;
    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFL);
        count += flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
        fcntl(fd, F_SETFD, 0);
    }
    say("open %d", count);
}

/* A descriptor that is inherited shows in a program that is executed. */
OBSERVE(reserved_inherited)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execl(own_path, "acts", "fd_list", "reserved_flags", (char *)NULL);
        _exit(99);
    }
    say_child(child);
}

OBSERVE(reserved_in_child)
{
    pid_t child = fork();
    if (child == 0)
        _exit(fcntl(RESERVED, F_GETFD) >= 0 ? 1 : errno == EBADF ? 2 : 3);
    say_child(child);
}

MIXED(reserved_limit)
{
    struct rlimit files, few;
    getrlimit(RLIMIT_NOFILE, &files);
    few = files;
    few.rlim_cur = 100;
    setrlimit(RLIMIT_NOFILE, &few);
    int count = 0;
    while (count < 200 && dup(1) >= 0)
        count++;
    say("copied %d then %d", count, errno);
    close_range(10, 99, 0);
    setrlimit(RLIMIT_NOFILE, &files);
}

OBSERVE(reserved_access)
{
    say_result("access", access("/proc/self/fd/62", F_OK));
    say_result("by /dev", access("/dev/fd/62", F_OK));
    say_result("at", RAW(SYS_faccessat2, AT_FDCWD, "/dev/fd/62", F_OK, AT_SYMLINK_NOFOLLOW));
}

OBSERVE(reserved_access_by_link)
{
    say_result("link", symlink("/proc/self/fd/62", "to-reserved"));
    say_result("access", access("to-reserved", F_OK));
    unlink("to-reserved");
}

OBSERVE(reserved_access_from_there)
{
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    say_result("enter", chdir("/proc/self/fd"));
    say_result("access", access("62", F_OK));
    say_result("back", fchdir(here));
    close(here);
}

OBSERVE(reserved_access_beside)
{
    struct statfs system;
    int there = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    say_result("at", faccessat(there, "62", F_OK, 0));
    close(there);
    say_result("system", statfs("/proc/self/fd/62", &system));
}

OBSERVE(reserved_opened)
{
    int fd = open("/proc/self/fd/62", O_RDONLY | O_CLOEXEC);
    say("%d", fd < 0 ? errno : 0);
}
