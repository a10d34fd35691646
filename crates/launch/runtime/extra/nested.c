/* In a build, sends a tool's own starts of compilers and linkers through hotstart's client, so that they are warm as well.
 *
 * These functions are interposed if a server gave the client's path (`warm::image` writes it into the slot). The child is the tool's own
 * as before. It executes the client with the program and its arguments, and the client becomes the program itself wherever that cannot
 * be warm. A failure to execute would then come from the client. So only programs that can be executed, as far as can be seen, go this
 * way: absolute paths to ELF files of this machine. A start stays with libc after a call that changes what a process may do, and where a
 * crash would leave a core file, which the parent learns of from the program only. Nothing is allocated, and only the stack is written:
 * a caller may share its memory with its parent (vfork).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime.h"

#define MARK "hotstart-nested-client:"
/* More do not go through the client, which could not pass them on in many cases, and would need a large stack. */
#define ARGUMENTS_MAX 1024

/* The client's path and the directory of its server, each ended by a NUL. Read through a pointer that the compiler does not see through. */
static const char slot[1024] = MARK;
static const char *volatile client_slot = slot;

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const *, char *const *);
typedef int exec_function(const char *, char *const *, char *const *);
typedef int plain_exec_function(const char *, char *const *);

static struct {
    exec_function *execve, *execvpe;
    plain_exec_function *execv, *execvp;
    spawn_function *posix_spawn, *posix_spawnp;
    long (*ptrace)(int, long, long, long);
} next;

/* Written by hs_nested_open only, in the zygote, and read in its forks. `client` is NULL if nothing goes through a client; else `file` is
 * what lies there. */
static struct {
    const char *client;
    struct stat file;
    int cores_are_piped;
} nested;

static void resolve(void)
{
    if (next.ptrace)
        return;
#define RESOLVE(name) next.name = (__typeof__(next.name))dlsym(RTLD_NEXT, #name)
    RESOLVE(execve);
    RESOLVE(execvpe);
    RESOLVE(execv);
    RESOLVE(execvp);
    RESOLVE(posix_spawn);
    RESOLVE(posix_spawnp);
    RESOLVE(ptrace);
}

/* Bears its mark (crates/exec/client/wire.h). */
static int is_client(const char *path)
{
    unsigned char head[EI_NIDENT];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, head, sizeof head);
    close(fd);
    return got == sizeof head && memcmp(head + EI_PAD, "hotstrt", 7) == 0;
}

/* Called in the zygote, after the constructors. */
void hs_nested_open(void)
{
    char pattern[256];
    const char *path = client_slot + sizeof MARK;
    resolve();
    if (*path && is_client(path) && stat(path, &nested.file) == 0)
        nested.client = path;
    nested.cores_are_piped = hs_read_whole("/proc/sys/kernel/core_pattern", pattern, sizeof pattern) > 0 && *pattern == '|';
}

static int is_one_of(const char *const *names, const char *name, size_t length)
{
    for (; *names; names++)
        if (strlen(*names) == length && memcmp(*names, name, length) == 0)
            return 1;
    return 0;
}

/* Compilers, linkers and their companions by name, targets before and versions behind it apart: those of
 * crates/exec/src/tools.rs, where a test compares. */
static int is_compiler(const char *file)
{
    static const char *const names[] = {
        "clang",   "clang++", "clang-cl", "clang-cpp", "gcc",      "g++",    "cc",       "c++",     "cpp",
        "cc1",     "cc1plus", "collect2", "gfortran",  "flang",    "flang-new", "as",    "ld",      "lld",
        "lld-link", "mold",   "rustc",    "llc",       "opt",      "ld64.lld",  "ld.lld", "ld.bfd", "ld.gold",
        "ld.mold", "ar",      "ranlib",   "nm",        "strip",    "objcopy",   "objdump", "readelf", "size",
        "strings", "mc",      "tblgen",   "dsymutil",  "clang-format", "clang-tidy", "clang-scan-deps", NULL};
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    size_t length = strlen(name);
    const char *dash = strrchr(name, '-');
    if (dash && dash[1] && strspn(dash + 1, "0123456789.") == strlen(dash + 1))
        length = (size_t)(dash - name);
    if (is_one_of(names, name, length))
        return 1;
    dash = memrchr(name, '-', length);
    return dash && is_one_of(names, dash + 1, length - (size_t)(dash + 1 - name));
}

/* Whether a server of `hotstart exec` has made this process: its jobs are builds. */
HS_GENERAL int hs_nested_is_build(void)
{
    return nested.client != NULL;
}

/* Whether an exec of this path, as nested starts write it, is one of the client. */
HS_GENERAL int hs_nested_is_client(const char *path)
{
    return nested.client && path == nested.client;
}

static int goes_through(const char *file)
{
    return nested.client && file && is_compiler(file);
}

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* Whether the kernel will execute it, as far as can be seen: no script, and none of another machine. Nor another client,
 * which bears a mark (crates/exec/client/wire.h). */
static int is_program(const char *path)
{
    Elf64_Ehdr head;
    struct stat found;
    if (stat(path, &found) != 0 || !S_ISREG(found.st_mode) || access(path, X_OK) != 0)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, &head, sizeof head);
    close(fd);
    return got == sizeof head && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
           head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_machine == MACHINE &&
           (head.e_type == ET_EXEC || head.e_type == ET_DYN) && memcmp(head.e_ident + EI_PAD, "hotstrt", 7) != 0;
}

/* Writes the path of `file` to `out`; 0 if libc shall look for it, and say what is wrong. What is relative might be
 * another file in the child. */
static int find(const char *file, int search, char *out, size_t room)
{
    size_t name = strlen(file) + 1;
    if (!search || strchr(file, '/')) {
        if (name > room || *file != '/')
            return 0;
        memcpy(out, file, name);
        return is_program(out);
    }
    const char *path = getenv("PATH");
    for (const char *end; path && *path; path = *end ? end + 1 : end) {
        end = strchrnul(path, ':');
        size_t length = (size_t)(end - path);
        if (*path != '/' || length + 1 + name > room)
            return 0;
        memcpy(out, path, length);
        out[length] = '/';
        memcpy(out + length + 1, file, name);
        /* The first file that is there decides, even if it cannot be executed. */
        struct stat found;
        if (stat(out, &found) == 0)
            return is_program(out);
    }
    return 0;
}

/* Whether the client is still there, and a child would be to it what it would be to the program. */
static int may_be_warm(void)
{
    struct stat now;
    struct rlimit core;
    /* Its path leads through /proc: the gate is not asked. */
    const int is_there = nested.client && HS_SYS(SYS_newfstatat, AT_FDCWD, nested.client, &now, 0) == 0;
    const int is_believed = !hs_marks_seen() && !(hs_gate_is_worker() && hs_call_seen() & HS_SEEN_UNKNOWN);
    return is_there && is_believed && now.st_dev == nested.file.st_dev && now.st_ino == nested.file.st_ino &&
           (nested.cores_are_piped || (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur == 0));
}

/* The client's arguments: its name, the server's directory, the program, the program's arguments. */
#define LEADING 3
struct line {
    char server[256], as[PATH_MAX];
    const char *argv[LEADING + ARGUMENTS_MAX + 1];
};

static size_t count_of(char *const *argv)
{
    size_t count = 0;
    while (argv && count <= ARGUMENTS_MAX && argv[count])
        count++;
    return count <= ARGUMENTS_MAX ? count : 0;
}

static int fill(struct line *line, const char *file, int search, char *const *argv)
{
    static const char server[] = "--server=", as[] = "--as=";
    const char *directory = nested.client + strlen(nested.client) + 1;
    size_t count = count_of(argv);
    if (!count || sizeof server + strlen(directory) > sizeof line->server)
        return 0;
    memcpy(line->as, as, sizeof as);
    if (!find(file, search, line->as + sizeof as - 1, sizeof line->as - sizeof as))
        return 0;
    strcat(strcpy(line->server, server), directory);
    line->argv[0] = "hotstart-exec";
    line->argv[1] = line->server;
    line->argv[2] = line->as;
    memcpy(line->argv + LEADING, argv, (count + 1) * sizeof *argv);
    return 1;
}

/* Whether the line could be filled. As with libc's own functions, no thread is cancelled here. */
static int prepare(struct line *line, const char *file, int search, char *const *argv)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    int filled = may_be_warm() && fill(line, file, search, argv);
    pthread_setcancelstate(state, &state);
    return filled;
}

/* Returns if the program is to be executed in the usual way. On a frame of its own, which is large. */
static __attribute__((noinline)) void execute(const char *file, int search, char *const *argv, char *const *envp)
{
    struct line line;
    int saved = errno;
    if (prepare(&line, file, search, argv))
        next.execve(nested.client, (char *const *)line.argv, envp);
    errno = saved;
}

static int own_execve(const char *file, char *const *argv, char *const *envp)
{
    resolve();
    hs_watch_touch();
    if (goes_through(file))
        execute(file, 0, argv, envp);
    return next.execve(file, argv, envp);
}

static int own_execv(const char *file, char *const *argv)
{
    resolve();
    hs_watch_touch();
    if (goes_through(file))
        execute(file, 0, argv, environ);
    return next.execv(file, argv);
}

static int own_execvpe(const char *file, char *const *argv, char *const *envp)
{
    resolve();
    hs_watch_touch();
    if (goes_through(file))
        execute(file, 1, argv, envp);
    return next.execvpe(file, argv, envp);
}

static int own_execvp(const char *file, char *const *argv)
{
    resolve();
    hs_watch_touch();
    if (goes_through(file))
        execute(file, 1, argv, environ);
    return next.execvp(file, argv);
}

/* -1 if it is to be started in the usual way. */
static __attribute__((noinline)) int spawn(pid_t *pid, const char *file, int search,
                                           const posix_spawn_file_actions_t *actions,
                                           const posix_spawnattr_t *attributes, char *const *argv, char *const *envp)
{
    struct line line;
    int saved = errno;
    int filled = prepare(&line, file, search, argv);
    errno = saved;
    if (!filled)
        return -1;
    hs_children_spawn_begins();
    const int error = next.posix_spawn(pid, nested.client, actions, attributes, (char *const *)line.argv, envp);
    hs_children_spawn_ended(error);
    return error;
}

static int own_spawn(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const *argv, char *const *envp)
{
    resolve();
    hs_watch_touch();
    if (goes_through(file) && spawn(pid, file, 0, actions, attributes, argv, envp) == 0)
        return 0;
    return next.posix_spawn(pid, file, actions, attributes, argv, envp);
}

static int own_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes, char *const *argv, char *const *envp)
{
    resolve();
    hs_watch_touch();
    if (goes_through(file) && spawn(pid, file, 1, actions, attributes, argv, envp) == 0)
        return 0;
    return next.posix_spawnp(pid, file, actions, attributes, argv, envp);
}

/* For objects whose functions ld.so binds at their start, and those that bind.c leaves lazy. */
HS_EXPORT int execve(const char *file, char *const *argv, char *const *envp)
    __attribute__((alias("own_execve")));
HS_EXPORT int execv(const char *file, char *const *argv) __attribute__((alias("own_execv")));
HS_EXPORT int execvpe(const char *file, char *const *argv, char *const *envp)
    __attribute__((alias("own_execvpe")));
HS_EXPORT int execvp(const char *file, char *const *argv) __attribute__((alias("own_execvp")));
HS_EXPORT int posix_spawn(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const *argv, char *const *envp)
    __attribute__((alias("own_spawn")));
HS_EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                           const posix_spawnattr_t *attributes, char *const *argv, char *const *envp)
    __attribute__((alias("own_spawnp")));

/* A child that asks to be traced: its tracer is to meet the program's exec and no other. */
HS_EXPORT long ptrace(enum __ptrace_request request, ...)
{
    va_list more;
    va_start(more, request);
    long a = va_arg(more, long), b = va_arg(more, long), c = va_arg(more, long);
    va_end(more);
    resolve();
    hs_watch_touch();
    hs_marks_set();
    return next.ptrace((int)request, a, b, c);
}

/* The function to bind in place of libc's `function`. */
void *hs_nested_interposed(void *function)
{
#define INTERPOSED(name, own) \
    if (function == (void *)next.name) \
        return (void *)own;
    INTERPOSED(execve, own_execve)
    INTERPOSED(execv, own_execv)
    INTERPOSED(execvpe, own_execvpe)
    INTERPOSED(execvp, own_execvp)
    INTERPOSED(posix_spawn, own_spawn)
    INTERPOSED(posix_spawnp, own_spawnp)
    INTERPOSED(ptrace, ptrace)
    return function;
}
