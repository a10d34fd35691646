/* Reads files and directories and exchanges messages, without stdio and without allocation. Files are read by system calls in the
 * runtime's own text, which do not count as the tool's (gate.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime.h"

static int open_own(const char *path, int flags)
{
    return (int)HS_SYS(SYS_openat, AT_FDCWD, path, flags | O_RDONLY | O_CLOEXEC);
}

/* Reads a file into `out` and ends it by a NUL; -1 if it cannot be read or does not fit. */
int hs_read_whole(const char *path, char *out, size_t room)
{
    int fd = open_own(path, 0);
    if (fd < 0)
        return -1;
    size_t length = 0;
    long got;
    while (length < room - 1 && (got = HS_SYS(SYS_read, fd, out + length, room - 1 - length)) > 0)
        length += (size_t)got;
    char extra;
    int whole = HS_SYS(SYS_read, fd, &extra, 1) == 0;
    HS_SYS(SYS_close, fd);
    out[length] = 0;
    return whole ? (int)length : -1;
}

/* Counts the entries of a directory whose names are numbers, and adds the numbers up. Its own descriptor, where the
 * directory is that of descriptors, is left out. */
int hs_count_entries(const char *path, unsigned long *total)
{
    char buffer[4096] __attribute__((aligned(8)));
    int fd = open_own(path, O_DIRECTORY);
    int count = 0;
    if (fd < 0)
        return -1;
    *total = 0;
    for (;;) {
        long got = HS_SYS(SYS_getdents64, fd, buffer, sizeof buffer);
        if (got <= 0)
            break;
        for (long at = 0; at < got;) {
            const struct hs_entry *entry = (const struct hs_entry *)(buffer + at);
            const char *name = entry->name;
            at += entry->length;
            if (*name < '0' || *name > '9')
                continue;
            unsigned long number = hs_parse(&name, 10);
            if (number == (unsigned long)fd)
                continue;
            count++;
            *total += number;
        }
    }
    HS_SYS(SYS_close, fd);
    return count;
}

/* Reads a number and moves on behind it. */
uintptr_t hs_parse(const char **text, int base)
{
    uintptr_t value = 0;
    for (;; (*text)++) {
        char c = **text;
        uintptr_t digit;
        if (c >= '0' && c <= '9')
            digit = (uintptr_t)(c - '0');
        else if (base == 16 && c >= 'a' && c <= 'f')
            digit = (uintptr_t)(c - 'a' + 10);
        else
            return value;
        value = value * (uintptr_t)base + digit;
    }
}

int hs_send(const void *message, size_t length)
{
    ssize_t sent;
    do
        sent = send(HS_CONTROL_FD, message, length, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)length ? 0 : -1;
}

/* Receives one message and its descriptors, which stay open over exec: in a worker they may have their numbers already.
 * 0 when the runner is gone, -1 when the message is malformed. */
long hs_receive(void *buffer, size_t room, int *fds, uint32_t *fd_count)
{
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int) * HS_FDS_MAX)];
    } control;
    struct iovec part = {buffer, room};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got;
    do
        got = recvmsg(HS_CONTROL_FD, &message, 0);
    while (got < 0 && errno == EINTR);
    *fd_count = 0;
    struct cmsghdr *rights = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
        size_t bytes = rights->cmsg_len - CMSG_LEN(0);
        memcpy(fds, CMSG_DATA(rights), bytes);
        *fd_count = (uint32_t)(bytes / sizeof(int));
    }
    return message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -1 : got;
}
