/* Tests of runtime/io.c, in a temporary directory and over a socket at the runtime's own number. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime.h"
#include "unit.h"

static char directory[64];

static void enter_directory(void)
{
    strcpy(directory, "/tmp/hotstart-unit-XXXXXX");
    CHECK(mkdtemp(directory) != NULL);
}

static void leave_directory(void)
{
    char path[400];
    DIR *entries = opendir(directory);
    for (struct dirent *entry; (entry = readdir(entries));) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (unlink(path) != 0)
            rmdir(path);
    }
    closedir(entries);
    CHECK_EQUAL(rmdir(directory), 0);
}

static const char *file(const char *name, const char *content)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *out = fopen(path, "w");
    fputs(content, out);
    fclose(out);
    return path;
}

static void parses_numbers(void)
{
    const char *text = "1234567890 x";
    CHECK_EQUAL(hs_parse(&text, 10), 1234567890);
    CHECK_TEXT(text, " x");
    text = "7fffdeadbeef-";
    CHECK_EQUAL(hs_parse(&text, 16), 0x7fffdeadbeef);
    CHECK_TEXT(text, "-");
    text = "ffffffffffffffff";
    CHECK_EQUAL(hs_parse(&text, 16), UINTPTR_MAX);
    text = "12ab";
    CHECK_EQUAL(hs_parse(&text, 10), 12);
    CHECK_TEXT(text, "ab");
    text = "Ff";
    CHECK_EQUAL(hs_parse(&text, 16), 0);
    CHECK_TEXT(text, "Ff");
    text = "";
    CHECK_EQUAL(hs_parse(&text, 10), 0);
}

static void reads_files_that_fit(void)
{
    char out[8];
    enter_directory();
    CHECK_EQUAL(hs_read_whole(file("seven", "1234567"), out, sizeof out), 7);
    CHECK_TEXT(out, "1234567");
    CHECK_EQUAL(hs_read_whole(file("eight", "12345678"), out, sizeof out), -1);
    CHECK_EQUAL(hs_read_whole(file("empty", ""), out, sizeof out), 0);
    CHECK_TEXT(out, "");
    CHECK_EQUAL(hs_read_whole("/nonexistent/file", out, sizeof out), -1);
    CHECK_EQUAL(hs_read_whole(directory, out, sizeof out), -1);
    leave_directory();
}

static void counts_entries_that_are_numbers(void)
{
    unsigned long total = 9;
    enter_directory();
    CHECK_EQUAL(hs_count_entries(directory, &total), 0);
    CHECK_EQUAL(total, 0);
    const char *const names[] = {"1000", "2000", "word", "x7"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        file(names[i], "");
    CHECK_EQUAL(hs_count_entries(directory, &total), 2);
    CHECK_EQUAL(total, 3000);
    leave_directory();
    CHECK_EQUAL(hs_count_entries("/nonexistent", &total), -1);
}

/* More than one buffer of getdents64 holds. */
static void counts_long_directories(void)
{
    unsigned long total, expected = 0;
    char name[16];
    enter_directory();
    for (int number = 1000; number < 1500; number++) {
        snprintf(name, sizeof name, "%d", number);
        file(name, "");
        expected += (unsigned long)number;
    }
    CHECK_EQUAL(hs_count_entries(directory, &total), 500);
    CHECK_EQUAL(total, expected);
    leave_directory();
}

/* The descriptor with which the directory is read does not count. */
static void counts_descriptors_but_its_own(void)
{
    unsigned long before, after;
    const int count = hs_count_entries("/proc/self/fd", &before);
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_EQUAL(hs_count_entries("/proc/self/fd", &after), count + 1);
    CHECK_EQUAL(after, before + (unsigned long)fd);
    close(fd);
}

/* The other end of the control socket. */
static int connect_control(void)
{
    int ends[2];
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_EQUAL(dup2(ends[0], HS_CONTROL_FD), HS_CONTROL_FD);
    close(ends[0]);
    return ends[1];
}

static void send_with(int socket, const void *bytes, size_t length, uint32_t count)
{
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int) * 64)];
    } control = {0};
    struct iovec part = {(void *)bytes, length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        control.head = (struct cmsghdr){CMSG_LEN(sizeof(int) * count), SOL_SOCKET, SCM_RIGHTS};
        int *fds = (int *)CMSG_DATA(&control.head);
        for (uint32_t i = 0; i < count; i++)
            fds[i] = 0;
    }
    CHECK_EQUAL(sendmsg(socket, &message, 0), length);
}

static void close_all(const int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        CHECK_EQUAL(close(fds[i]), 0);
}

static void receives_messages_with_descriptors(void)
{
    char buffer[16];
    int fds[HS_FDS_MAX];
    uint32_t count;
    const int socket = connect_control();
    send_with(socket, "message", 7, 0);
    CHECK_EQUAL(hs_receive(buffer, sizeof buffer, fds, &count), 7);
    CHECK_EQUAL(count, 0);
    CHECK(memcmp(buffer, "message", 7) == 0);
    send_with(socket, "m", 1, HS_FDS_MAX);
    CHECK_EQUAL(hs_receive(buffer, sizeof buffer, fds, &count), 1);
    CHECK_EQUAL(count, HS_FDS_MAX);
    close_all(fds, count);
    close(socket);
    CHECK_EQUAL(hs_receive(buffer, sizeof buffer, fds, &count), 0);
    close(HS_CONTROL_FD);
}

static void refuses_messages_that_do_not_fit(void)
{
    char buffer[4];
    int fds[HS_FDS_MAX];
    uint32_t count;
    const int socket = connect_control();
    send_with(socket, "message", 7, 0);
    CHECK_EQUAL(hs_receive(buffer, sizeof buffer, fds, &count), -1);
    send_with(socket, "m", 1, HS_FDS_MAX + 8);
    CHECK_EQUAL(hs_receive(buffer, sizeof buffer, fds, &count), -1);
    CHECK(count <= HS_FDS_MAX);
    close_all(fds, count);
    close(socket);
    close(HS_CONTROL_FD);
}

static void sends_until_the_runner_is_gone(void)
{
    char buffer[16];
    const int socket = connect_control();
    CHECK_EQUAL(hs_send("reply", 5), 0);
    CHECK_EQUAL(recv(socket, buffer, sizeof buffer, 0), 5);
    close(socket);
    CHECK_EQUAL(hs_send("reply", 5), -1);
    close(HS_CONTROL_FD);
}

const struct unit_test tests_of_io[] = {
    {"io: parses numbers", parses_numbers},
    {"io: reads files that fit", reads_files_that_fit},
    {"io: counts entries that are numbers", counts_entries_that_are_numbers},
    {"io: counts long directories", counts_long_directories},
    {"io: counts descriptors but its own", counts_descriptors_but_its_own},
    {"io: receives messages with descriptors", receives_messages_with_descriptors},
    {"io: refuses messages that do not fit", refuses_messages_that_do_not_fit},
    {"io: sends until the runner is gone", sends_until_the_runner_is_gone},
    {NULL, NULL},
};
