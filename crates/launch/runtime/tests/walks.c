/* Makes one call with one path, and prints how it ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static int reach(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strncpy(name.sun_path, path, sizeof name.sun_path - 1);
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, sizeof name);
}

static int call(const char *how, const char *path)
{
    struct stat file;
    struct statx more;
    struct statfs system;
    char text[256];
    if (strcmp(how, "open") == 0)
        return open(path, O_RDONLY) < 0 ? -1 : 0;
    if (strcmp(how, "access") == 0)
        return access(path, F_OK);
    if (strcmp(how, "stat") == 0)
        return stat(path, &file);
    if (strcmp(how, "lstat") == 0)
        return lstat(path, &file);
    if (strcmp(how, "statx") == 0)
        return statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &more);
    if (strcmp(how, "statfs") == 0)
        return statfs(path, &system);
    if (strcmp(how, "readlink") == 0)
        return readlink(path, text, sizeof text) < 0 ? -1 : 0;
    if (strcmp(how, "stat-nowhere") == 0)
        return stat(path, (struct stat *)8);
    if (strcmp(how, "readlink-nowhere") == 0)
        return readlink(path, (char *)8, sizeof text) < 0 ? -1 : 0;
    if (strcmp(how, "statx-wrongly") == 0)
        return statx(AT_FDCWD, path, -1, STATX_BASIC_STATS, &more);
    if (strcmp(how, "mkdir") == 0)
        return mkdir(path, 0700);
    if (strcmp(how, "truncate") == 0)
        return truncate(path, -1);
    if (strcmp(how, "chdir") == 0)
        return chdir(path);
    if (strcmp(how, "rename-to") == 0)
        return rename("absent", path);
    if (strcmp(how, "link-to") == 0)
        return link("/dev/null", path);
    if (strcmp(how, "attribute") == 0)
        return getxattr(path, "user.none", text, sizeof text) < 0 ? -1 : 0;
    if (strcmp(how, "owner") == 0)
        return fchownat(AT_FDCWD, path, (uid_t)-1, (gid_t)-1, 0);
    return reach(path);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 0;
    errno = 0;
    const int result = call(argv[1], argv[2]);
    printf("%d %d\n", result, errno);
    /* Once more, from the directory to which the first has led. */
    if (argc > 3)
        printf("%d\n", call(argv[1], argv[3]));
    return 0;
}
