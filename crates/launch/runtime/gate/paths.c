/* System calls about paths, and what their answers tell of the process that asks.
 *
 * The kernel makes up the files of /proc for each process. Most answers are about other files, and are those that a fresh process is given.
 * So walk.c looks at the way before each call, and files.c after it at what the path leads to. A link that the call does not follow is not
 * followed there either, as the kernel would note that it was read.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "runtime.h"

#if HS_RESETS

/* The file system at /proc. */
static dev_t proc;

/* Before each run. */
void hs_paths_begin(void)
{
    struct stat found;
    if (!proc && HS_SYS(SYS_stat, "/proc/self/fd", &found) == 0)
        proc = found.st_dev;
    hs_files_begin();
    hs_walk_begin();
}

/* Whether the kernel follows the link that the path of a call ends with, if it is one. */
static int follows_last(const struct hs_system_call *call)
{
    switch (call->number) {
    case SYS_lstat:
    case SYS_readlink:
    case SYS_readlinkat:
    case SYS_lchown:
    case SYS_lgetxattr:
    case SYS_llistxattr:
    case SYS_lsetxattr:
    case SYS_lremovexattr: return 0;
    case SYS_statx: return !(call->c & AT_SYMLINK_NOFOLLOW);
    case SYS_newfstatat:
    case SYS_utimensat:
    case SYS_faccessat2: return !(call->d & AT_SYMLINK_NOFOLLOW);
    case SYS_fchownat:
    case SYS_execveat: return !(call->e & AT_SYMLINK_NOFOLLOW);
    case SYS_inotify_add_watch: return !(call->c & IN_DONT_FOLLOW);
    default: return 1;
    }
}

/* Before a call with this path. Returns as the walk does. */
int hs_paths_look_at_way(const struct hs_system_call *call, long from, const char *path)
{
    return hs_walk_look_at(from, path, follows_last(call), NULL);
}

/* Whether a string that begins at `from` reaches `to`. Read as far as that, and no further than its page. */
static int reaches(uintptr_t from, uintptr_t to)
{
    char part[256];
    while (from < to) {
        size_t size = sizeof part - from % sizeof part;
        size = size < to - from ? size : to - from;
        if (!hs_signals_fetch(part, (long)from, size))
            return 0;
        for (size_t i = 0; i < size; i++)
            if (!part[i])
                return 0;
        from += size;
    }
    return 1;
}

/* Before a call whose answer of `size` bytes the kernel writes to `answer`: where that is a part of the path, the path cannot be looked at
 * afterwards. */
static void expect_answer(const char *path, long answer, unsigned long size)
{
    const uintptr_t from = (uintptr_t)path, to = (uintptr_t)answer;
    if (!path || !answer || !size)
        return;
    if (from - to < size || (to - from < PATH_MAX && reaches(from, to)))
        hs_call_mark();
}

/* The same, by the call. */
static void expect_own_answer(const struct hs_system_call *call)
{
    switch (call->number) {
    case SYS_readlink: return expect_answer((const char *)call->a, call->b, (unsigned)call->c);
    case SYS_readlinkat: return expect_answer((const char *)call->b, call->c, (unsigned)call->d);
    case SYS_stat:
    case SYS_lstat: return expect_answer((const char *)call->a, call->b, sizeof(struct stat));
    case SYS_newfstatat: return expect_answer((const char *)call->b, call->c, sizeof(struct stat));
    case SYS_statx: return expect_answer((const char *)call->b, call->e, sizeof(struct statx));
    case SYS_statfs: return expect_answer((const char *)call->a, call->b, sizeof(struct statfs));
    case SYS_getxattr:
    case SYS_lgetxattr: return expect_answer((const char *)call->a, call->c, (unsigned long)call->d);
    case SYS_listxattr:
    case SYS_llistxattr: return expect_answer((const char *)call->a, call->b, (unsigned long)call->c);
    }
}

enum hs_call_outcome hs_paths_open(struct hs_system_call *call, long directory, const char *path, long flags)
{
    const int writes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_TRUNC | O_CREAT);
    const int follows = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    const int found = hs_walk_look_at(directory, path, follows, NULL);
    const long fd = hs_call_make(call);
    hs_walk_settle(found, fd);
    hs_files_look_at(fd, path, writes);
    /* What cannot be opened in this way shows that it is there: the runner's connection, for one. */
    if (fd < 0 && fd != -ENOENT && !(found & HS_WALK_LINK))
        hs_files_look_at_name(directory, path);
    hs_call_note_descriptor(fd);
    return hs_call_done(call, fd);
}

/* A link in /proc tells the process number, whatever path leads to it. */
enum hs_call_outcome hs_paths_read_link(struct hs_system_call *call, long directory, const char *path)
{
    expect_own_answer(call);
    const int found = hs_paths_look_at_way(call, directory, path);
    const long result = hs_call_make(call);
    hs_walk_settle(found, result);
    if (result > 0 && !(found & HS_WALK_LINK))
        hs_files_look_at_link(directory, path);
    return hs_call_done(call, result);
}

/* From a directory of /proc, what it holds can be reached by names that do not tell. */
enum hs_call_outcome hs_paths_enter(struct hs_system_call *call)
{
    const int found = hs_paths_look_at_way(call, AT_FDCWD, (const char *)call->a);
    const long result = hs_call_make(call);
    hs_walk_settle(found, result);
    if (result == 0)
        hs_files_look_at_name(AT_FDCWD, ".");
    else if (result != -ENOENT)
        hs_files_look_at_name(AT_FDCWD, (const char *)call->a);
    return hs_call_done(call, result);
}

/* An answer about a path: what lies in /proc, or is reached through it, shows this process. */
enum hs_call_outcome hs_paths_look_up(struct hs_system_call *call, long directory, const char *path)
{
    /* LLVM asks so whether there is a /proc. What the directory holds is not in the answer. */
    static const char descriptors[] = "/proc/self/fd";
    expect_own_answer(call);
    const int found = hs_walk_look_at(directory, path, follows_last(call), call->number == SYS_access ? descriptors : NULL);
    const long result = hs_call_make(call);
    hs_walk_settle(found, result);
    if (result == 0 && call->number == SYS_access && hs_files_equal(path, descriptors))
        return hs_call_done(call, result);
    if (!(found & HS_WALK_LINK))
        hs_files_look_at_name(directory, path);
    return hs_call_done(call, result);
}

/* A change to names in directories. One that fails tells of what is there. */
enum hs_call_outcome hs_paths_change(struct hs_system_call *call, long directory, long path, long other_directory, long other)
{
    const int follows = call->number == SYS_linkat && call->e & AT_SYMLINK_FOLLOW;
    const int found = hs_walk_look_at(directory, (const char *)path, follows, NULL);
    const int found_other = other ? hs_walk_look_at(other_directory, (const char *)other, 0, NULL) : 0;
    const long result = hs_call_make(call);
    hs_walk_settle(found, result);
    /* One that fails may not have come to the other. */
    if (found_other & HS_WALK_TOUCHED && result < 0)
        hs_call_mark();
    if (result < 0 && result != -ENOENT) {
        if (!(found & HS_WALK_LINK))
            hs_files_look_at_name(directory, (const char *)path);
        if (other && !(found_other & HS_WALK_LINK))
            hs_files_look_at_name(other_directory, (const char *)other);
    }
    return hs_call_done(call, result);
}

static int is_of_proc(long directory, const char *path, int flags)
{
    struct stat file;
    return HS_SYS(SYS_newfstatat, directory, path, &file, flags) == 0 && file.st_dev == proc;
}

/* A change to what is kept of a file beside its content: times, owner. A later run would find it at a file of /proc. */
enum hs_call_outcome hs_paths_set(struct hs_system_call *call, long directory, const char *path)
{
    const int found = hs_paths_look_at_way(call, directory, path);
    const long result = hs_call_make(call);
    hs_walk_settle(found, result);
    if (result == 0 && !(found & HS_WALK_LINK)) {
        const char *const name = path ? path : "";
        if (is_of_proc(directory, name, AT_EMPTY_PATH) || is_of_proc(directory, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
            hs_call_mark();
    }
    if (path && !(found & HS_WALK_LINK))
        hs_files_look_at_name(directory, path);
    return hs_call_done(call, result);
}

/* Whether an answer is about a descriptor, not about a path: what it leads to was looked at when it was opened. */
static int is_of_descriptor(const struct hs_system_call *call)
{
    switch (call->number) {
    case SYS_fstat: return 1;
    /* Since Linux 6.11 no path is as good as an empty one. */
    case SYS_newfstatat: return call->d & AT_EMPTY_PATH && (!call->b || !*(const char *)call->b);
    case SYS_statx: return call->c & AT_EMPTY_PATH && (!call->b || !*(const char *)call->b);
    default: return 0;
    }
}

/* The kernel's answer about a file. Those of /proc show the process: how many descriptors it has, for one. An open file there has a number
 * and times of its own in each process. */
enum hs_call_outcome hs_paths_tell(struct hs_system_call *call, long about)
{
    dev_t device;
    mode_t mode;
    const int is_at = call->number == SYS_newfstatat || call->number == SYS_statx;
    const char *const path = (const char *)(is_at ? call->b : call->a);
    expect_own_answer(call);
    const int found = call->number != SYS_fstat ? hs_paths_look_at_way(call, is_at ? call->a : AT_FDCWD, path) : 0;
    const long result = hs_call_make(call);
    hs_walk_settle(found, result);
    if (result != 0)
        return hs_call_done(call, result);
    if (call->number == SYS_statx) {
        const struct statx *file = (const struct statx *)about;
        device = makedev(file->stx_dev_major, file->stx_dev_minor);
        mode = file->stx_mode;
    } else {
        device = ((const struct stat *)about)->st_dev;
        mode = ((const struct stat *)about)->st_mode;
    }
    /* By its name in /proc it may be the runner's connection. */
    if (S_ISSOCK(mode) && !is_of_descriptor(call))
        hs_call_mark();
    if (device == proc && S_ISREG(mode) && is_of_descriptor(call))
        hs_call_see_number();
    else if (device == proc)
        hs_call_mark();
    /* There may be another instance of /proc, or a file system that nobody knows. */
    else if (device != proc && !is_of_descriptor(call) && !(found & HS_WALK_LINK))
        hs_files_look_at_answer(is_at ? call->a : AT_FDCWD, path, device);
    return hs_call_done(call, result);
}

#endif
