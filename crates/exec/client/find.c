/* Looks for a program along PATH, as a shell does. A client that goes by a compiler's name must not find itself or
 * another client, or it would start itself for ever: clients carry a mark in their file. */
#include <fcntl.h>
#include <sys/stat.h>

#include "client.h"
#include "system.h"

#define ENOENT 2
#define EACCES 13
#define NAME_TOO_LONG 36

static int is_client(const char *path)
{
    char start[17];
    long fd = sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    long got = sys(__NR_read, fd, start, 16);
    sys(__NR_close, fd);
    start[16] = 0;
    return got == 16 && text_equal(start + 9, HX_MARK);
}

/* 0 if it can be executed. */
static long try_file(const char *path, int as_itself)
{
    struct stat found;
    long error = sys(__NR_newfstatat, AT_FDCWD, path, &found, 0);
    if (error < 0)
        return error;
    if (!S_ISREG(found.st_mode))
        return -EACCES;
    error = sys(__NR_faccessat, AT_FDCWD, path, 1 /* X_OK */);
    if (error < 0)
        return error;
    return as_itself || !is_client(path) ? 0 : -ENOENT;
}

long find_program(const char *name, char **envp, int as_itself, char *out)
{
    char *end = out + PATH_ROOM;
    long result = -ENOENT;
    if (text_last_part(name) != name)
        return text_append(out, end, name) ? 0 : -NAME_TOO_LONG;
    const char *path = text_variable(envp, "PATH");
    if (!path)
        path = "/bin:/usr/bin";
    for (;; path++) {
        char *at = out;
        for (; *path && *path != ':' && at < end - 1; path++)
            *at++ = *path;
        *at = 0;
        if (at != out)
            at = text_append(at, end, "/");
        if (text_append(at, end, name)) {
            long error = try_file(out, as_itself);
            if (error == 0)
                return 0;
            if (error == -EACCES)
                result = error;
        }
        while (*path && *path != ':')
            path++;
        if (!*path)
            return result;
    }
}
