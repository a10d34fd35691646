/* A sufficient part of LLVM's `not`: crashes and programs that cannot be run are failures even so. It is known by its messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const int crashes = argc > 1 && strcmp(argv[1], "--crash") == 0;
    char **command = argv + 1 + crashes;
    if (!*command)
        return 1;
    const pid_t child = fork();
    if (child == 0) {
        execvp(*command, command);
        fprintf(stderr, "error: unable to find `%s' in PATH: %s\n", *command, getenv("PATH"));
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    if (crashes)
        return !WIFSIGNALED(status);
    if (WIFSIGNALED(status) || WEXITSTATUS(status) >= 126) {
        fputs("error: the command has crashed or cannot be run\n", stderr);
        return 1;
    }
    return WEXITSTATUS(status) == 0;
}
