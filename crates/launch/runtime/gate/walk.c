/* What the path of a call leads through, on its way to a file or to none.
 *
 * An answer tells more than what is at the end of the path. A link of the kernel's in /proc leads to an ordinary file if the path has the
 * number of this very process, and nowhere otherwise; and the kernel has an entry there for each mapping. So no part of a path may lie
 * where the kernel makes up files for each process, but for whole paths that are known to tell every process the same. (What is at its end
 * is looked at in files.c.) Each part is looked at without a descriptor, since other threads, and handlers, would see its number taken.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
/* Nor is a loop here made a call of memcpy, which uses them. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "runtime.h"

#if HS_RESETS

/* What is longer is not followed. There has to be room for both on the tool's stack (OWN_ROOM in stacks.c). */
#define PATH_BYTES 1024
#define LINK_BYTES 256
/* As in the kernel (MAXSYMLINKS in fs/namei.c). */
#define LINKS_MAX 40

/* A path that is followed. Its first `done` bytes name a directory, without links, dots or two slashes in a row; from `rest` on is what has
 * to be followed from there. The first character behind `done` may be overwritten: `rest` is behind it, or nothing is done. */
struct walk {
    long from; /* the directory in which a path begins that has no slash at its front */
    unsigned done, rest, links, changes;
    int is_absolute;
    char path[PATH_BYTES];
};

/* Changes to names that this run has made. */
static unsigned changes;

/* A directory to which a path of this run has led, by its whole name. The run has not changed a name since. (Another process may have; what
 * it has put in its place is looked at, as the next part of the path.) */
static struct {
    int is_taken;
    unsigned length, changes;
    char path[PATH_BYTES / 4];
} last;

static struct hs_devices passed;

/* Before each run. */
void hs_walk_begin(void)
{
    hs_walk_forget();
    passed = (struct hs_devices){{0}};
}

/* A name has changed. */
void hs_walk_forget(void)
{
    __atomic_add_fetch(&changes, 1, __ATOMIC_RELAXED);
}

/* A signal handler, or another thread, may be at work there. */
static int take(void)
{
    return !__atomic_exchange_n(&last.is_taken, 1, __ATOMIC_ACQUIRE);
}

static void give(void)
{
    __atomic_store_n(&last.is_taken, 0, __ATOMIC_RELEASE);
}

/* Begins behind the last directory, if the path leads through it. */
static void begin_at_last(struct walk *walk)
{
    unsigned same = 0;
    if (!walk->is_absolute || !take())
        return;
    if (last.changes == walk->changes) {
        while (same < last.length && walk->path[same] == last.path[same])
            same++;
        if (same > 0 && same == last.length && walk->path[same] == '/')
            walk->done = walk->rest = same;
    }
    give();
}

static void keep_as_last(const struct walk *walk)
{
    if (!walk->is_absolute || walk->done > sizeof last.path || !take())
        return;
    for (unsigned i = 0; i < walk->done; i++)
        last.path[i] = walk->path[i];
    last.length = walk->done;
    last.changes = walk->changes;
    give();
}

/* Whether a file system answers every process alike about the names that are in it. */
static int answers_all(long magic)
{
    switch (magic) {
    case 0x62656572: /* /sys */
    case 0x27e0eb:   /* control groups, of both versions */
    case 0x63677270:
    case 0x958458f6: /* large pages */
    case 0x0187:     /* directories in which others are mounted when they are asked for */
        return 1;
    default: return hs_files_hold(magic);
    }
}

/* Whether a file on this device is in such a file system. `name` is the file's, or of what it lies in, if it is a link. */
static int is_in_common(const struct walk *walk, const char *name, dev_t device)
{
    struct statfs system;
    struct stat from;
    long told = -ENOENT;
    if (hs_devices_have(&passed, device))
        return 1;
    if (walk->is_absolute || (int)walk->from == AT_FDCWD)
        told = HS_SYS(SYS_statfs, *name ? name : walk->is_absolute ? "/" : ".", &system);
    else if (HS_SYS(SYS_fstat, walk->from, &from) == 0 && from.st_dev == device)
        told = HS_SYS(SYS_fstatfs, walk->from, &system);
    /* What is mounted below a directory that only has a descriptor is not known. */
    if (told != 0 || !answers_all((long)system.f_type))
        return 0;
    hs_devices_add(&passed, device);
    return 1;
}

/* Moves the rest of the path, with the zero at its end. */
static void move_rest(struct walk *walk, unsigned to)
{
    unsigned size = 1;
    while (walk->path[walk->rest + size - 1])
        size++;
    for (unsigned i = 0; i < size; i++) {
        const unsigned at = to > walk->rest ? size - 1 - i : i;
        walk->path[to + at] = walk->path[walk->rest + at];
    }
    walk->rest = to;
}

static unsigned length_of(const char *text)
{
    unsigned length = 0;
    while (text[length])
        length++;
    return length;
}

/* Puts what the link at `begin` says, whose name ends there with a zero, before the rest. Returns whether that is known. */
static int follow(struct walk *walk, unsigned begin)
{
    char target[LINK_BYTES];
    const long size = HS_SYS(SYS_readlinkat, walk->from, walk->path, target, sizeof target);
    if (size <= 0 || size == sizeof target)
        return 0;
    if (target[0] == '/') {
        walk->is_absolute = 1;
        walk->done = begin = 0;
    }
    /* With a slash between both. */
    if (begin + (unsigned)size + 2 + length_of(walk->path + walk->rest) > PATH_BYTES)
        return 0;
    move_rest(walk, begin + (unsigned)size + 1);
    for (unsigned i = 0; i < (unsigned)size; i++)
        walk->path[begin + i] = target[i];
    if (walk->path[walk->rest])
        walk->path[begin + (unsigned)size] = '/';
    else
        walk->path[begin + (unsigned)size] = 0;
    walk->rest = begin;
    return 1;
}

/* Whether what is done ends with two dots. */
static int ends_upwards(const struct walk *walk)
{
    const char *const end = walk->path + walk->done;
    return walk->done >= 2 && end[-1] == '.' && end[-2] == '.' && (walk->done == 2 || end[-3] == '/');
}

/* Leaves the last part of what is done. Returns whether it can: not where the path leads out of the directory that it begins in. */
static int go_up(struct walk *walk)
{
    if (!walk->is_absolute && (walk->done == 0 || ends_upwards(walk)))
        return 0;
    while (walk->done > 0 && walk->path[walk->done - 1] != '/')
        walk->done--;
    if (walk->done > 0)
        walk->done--;
    return 1;
}

enum step { GOES_ON, ENDS, IS_UNKNOWN, IS_MADE_UP };

/* Follows the next part. */
static enum step go(struct walk *walk)
{
    char *const path = walk->path;
    struct stat file;
    while (path[walk->rest] == '/')
        walk->rest++;
    const char *const part = path + walk->rest;
    unsigned size = 0;
    while (part[size] && part[size] != '/')
        size++;
    if (size == 0)
        return ENDS;
    const int is_dot = size == 1 && part[0] == '.', is_up = size == 2 && part[0] == '.' && part[1] == '.';
    if (is_dot || (is_up && go_up(walk))) {
        walk->rest += size;
        return GOES_ON;
    }
    const int is_last = !part[size];
    const unsigned begin = walk->done > 0 || walk->is_absolute ? walk->done + 1 : 0;
    if (begin > 0)
        path[begin - 1] = '/';
    for (unsigned i = 0; i < size; i++)
        path[begin + i] = part[i];
    walk->rest += size + !is_last;
    path[begin + size] = 0;
    const long told = HS_SYS(SYS_newfstatat, walk->from, path, &file, AT_SYMLINK_NOFOLLOW);
    if (is_last)
        keep_as_last(walk);
    switch (told) {
    case 0: break;
    case -ENOENT:
    case -ENOTDIR:
    case -ENAMETOOLONG:
    case -EACCES: return ENDS;
    default: return IS_UNKNOWN;
    }
    if (is_last && !S_ISDIR(file.st_mode) && !S_ISLNK(file.st_mode))
        return ENDS;
    /* A link lies where its directory does. */
    const int is_link = S_ISLNK(file.st_mode);
    const unsigned cut = !is_link ? begin + size : begin > 0 ? begin - 1 : 0;
    const char kept = path[cut];
    path[cut] = 0;
    const int is_common = is_in_common(walk, path, file.st_dev);
    path[cut] = kept;
    if (!is_common) {
        /* The whole name, as far as it was followed. */
        walk->done = begin + size;
        if (!is_last) {
            path[walk->done] = '/';
            move_rest(walk, walk->done + 1);
        }
        return IS_MADE_UP;
    }
    if (is_link)
        return walk->links++ == LINKS_MAX ? ENDS : follow(walk, begin) ? GOES_ON : IS_UNKNOWN;
    walk->done = begin + size;
    return GOES_ON;
}

/* Looks at the way of a path. The kernel has read the path. */
void hs_walk_look_at(long from, const char *path)
{
    struct walk walk;
#ifdef HS_WITHOUT_WALK
    return;
#endif
    unsigned length = 0;
    while (length < PATH_BYTES && (walk.path[length] = path[length]))
        length++;
    if (length == PATH_BYTES) {
        hs_call_mark();
        return;
    }
    walk.from = from;
    walk.done = walk.rest = walk.links = 0;
    walk.is_absolute = path[0] == '/';
    walk.changes = __atomic_load_n(&changes, __ATOMIC_RELAXED);
    begin_at_last(&walk);
    enum step step;
    while ((step = go(&walk)) == GOES_ON) {
    }
    if (step == IS_UNKNOWN)
        hs_call_mark();
    else if (step == IS_MADE_UP && !hs_files_are_common(walk.path))
        hs_gate_reveal();
}

#endif
