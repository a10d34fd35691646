/* As LLVM's `not`: runs a command and turns its status round. What is ended by a signal, or cannot be started, is a failure
 * of its own; with --crash, what is ended by a signal is what was wanted. With --leave it waits for a byte of
 * its input only. With --look it starts some programs in a way that nobody follows, and then
 * succeeds if it finds that it was started warm. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int look(void)
{
    char line[4096];
    int found = 0;
    for (int i = 0; i < 20; i++)
        if (system("true") != 0)
            return 2;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, "hotstart") != NULL;
    return !found;
}

int main(int argc, char **argv)
{
    int status;
    pid_t child;
    int crash = argc > 1 && strcmp(argv[1], "--crash") == 0;
    int leave = argc > 1 && strcmp(argv[1], "--leave") == 0;
    if (argc > 1 && strcmp(argv[1], "--look") == 0)
        return look();
    argv += 1 + (crash || leave);
    if (posix_spawn(&child, *argv, NULL, NULL, argv, environ) != 0) {
        fprintf(stderr, "not: cannot start %s\n", *argv);
        return 1;
    }
    if (leave) {
        char byte;
        return read(0, &byte, 1) != 1;
    }
    if (waitpid(child, &status, 0) != child)
        return 1;
    if (WIFSIGNALED(status) || crash)
        return !(WIFSIGNALED(status) && crash);
    return WEXITSTATUS(status) == 0;
}
