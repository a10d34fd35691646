/* What a run may be told by the files that it opens, asks about, or names.
 *
 * A file of an ordinary file system holds what was written to it. The kernel makes up the content of others for each process that asks:
 * these are read without a doubt only if they are known to tell every process the same. File systems, too, are known or not.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime.h"

#if HS_RESETS

HS_GENERAL int hs_files_equal(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* Whether a path leads to a file below this directory, whatever links are there. */
static int is_below(const char *path, const char *directory)
{
    while (*directory && *path == *directory)
        path++, directory++;
    if (*directory)
        return 0;
    for (; *path; path++)
        if (path[0] == '.' && path[1] == '.')
            return 0;
    return 1;
}

/* Not the runner's connection. The directory itself shows it as well. */
static int is_descriptor(const char *path)
{
    static const char directory[] = "/proc/self/fd/";
    for (size_t i = 0; i < sizeof directory - 1; i++)
        if (path[i] != directory[i])
            return 0;
    path += sizeof directory - 1;
    const char *const digits = path;
    while (*path >= '0' && *path <= '9')
        path++;
    const int is_connections = path == digits + 2 && digits[0] == '0' + HS_CONTROL_FD / 10 && digits[1] == '0' + HS_CONTROL_FD % 10;
    return path > digits && !*path && !is_connections;
}

/* Files of the kernel's of which reading tells nothing of this process that another would not be told. (/proc/loadavg and /proc/stat tell
 * how many processes were made.) */
int hs_files_are_common(const char *path)
{
    static const char *const files[] = {"/proc/self/exe", "/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems", "/proc/mounts",
                                        "/proc/self/mounts", "/proc/self/mountinfo", "/proc/self/cgroup", "/proc/uptime",
                                        "/proc/version", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/osrelease",
                                        "/proc/sys/kernel/ngroups_max", "/proc/sys/kernel/core_pattern",
                                        "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible",
                                        "/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage/enabled",
                                        "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
                                        "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (hs_files_equal(path, files[i]))
            return 1;
    if (is_below(path, "/sys/devices/system/cpu/") || is_below(path, "/sys/devices/system/node/"))
        return 1;
    /* libc looks there for the limits of the first thread's stack, which are as in a fresh process; what else is in it nobody is
     * told. How much memory is in use differs in any case, and is a known difference of builds: rustc asks at each start. */
    if (hs_files_equal(path, "/proc/self/maps"))
        return hs_threads_asks_for_stack();
    if (hs_files_equal(path, "/proc/self/statm"))
        return hs_nested_is_build();
    return is_descriptor(path);
}

/* Of sockets without a name. */
#define SOCKETS_MAGIC 0x534f434b

int hs_files_hold(long magic)
{
    switch (magic) {
#define FILE_SYSTEM(magic) case magic:
#include "file_systems.h"
#undef FILE_SYSTEM
        return 1;
    default:
        return 0;
    }
}

/* A file system of the user's may stand in for the kernel's (lxcfs). */
#define FUSE_MAGIC 0x65735546

/* Whether a file system has files that stand where the kernel has such as are not common. */
static int stands_in(dev_t device)
{
    static const char *const files[] = {"/proc/loadavg", "/proc/stat", "/proc/uptime", "/proc/meminfo", "/proc/cpuinfo"};
    struct stat file;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (HS_SYS(SYS_newfstatat, AT_FDCWD, files[i], &file, 0) == 0 && file.st_dev == device)
            return 1;
    return 0;
}

/* Devices of which this run has seen that they hold files. */
static struct hs_devices known;

/* Before each run: another file system may have the number of one that is gone. */
void hs_files_begin(void)
{
    known = (struct hs_devices){{0}};
}

int hs_devices_have(const struct hs_devices *devices, dev_t device)
{
    for (size_t i = 0; i < HS_DEVICES; i++)
        if (__atomic_load_n(&devices->some[i], __ATOMIC_RELAXED) == device)
            return device != 0;
    return 0;
}

/* Any thread may add one. */
void hs_devices_add(struct hs_devices *devices, dev_t device)
{
    for (size_t i = 0; i < HS_DEVICES && !hs_devices_have(devices, device); i++) {
        dev_t none = 0;
        __atomic_compare_exchange_n(&devices->some[i], &none, device, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

static int is_known(dev_t device)
{
    return hs_devices_have(&known, device);
}

static void note(dev_t device)
{
    hs_devices_add(&known, device);
}

/* A file with this name, in a file system of this kind, may be read; whether it may be written to as well. `fd` is open, or negative.
 * Returns whether all files of the system may be. */
static int look_at(long magic, long fd, const char *path, int writes)
{
    struct stat file;
    if (magic == SOCKETS_MAGIC)
        hs_call_mark();
    else if (magic == FUSE_MAGIC) {
        const long found = fd < 0 ? HS_SYS(SYS_newfstatat, AT_FDCWD, path, &file, 0) : HS_SYS(SYS_fstat, fd, &file);
        if (found == 0 && !stands_in(file.st_dev))
            return 1;
        if (found != 0 || writes || !hs_files_are_common(path))
            hs_gate_reveal();
    } else if (hs_files_hold(magic))
        return 1;
    else if (writes || !hs_files_are_common(path))
        /* /proc/self/status tells which signals have handlers, and a list of a control group has the process number. */
        hs_gate_reveal();
    return 0;
}

/* What was opened under this name may be read; whether it may be written to as well. Returns as look_at does. */
static int look_at_open(long fd, const char *path, int writes)
{
    struct statfs system;
    struct stat file;
#ifdef HS_WITHOUT_FILES
    return 1;
#endif
    if (fd < 0)
        return 0;
    /* Of sockets, a name leads to those that have one in a file system; others are reached by /proc only: the runner's, for one. */
    if (HS_SYS(SYS_fstatfs, fd, &system) != 0) {
        hs_call_mark();
        return 0;
    }
    const int holds = look_at((long)system.f_type, fd, path, writes);
    /* Other files there need no look of their own, nor a descriptor for it. */
    if (holds && HS_SYS(SYS_fstat, fd, &file) == 0)
        note(file.st_dev);
    return holds;
}

void hs_files_look_at(long fd, const char *path, int writes)
{
    look_at_open(fd, path, writes);
}

/* Looks at what has this name. That needs a descriptor, whose number another thread may see taken. */
static void open_name(long directory, const char *path, long flags)
{
    if (hs_call_seen() & HS_SEEN_THREADS)
        hs_call_mark();
    const long fd = HS_SYS(SYS_openat, directory, path, O_PATH | O_CLOEXEC | flags, 0);
    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
        hs_call_mark();
    look_at_open(fd, path, 0);
    HS_SYS(SYS_close, fd);
}

/* Whether a link leads to a file on its own device, which holds files. */
static int is_beside_target(long directory, const char *path, dev_t device)
{
    struct statfs system;
    struct stat target;
    const int is_beside = (int)directory == AT_FDCWD && HS_SYS(SYS_newfstatat, AT_FDCWD, path, &target, 0) == 0 &&
                          target.st_dev == device && HS_SYS(SYS_statfs, path, &system) == 0 && hs_files_hold((long)system.f_type) &&
                          system.f_type != FUSE_MAGIC;
    if (is_beside)
        note(device);
    return is_beside;
}

/* Looks at a link on this device by the directory that it lies in, if that is on the same one. It needs no descriptor, so threads may be
 * there: a compiler that builds a module in a thread reads the links of its descriptors. Returns whether it has looked. */
static int look_by_directory(const char *path, dev_t device)
{
    struct statfs system;
    struct stat place;
    char directory[256];
    size_t length = 0, end = 0;
    for (; path[length]; length++) {
        if (length == sizeof directory)
            return 0;
        directory[length] = path[length];
        if (path[length] == '/')
            end = length + 1;
    }
    if (end == 0 || end == length || end == sizeof directory)
        return 0;
    directory[end] = 0;
    if (HS_SYS(SYS_newfstatat, AT_FDCWD, directory, &place, 0) != 0 || place.st_dev != device ||
        HS_SYS(SYS_statfs, directory, &system) != 0 || system.f_type == FUSE_MAGIC)
        return 0;
    if (look_at((long)system.f_type, -1, path, 0))
        note(device);
    return 1;
}

/* Looks at what has this name, or at the link that has it: by its device, if that is known. */
static void look_on_device(long directory, const char *path, int follows)
{
    struct stat file;
    const long found = HS_SYS(SYS_newfstatat, directory, path, &file, follows ? 0 : AT_SYMLINK_NOFOLLOW);
    if (found == -ENOENT || (found == 0 && (is_known(file.st_dev) || is_beside_target(directory, path, file.st_dev))))
        return;
    if (found == 0 && !follows && (int)directory == AT_FDCWD && look_by_directory(path, file.st_dev))
        return;
    open_name(directory, path, follows ? 0 : O_NOFOLLOW);
}

/* Looks at a link. */
void hs_files_look_at_link(long directory, const char *path)
{
#ifndef HS_WITHOUT_FILES
    look_on_device(directory, path, 0);
#endif
}

/* Looks at what has this name: the link, if it is one, and what it leads to. */
void hs_files_look_at_name(long directory, const char *path)
{
    struct statfs system;
    struct stat link, file;
#ifdef HS_WITHOUT_FILES
    return;
#endif
    if ((int)directory != AT_FDCWD) {
        look_on_device(directory, path, 1);
        look_on_device(directory, path, 0);
        return;
    }
    const long found = HS_SYS(SYS_statfs, path, &system);
    if (found == 0) {
        if (look_at((long)system.f_type, -1, path, 0) && HS_SYS(SYS_newfstatat, AT_FDCWD, path, &file, 0) == 0)
            note(file.st_dev);
    } else if (found == -ENOMEM || found == -ENOSYS)
        hs_call_mark();
    if (HS_SYS(SYS_newfstatat, AT_FDCWD, path, &link, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(link.st_mode))
        look_on_device(directory, path, 0);
}

/* Looks at what an answer is about that named this device. */
void hs_files_look_at_answer(long directory, const char *path, dev_t device)
{
    if (!is_known(device))
        hs_files_look_at_name(directory, path);
}

#endif
