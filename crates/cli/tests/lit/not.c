/* As LLVM's `not`: runs a command and turns its status round. What is ended by a signal, or cannot be started, is a failure
 * of its own. */
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
    int status;
    pid_t child;
    (void)argc;
    if (posix_spawn(&child, argv[1], NULL, NULL, argv + 1, environ) != 0) {
        fprintf(stderr, "not: cannot start %s\n", argv[1]);
        return 1;
    }
    if (waitpid(child, &status, 0) != child || WIFSIGNALED(status))
        return 1;
    return WEXITSTATUS(status) == 0;
}
