/* Files, directories and links, in the working directory and in one that all runs of a sequence share. */
#include "act.h"
#include <dirent.h>
#include <sys/file.h>
#include <sys/time.h>
#include <sys/xattr.h>

#undef FAMILY
#define FAMILY "files"

/* Beside the working directory; what an earlier run has left open or locked shows there. */
#define SHARED "../shared/"

DISTURB(file_create)
{
    int fd = open("created", O_CREAT | O_EXCL | O_RDWR, 0666);
    say_result("opened anew", fd >= 0 ? 0 : -1);
    if (fd >= 0 && write(fd, "created\n", 8) == 8)
        close(fd);
}

DISTURB(file_append)
{
    int fd = open("appended", O_CREAT | O_APPEND | O_WRONLY, 0644);
    say_result("wrote", write(fd, "more\n", 5));
    close(fd);
}

DISTURB(file_left_open)
{
    int fd = open("left-open", O_CREAT | O_RDWR, 0600);
    say_result("wrote", write(fd, "x", 1));
}

OBSERVE(file_mode)
{
    struct stat now;
    int fd = open("mode", O_CREAT | O_RDWR, 0777);
    if (fd < 0 || fstat(fd, &now) != 0)
        return say_result("mode", -1);
    say("mode %o owner %d group %d", now.st_mode & 07777, (int)now.st_uid, (int)now.st_gid);
    close(fd);
    unlink("mode");
}

OBSERVE(file_read_config)
{
    char text[256];
    int got = slurp("config", text, sizeof text);
    say("config %d '%s'", got, text);
}

DISTURB(file_sparse)
{
    int fd = open("sparse", O_CREAT | O_RDWR, 0644);
    off_t end = lseek(fd, 5000, SEEK_SET);
    say("at %ld wrote %zd", (long)end, write(fd, "end", 3));
    say_result("hole at", lseek(fd, 0, SEEK_HOLE));
    close(fd);
}

MIXED(file_truncate)
{
    struct stat now = {0};
    int fd = open("truncated", O_CREAT | O_RDWR, 0644);
    int failed = ftruncate(fd, 100000);
    fstat(fd, &now);
    say("truncate %d size %ld", failed, (long)now.st_size);
    close(fd);
}

DISTURB(file_chmod)
{
    spill("chmodded", "x");
    say_result("chmod", chmod("chmodded", 0421));
}

DISTURB(file_times)
{
    struct stat now = {0};
    const struct timespec times[2] = {{1000, 5}, {2000, 6}};
    spill("timed", "x");
    say_result("utimens", utimensat(AT_FDCWD, "timed", times, 0));
    stat("timed", &now);
    say("times %ld %ld", (long)now.st_atime, (long)now.st_mtime);
}

OBSERVE(file_missing)
{
    struct stat now;
    say_result("stat", stat("absent/file", &now));
    say_result("access", access("absent", R_OK));
    say_result("readlink", readlink("config", (char[8]){0}, 8));
}

MIXED(file_rename)
{
    spill("old-name", "renamed");
    say_result("rename", rename("old-name", "new-name"));
    say_result("exchange", RAW(SYS_renameat2, AT_FDCWD, "new-name", AT_FDCWD, "absent", 2));
}

MIXED(file_links)
{
    char target[64] = "";
    struct stat now = {0};
    spill("linked", "x");
    say_result("link", link("linked", "hard"));
    say_result("symlink", symlink("linked", "soft"));
    ssize_t got = readlink("soft", target, sizeof target);
    stat("hard", &now);
    say("target %zd %s links %d", got, target, (int)now.st_nlink);
}

MIXED(file_xattr)
{
    char value[16] = "";
    spill("attributed", "x");
    int set = setxattr("attributed", "user.fuzz", "value", 5, 0);
    ssize_t got = getxattr("attributed", "user.fuzz", value, sizeof value - 1);
    say("xattr %d %zd %s", set, got, got > 0 ? value : "");
}

MIXED(file_temporary)
{
    char name[] = "temp-XXXXXX";
    int fd = mkstemp(name);
    FILE *stream = tmpfile();
    say("mkstemp %d unlink %d tmpfile %d", fd >= 0, unlink(name), stream != NULL);
    close(fd);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

OBSERVE(dir_list)
{
    char *names[100], line[1500] = "";
    int count = 0;
    DIR *dir = opendir(".");
    for (struct dirent *entry; dir && count < 100 && (entry = readdir(dir));)
        names[count++] = strdup(entry->d_name);
    if (dir)
        closedir(dir);
    qsort(names, (size_t)count, sizeof *names, by_name);
    for (int i = 0; i < count; i++) {
        if (strlen(line) + strlen(names[i]) + 2 < sizeof line)
            strcat(strcat(line, " "), names[i]);
        free(names[i]);
    }
    say("%d:%s", count, line);
}

DISTURB(dir_left_open)
{
    DIR *dir = opendir("/dev");
    say("entry %d", dir && readdir(dir) != NULL);
}

MIXED(dir_make_remove)
{
    say_result("mkdir", mkdir("made", 0777));
    say_result("mkdir inside", mkdir("made/inside", 0750));
    say_result("rmdir", rmdir("made"));
}

DISTURB(cwd_change)
{
    say_result("mkdir", mkdir("below", 0755));
    say_result("chdir", chdir("below"));
}

/* Where nobody makes files, not even root: later acts shall leave none. */
DISTURB(cwd_root)
{
    say_result("chdir", chdir("/sys"));
}

DISTURB(cwd_removed)
{
    mkdir("doomed", 0755);
    int failed = chdir("doomed");
    say("chdir %d rmdir %d", failed, rmdir("../doomed"));
}

OBSERVE(cwd_show)
{
    char path[4096] = "", link[4096] = "";
    say("getcwd %s", getcwd(path, sizeof path) ? path : strerrorname_np(errno));
    ssize_t length = readlink("/proc/self/cwd", link, sizeof link - 1);
    say("link %d %s", (int)length, link);
}

DISTURB(cwd_by_call)
{
    int fd = open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    say_result("fchdir", RAW(SYS_fchdir, fd));
}

DISTURB(umask_set)
{
    say("was %o", (unsigned)umask(0135));
}

DISTURB(umask_by_call)
{
    say("was %o", (unsigned)RAW(SYS_umask, 0002));
}

OBSERVE(umask_show)
{
    mode_t was = umask(0);
    umask(was);
    say("%o", (unsigned)was);
}

DISTURB(root_change)
{
    say_result("chroot", chroot("/usr") == 0 ? 0 : -1);
}

DISTURB(root_change_by_call)
{
    say_result("chroot", RAW(SYS_chroot, "/usr"));
}

OBSERVE(root_show)
{
    struct stat here, host;
    say("etc %d", stat("/etc", &here) == 0);
    int seen = stat("/proc/self/root", &here) == 0 && stat("/", &host) == 0;
    say("root %d same %d", seen, seen && here.st_ino == host.st_ino && here.st_dev == host.st_dev);
}

MIXED(lock_flock)
{
    int fd = open(SHARED "flock", O_CREAT | O_RDWR, 0644);
    say_result("flock", flock(fd, LOCK_EX | LOCK_NB));
}

MIXED(lock_record)
{
    struct flock whole = {.l_type = F_WRLCK};
    int fd = open(SHARED "record", O_CREAT | O_RDWR, 0644);
    say_result("fcntl", fcntl(fd, F_SETLK, &whole));
}

MIXED(lock_description)
{
    struct flock whole = {.l_type = F_WRLCK};
    int fd = open(SHARED "description", O_CREAT | O_RDWR, 0644);
    say_result("fcntl", fcntl(fd, F_OFD_SETLK, &whole));
}

MIXED(lock_mapped)
{
    int fd = open(SHARED "mapped", O_CREAT | O_RDWR, 0644);
    say_result("flock", flock(fd, LOCK_EX | LOCK_NB));
    int sized = ftruncate(fd, 4096);
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    say("size %d mapped %d first %d", sized, at != MAP_FAILED, at != MAP_FAILED ? at[0] : -1);
    close(fd);
}

MIXED(lease_taken)
{
    int fd = open(SHARED "lease", O_CREAT | O_RDONLY, 0644);
    signal(SIGIO, SIG_IGN);
    say_result("lease", fcntl(fd, F_SETLEASE, F_WRLCK));
    say_result("again", fcntl(fd, F_GETLEASE));
}

MIXED(fifo_reader)
{
    mkfifo(SHARED "fifo", 0644);
    int fd = open(SHARED "fifo", O_WRONLY | O_NONBLOCK);
    say_result("reader there", fd >= 0 ? 1 : -1);
    if (fd < 0)
        open(SHARED "fifo", O_RDONLY | O_NONBLOCK);
}

MIXED(file_watch)
{
    char events[512];
    int fd = (int)RAW(SYS_inotify_init1, O_NONBLOCK), watch = (int)RAW(SYS_inotify_add_watch, fd, ".", 0x100);
    spill("watched", "x");
    say("watch %d event %d", watch, read(fd, events, sizeof events) > 0);
}

MIXED(file_lines)
{
    char *line = NULL;
    size_t room = 0;
    FILE *stream = fopen("/etc/passwd", "re");
    ssize_t first = stream ? getline(&line, &room, stream) : -1;
    say("first %d root %d", first > 0, first > 0 && !strncmp(line, "root:", 5));
    free(line);
}

MIXED(file_exclusive_count)
{
    char name[32];
    int count = 0;
    for (; count < 50; count++) {
        snprintf(name, sizeof name, "count-%d", count);
        int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
        if (fd < 0)
            continue;
        close(fd);
        break;
    }
    say("number %d", count);
}
