/* Finds the user's server: a socket in a directory that nobody else can write to. Starts a server for those who come
 * later, where there is none. Nothing of a job is sent before it is known that the other side is the same user. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/time_types.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "client.h"
#include "system.h"

#define EEXIST 17
/* Seconds before another try, where a server was started but did not come. */
#define PAUSE 10

static long own_user(void)
{
    return sys(__NR_geteuid);
}

static int is_private(const char *directory)
{
    struct stat found;
    return sys(__NR_newfstatat, AT_FDCWD, directory, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found.st_mode) &&
           found.st_uid == own_user() && (found.st_mode & 077) == 0;
}

/* Whether the session's directory is there, and is this user's: after `su` it may be another's. */
static int is_own(const char *directory)
{
    struct stat found;
    return directory && directory[0] == '/' && sys(__NR_newfstatat, AT_FDCWD, directory, &found, 0) == 0 &&
           S_ISDIR(found.st_mode) && found.st_uid == own_user();
}

/* src/socket_dir.rs chooses by the same rules. */
static int choose_directory(struct server *server, const struct command *command)
{
    char **envp = command->envp;
    char *at = server->directory, *end = at + sizeof server->directory - 24;
    if (command->server)
        return text_append(at, end, command->server) != NULL;
    const char *named = text_variable(envp, "HOTSTART_EXEC_DIR");
    const char *session = text_variable(envp, "XDG_RUNTIME_DIR");
    if (named && named[0] == '/')
        return text_append(at, end, named) != NULL;
    if (is_own(session))
        return text_append(text_append(at, end, session), end, "/hotstart") != NULL;
    return text_append_number(text_append(at, end, "/tmp/hotstart-"), end, (unsigned long)own_user()) != NULL;
}

static int file_in(const struct server *server, const char *name, char *out, size_t room)
{
    return text_append(text_append(text_append(out, out + room, server->directory), out + room, "/"), out + room,
                       name) != NULL;
}

/* One of many clients starts the server, and not again and again if that fails. */
static int is_my_turn(const struct server *server)
{
    char stamp[128];
    struct stat found;
    struct __kernel_timespec now;
    if (!file_in(server, "starting", stamp, sizeof stamp))
        return 0;
    long fd = sys(__NR_openat, AT_FDCWD, stamp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        sys(__NR_close, fd);
        return 1;
    }
    if (fd != -EEXIST || sys(__NR_newfstatat, AT_FDCWD, stamp, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    sys(__NR_clock_gettime, 0 /* CLOCK_REALTIME */, &now);
    if (found.st_mtime <= now.tv_sec && now.tv_sec - found.st_mtime < PAUSE)
        return 0;
    return sys(__NR_utimensat, AT_FDCWD, stamp, NULL, 0) == 0;
}

static int find_hotstart(const struct command *command, char *out)
{
    if (command->hotstart)
        return text_append(out, out + PATH_ROOM, command->hotstart) != NULL;
    long length = sys(__NR_readlinkat, AT_FDCWD, "/proc/self/exe", out, PATH_ROOM - 1);
    if (length <= 0)
        return 0;
    out[length] = 0;
    char *name = out + (text_last_part(out) - out);
    return text_append(name, out + PATH_ROOM, "hotstart") != NULL && sys(__NR_faccessat, AT_FDCWD, out, 1) == 0;
}

/* In the process that becomes the server: nothing of the build may be held open, nor its terminal. */
static __attribute__((noreturn)) void become_server(const struct server *server, struct command *command,
                                                    const char *hotstart)
{
    char log[128];
    char *argv[] = {(char *)hotstart, (char *)"server", (char *)"run", (char *)"--detached", NULL};
    long fd = -1;
    uint64_t mask = command->mask;
    sys(__NR_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
    sys(__NR_setsid);
    sys(__NR_close_range, 0u, ~0u, 0);
    sys(__NR_openat, AT_FDCWD, "/dev/null", O_RDWR);
    sys(__NR_dup3, 0, 1, 0);
    if (file_in(server, "log", log, sizeof log))
        fd = sys(__NR_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    if (fd != 2)
        sys(__NR_dup3, 0, 2, 0);
    sys(__NR_chdir, "/");
    sys(__NR_execve, hotstart, argv, command->envp);
    leave(127);
}

static long fork_once(void)
{
    return sys(__NR_clone, SIGCHLD, 0, 0, 0, 0);
}

/* The command must not meet a child that it did not start, so that the server is a grandchild. */
static void start_server(struct server *server, struct command *command)
{
    char hotstart[PATH_ROOM];
    /* A job leaves no server behind that its own start did not. */
    if (command->server || !is_my_turn(server) || !find_hotstart(command, hotstart))
        return;
    long child = fork_once();
    if (child == 0) {
        if (fork_once() == 0)
            become_server(server, command, hotstart);
        leave(0);
    }
    if (child > 0)
        sys(__NR_wait4, child, NULL, 0, NULL);
}

static int is_same_user(struct server *server)
{
    struct {
        int32_t pid;
        uint32_t uid, gid;
    } peer;
    uint32_t size = sizeof peer;
    if (sys(__NR_getsockopt, server->socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return 0;
    server->pid = peer.pid;
    return peer.uid == own_user();
}

void connect_server(struct server *server, struct command *command)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    server->socket = -1;
    if (!choose_directory(server, command) ||
        !file_in(server, HX_SOCKET, address.sun_path, sizeof address.sun_path)) {
        server->why = "the name of the server's directory is too long";
        return;
    }
    if (!command->server)
        sys(__NR_mkdirat, AT_FDCWD, server->directory, 0700);
    if (!is_private(server->directory)) {
        server->why = "the server's directory is not this user's own with mode 0700";
        return;
    }
    long fd = sys(__NR_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || sys(__NR_connect, fd, &address, sizeof address) != 0) {
        server->why = "no server answers";
        if (fd >= 0)
            sys(__NR_close, fd);
        start_server(server, command);
        return;
    }
    server->socket = (int)fd;
    if (!is_same_user(server)) {
        server->why = "the server is another user's";
        server->socket = -1;
        sys(__NR_close, fd);
    }
}

/* Waits until nothing is left of a server that died, nor of its jobs: its guard holds a lock until then. */
long await_end_of(const struct server *server)
{
    char name[32], file[160];
    struct __kernel_timespec pause = {0, 2000000};
    text_append_number(text_append(name, name + sizeof name, "alive-"), name + sizeof name, (unsigned long)server->pid);
    if (!file_in(server, name, file, sizeof file))
        return -1;
    long fd = sys(__NR_openat, AT_FDCWD, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fd;
    while (sys(__NR_flock, fd, LOCK_EX | LOCK_NB) != 0)
        sys(__NR_nanosleep, &pause, NULL);
    return sys(__NR_close, fd);
}
