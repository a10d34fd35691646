/* hotstart-exec: runs a command through the user's server of warm tools, or as it is.
 *
 * Started in a compiler's place thousands of times, so that its own start counts: it is statically linked without
 * libc and touches few pages. It knows nothing of tools; the server decides what is warm. By another name than its
 * own, as by a link named clang, it runs the next program of that name in PATH, with that program's path as its
 * name, as a compiler looks for its files from there. */
#include <signal.h>

#include "client.h"
#include "system.h"

#define ENOENT 2
#define ENOEXEC 8

static const char usage[] =
    "usage: hotstart-exec [--] COMMAND [ARGUMENTS]\n"
    "\n"
    "Runs COMMAND warm where the user's hotstart server can, else as it is. Linked to by a compiler's name, it runs\n"
    "that compiler, the next one in PATH. HOTSTART_EXEC=cold in the environment runs everything as it is,\n"
    "HOTSTART_EXEC=explain says on standard error why. `hotstart server status` counts.\n";

static __attribute__((noreturn)) void fail(const struct command *command, long error)
{
    const char *parts[] = {"cannot execute '", command->program, "': ", text_error(error), NULL};
    say(parts);
    /* A tool that would have been told at once must not take this for the program's own status: `not` would. */
    if (command->server)
        die_of(SIGKILL);
    leave(error == -ENOENT ? 127 : 126);
}

/* A file without a head that the kernel knows is a script of /bin/sh for execvp(3), and so for make, env and ccache. With --server, a tool
 * has called exec itself, which fails for such a file. */
static long run_as_script(struct command *command)
{
    /* What precedes the command's words on the stack is not needed any more. */
    char **argv = command->argv - 1;
    argv[0] = (char *)"/bin/sh";
    argv[1] = (char *)command->program;
    sys(__NR_execve, argv[0], argv, command->envp);
    return -ENOEXEC;
}

void run_cold(struct command *command, const char *why)
{
    uint64_t mask = command->mask;
    if (command->explain) {
        const char *parts[] = {"'", command->program, "' cold: ", why, NULL};
        say(parts);
    }
    /* What came for the command meanwhile. */
    for (int number = 1; number <= 64; number++)
        if (command->taken >> (number - 1) & 1)
            sys(__NR_kill, sys(__NR_getpid), number);
    sys(__NR_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
    long error = sys(__NR_execve, command->program, command->argv, command->envp);
    fail(command, error == -ENOEXEC && !command->server ? run_as_script(command) : error);
}

/* Fills in what to run; returns whether it was called by its own name. */
static int read_line(struct command *command, char **argv)
{
    const char *name = argv[0] ? text_last_part(argv[0]) : "hotstart-exec";
    if (!text_begins(name, "hotstart")) {
        command->argv = argv;
        return 0;
    }
    if (*argv)
        argv++;
    if (*argv && text_begins(*argv, "--hotstart=")) {
        command->hotstart = *argv + text_length("--hotstart=");
        argv++;
    }
    /* From a batch of commands, which is stopped as a whole. */
    if (*argv && text_equal(*argv, "--end-all")) {
        command->ends_all = 1;
        argv++;
    }
    /* From runtime/extra/nested.c: which server, and the program, whose name may be another. */
    if (*argv && text_begins(*argv, "--server=") && argv[1] && text_begins(argv[1], "--as=") && argv[2]) {
        command->server = *argv + text_length("--server=");
        command->program = argv[1] + text_length("--as=");
        command->argv = argv + 2;
        return 1;
    }
    int ended = *argv && text_equal(*argv, "--");
    argv += ended;
    if (!*argv || (!ended && **argv == '-')) {
        int asked = *argv && text_equal(*argv, "--help");
        sys(__NR_write, asked ? 1 : 2, usage, sizeof usage - 1);
        leave(asked ? 0 : 2);
    }
    command->argv = argv;
    return 1;
}

static __attribute__((noreturn)) void run(int argc, char **argv)
{
    static struct found found;
    static struct message message;
    static struct server server;
    struct command command = {.envp = argv + argc + 1};
    int as_itself = read_line(&command, argv);
    const char *name = command.argv[0];
    if (!command.program)
        command.program = as_itself ? name : text_last_part(name);
    if (!as_itself)
        take_after(&command, 0);
    long error = find_program(command.program, &command, as_itself, &found);
    if (error)
        fail(&command, error);
    command.program = found.path;
    if (as_itself)
        take_after(&command, 1);
    else
        command.argv[0] = found.path;
    if (found.may_be_wrapper)
        give_after(&command);
    sys(__NR_rt_sigprocmask, SIG_BLOCK, NULL, &command.mask, sizeof command.mask);
    const char *setting = text_variable(command.envp, "HOTSTART_EXEC");
    if (setting && text_equal(setting, "cold"))
        run_cold(&command, "the environment says so");
    command.explain = setting && text_equal(setting, "explain");
    const char *why = describe(&message, &command);
    if (why)
        run_cold(&command, why);
    connect_server(&server, &command);
    if (server.socket < 0)
        run_cold(&command, server.why);
    run_warm(&server, &message, &command);
}

__attribute__((noreturn, used)) void client_start(long *stack)
{
    run((int)*stack, (char **)(stack + 1));
}

/* The kernel leaves argc, arguments and environment on the stack. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp,%ebp\n\tmov %rsp,%rdi\n\tand $-16,%rsp\n\tcall client_start\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29,#0\n\tmov x30,#0\n\tmov x0,sp\n\tbl client_start\n");
#endif
