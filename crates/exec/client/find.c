/* Looks for a program along PATH, as a shell does. A client that goes by a compiler's name must not find itself or
 * another client, or it would start itself for ever: clients carry a mark in their file.
 *
 * A program that is found may be a wrapper (ccache), which looks for the next of its name and finds a client again. What
 * may be one is given a variable that names it. A client that finds this variable takes it away, and looks behind the
 * program that it names. */
#include <fcntl.h>
#include <sys/stat.h>

#include "client.h"
#include "system.h"

#define ENOENT 2
#define EACCES 13
#define NAME_TOO_LONG 36
#define NOT_MET 4095
#define AFTER "HOTSTART_EXEC_AFTER"
#define ENVIRONMENT_ROOM 4096

/* A file of a program. */
struct file {
    uint64_t device, inode;
    int is_client, is_elf;
};

static void read_start(const char *path, struct file *file)
{
    char start[17];
    long fd = sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    long got = sys(__NR_read, fd, start, 16);
    sys(__NR_close, fd);
    start[16] = 0;
    file->is_client = got == 16 && text_equal(start + 9, HX_MARK);
    file->is_elf = got == 16 && text_begins(start, "\177ELF");
}

/* 0 if it can be executed. */
static long look_at(const char *path, struct file *file)
{
    struct stat found;
    long error = sys(__NR_newfstatat, AT_FDCWD, path, &found, 0);
    if (error < 0)
        return error;
    if (!S_ISREG(found.st_mode))
        return -EACCES;
    *file = (struct file){found.st_dev, found.st_ino, 0, 0};
    return sys(__NR_faccessat, AT_FDCWD, path, 1 /* X_OK */);
}

static int is_same(const struct file *a, const struct file *b)
{
    return a->device == b->device && a->inode == b->inode;
}

/* The next path that `name` may have along PATH, which begins at `*path`, NULL behind the last. Empty if the path is too
 * long. */
static void next_path(const char **path, const char *name, char *out)
{
    char *at = out, *end = out + PATH_ROOM;
    for (; **path && **path != ':' && at < end - 1; ++*path)
        *at++ = **path;
    *at = 0;
    if (at != out)
        at = text_append(at, end, "/");
    if (!text_append(at, end, name))
        *out = 0;
    while (**path && **path != ':')
        ++*path;
    *path = **path ? *path + 1 : NULL;
}

/* The first that can be executed. */
static long find_first(const char *path, const char *name, char *out)
{
    struct file file;
    long result = -ENOENT;
    while (path) {
        next_path(&path, name, out);
        long error = look_at(out, &file);
        if (error == 0)
            return 0;
        if (error == -EACCES)
            result = error;
    }
    return result;
}

/* The first that is no client, behind `passed` if that is given; then whether another one follows. */
static long find_behind(const char *path, const char *name, const struct file *passed, struct found *found)
{
    char candidate[PATH_ROOM];
    struct file file, chosen = {0, 0, 0, 0};
    long result = passed ? -NOT_MET : -ENOENT;
    while (path) {
        next_path(&path, name, candidate);
        long error = look_at(candidate, &file);
        if (error == 0 && passed && is_same(&file, passed)) {
            result = result == -NOT_MET ? -ENOENT : result;
            continue;
        }
        if (error == -EACCES && result == -ENOENT)
            result = error;
        if (error != 0 || result == -NOT_MET || (result == 0 && is_same(&file, &chosen)))
            continue;
        read_start(candidate, &file);
        if (file.is_client)
            continue;
        found->may_be_wrapper = result == 0 || !file.is_elf;
        if (result == 0)
            return 0;
        text_append(found->path, found->path + PATH_ROOM, candidate);
        chosen = file;
        result = 0;
    }
    return result;
}

long find_program(const char *name, const struct command *command, int as_itself, struct found *found)
{
    struct file passed;
    const char *path = text_variable(command->envp, "PATH");
    found->may_be_wrapper = 0;
    if (!*name)
        return -ENOENT;
    if (text_last_part(name) != name)
        return text_append(found->path, found->path + PATH_ROOM, name) ? 0 : -NAME_TOO_LONG;
    if (!path)
        path = "/bin:/usr/bin";
    if (as_itself)
        return find_first(path, name, found->path);
    if (command->after && look_at(command->after, &passed) == 0) {
        long result = find_behind(path, name, &passed, found);
        if (result != -NOT_MET)
            return result;
    }
    return find_behind(path, name, NULL, found);
}

static char **find_after(char **envp)
{
    while (*envp && !text_begins(*envp, AFTER "="))
        envp++;
    return *envp ? envp : NULL;
}

/* Takes the variable away, for whom it was or was not meant. It counts where a wrapper has looked for a program and calls it
 * by its path; a program that calls its like by name alone means itself. */
void take_after(struct command *command, int as_itself)
{
    char **at = find_after(command->envp);
    const char *name = command->argv[0];
    struct file file = {0, 0, 0, 0};
    if (!at)
        return;
    if (as_itself)
        read_start(command->program, &file);
    /* That is for this client then. */
    if (file.is_client)
        return;
    const char *after = *at + sizeof AFTER;
    if (!as_itself && text_last_part(name) != name && text_equal(text_last_part(name), text_last_part(after)))
        command->after = after;
    for (; *at; at++)
        *at = at[1];
}

/* Gives the variable to a program that may look for the next one. */
void give_after(struct command *command)
{
    static char *environment[ENVIRONMENT_ROOM];
    static char variable[sizeof AFTER + PATH_ROOM];
    char *end = variable + sizeof variable;
    size_t count = 0;
    for (; command->envp[count]; count++) {
        if (count == ENVIRONMENT_ROOM - 2)
            return;
        environment[count] = command->envp[count];
    }
    text_append(text_append(variable, end, AFTER "="), end, command->program);
    environment[count] = variable;
    command->envp = environment;
}
