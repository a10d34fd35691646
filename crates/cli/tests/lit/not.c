/* As LLVM's `not`: runs a command and turns its status round. What is ended by a signal, or cannot be started, is a failure
 * of its own; with --crash, what is ended by a signal is what was wanted. With --look it starts some programs in a way that
 * nobody follows, and then succeeds if it finds that it was started warm. With --number it succeeds if the numbers that its child
 * prints are not those of the child and of its parent. */
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

static int has_other_number(char **argv)
{
    int own = 0, parent = 0, pipes[2];
    posix_spawn_file_actions_t actions;
    pid_t child;
    if (pipe(pipes) != 0 || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, pipes[1], 1) != 0 ||
        posix_spawn(&child, *argv, &actions, NULL, argv, environ) != 0)
        return 1;
    close(pipes[1]);
    FILE *told = fdopen(pipes[0], "r");
    if (!told || fscanf(told, "%d %d", &own, &parent) != 2 || waitpid(child, NULL, 0) != child)
        return 1;
    return own == child && parent == getpid();
}

int main(int argc, char **argv)
{
    int status;
    pid_t child;
    int crash = argc > 1 && strcmp(argv[1], "--crash") == 0;
    if (argc > 1 && strcmp(argv[1], "--look") == 0)
        return look();
    if (argc > 2 && strcmp(argv[1], "--number") == 0)
        return has_other_number(argv + 2);
    argv += 1 + crash;
    if (posix_spawn(&child, *argv, NULL, NULL, argv, environ) != 0) {
        fprintf(stderr, "not: cannot start %s\n", *argv);
        return 1;
    }
    if (waitpid(child, &status, 0) != child)
        return 1;
    if (WIFSIGNALED(status) || crash)
        return !(WIFSIGNALED(status) && crash);
    return WEXITSTATUS(status) == 0;
}
