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
    unsigned done, rest, links;
    int is_absolute, follows_last;
    int found; /* enum hs_walk_found */
    char path[PATH_BYTES];
};

static struct hs_devices passed;

/* Before each run. */
void hs_walk_begin(void)
{
    passed = (struct hs_devices){{0}};
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

/* Puts what the link at `begin` says, whose name ends there with a zero, before the rest. Returns whether that is known. The kernel may
 * note that the link is read, which `asked` tells: what it was before. */
static int follow(struct walk *walk, unsigned begin, const struct stat *asked)
{
    char target[LINK_BYTES];
    struct stat link;
    const long size = HS_SYS(SYS_readlinkat, walk->from, walk->path, target, sizeof target);
    if (size <= 0 || size == sizeof target)
        return 0;
    if (HS_SYS(SYS_newfstatat, walk->from, walk->path, &link, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    if (link.st_atim.tv_sec != asked->st_atim.tv_sec || link.st_atim.tv_nsec != asked->st_atim.tv_nsec)
        walk->found |= HS_WALK_TOUCHED;
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
    if (is_link && is_last && !walk->follows_last) {
        walk->found |= HS_WALK_LINK;
        return ENDS;
    }
    if (is_link)
        return walk->links++ == LINKS_MAX ? ENDS : follow(walk, begin, &file) ? GOES_ON : IS_UNKNOWN;
    walk->done = begin + size;
    return GOES_ON;
}

/* Reads a path that the kernel is to read. Returns whether it could: otherwise the run is doubtful. */
static int fetch(struct walk *walk, const char *path)
{
    enum { PART = 256 };
    for (unsigned length = 0; length < PATH_BYTES - PART;) {
        const unsigned size = PART - (unsigned)((uintptr_t)(path + length) % PART);
        if (!hs_signals_fetch(walk->path + length, (long)(path + length), size))
            return 0;
        for (const unsigned end = length + size; length < end; length++)
            if (!walk->path[length])
                return 1;
    }
    hs_call_mark();
    return 0;
}

/* Looks at the way of a path before its call, which may change names, and the text of the path itself. Beside what is common, this call may
 * ask for what is `allowed`, unless that is NULL. Returns what is found. */
int hs_walk_look_at(long from, const char *path, int follows_last, const char *allowed)
{
    struct walk walk;
#ifdef HS_WITHOUT_WALK
    return 0;
#endif
    if (!path || !fetch(&walk, path))
        return 0;
    walk.from = from;
    walk.done = walk.rest = walk.links = 0;
    walk.found = 0;
    walk.is_absolute = walk.path[0] == '/';
    walk.follows_last = follows_last;
    enum step step;
    while ((step = go(&walk)) == GOES_ON) {
    }
    if (step == IS_UNKNOWN)
        hs_call_mark();
    else if (step == IS_MADE_UP && !hs_files_are_common(walk.path) && !(allowed && hs_files_equal(walk.path, allowed)))
        hs_gate_reveal();
    return walk.found;
}

/* After the call. Links were touched before it, which is as it would be if the call has followed its path, as far as that leads. */
void hs_walk_settle(int found, long result)
{
    if (!(found & HS_WALK_TOUCHED) || result >= 0)
        return;
    switch (result) {
    case -ENOENT:
    case -ENOTDIR:
    case -EACCES:
    case -ELOOP:
    case -EEXIST:
    case -EISDIR:
    case -ENODATA: return;
    default: hs_call_mark();
    }
}

#endif
