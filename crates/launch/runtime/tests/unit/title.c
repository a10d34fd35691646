/* Tests of runtime/fork/title.c: what /proc shows as this process's command line and environment can be moved and restored. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime.h"
#include "unit.h"

static ssize_t read_file(const char *path, char *out, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = read(fd, out, room);
    close(fd);
    return length;
}

static void shows_other_strings(void)
{
    static const char given[] = "tool\0-x\0A=1\0B=2";
    static char strings[sizeof given];
    static char before[4096], after[4096];
    char text[64];
    uintptr_t low, high, set_low, set_high;
    const ssize_t length = read_file("/proc/self/cmdline", before, sizeof before);
    /* The kernel shows anonymous pages only: those that were written. */
    memcpy(strings, given, sizeof strings);
    if (hs_title_open() != 0) {
        /* Kernels without CONFIG_CHECKPOINT_RESTORE, and some sandboxes; every tool is cold there. */
        CHECK(errno == EINVAL || errno == EPERM || errno == ENOSYS);
        printf("title: PR_SET_MM_MAP is refused here: %s\n", strerror(errno));
        return;
    }
    hs_title_stack(&low, &high);
    CHECK(low > 0 && high > low);
    CHECK(memcmp((const void *)low, before, (size_t)length) == 0);
    CHECK_EQUAL(hs_title_set(strings, strings + 8, strings + sizeof strings), 0);
    CHECK_EQUAL(read_file("/proc/self/cmdline", text, sizeof text), 8);
    CHECK(memcmp(text, "tool\0-x", 8) == 0);
    CHECK_EQUAL(read_file("/proc/self/environ", text, sizeof text), sizeof strings - 8);
    CHECK(memcmp(text, "A=1\0B=2", 8) == 0);
    hs_title_stack(&set_low, &set_high);
    CHECK(set_low == (uintptr_t)strings && set_high == (uintptr_t)(strings + sizeof strings));
    CHECK_EQUAL(hs_title_set((char *)low, (char *)low + length, (char *)high), 0);
    CHECK_EQUAL(read_file("/proc/self/cmdline", after, sizeof after), length);
    CHECK(memcmp(before, after, (size_t)length) == 0);
}

const struct unit_test tests_of_title[] = {
    {"title: shows other strings", shows_other_strings},
    {NULL, NULL},
};
