/* A tool that has the function at which LLVM's tools parse their options, and does, before it calls that, one of the things
 * that make a snapshot there wrong, or none of them (EARLY). Built as a program, or as program and library (LIBRARY,
 * APART). It prints whatever the snapshot may have kept wrongly. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PARSE "_ZN4llvm2cl23ParseCommandLineOptionsEiPKPKcNS_9StringRefEPNS_11raw_ostreamES3_b"

int parse(int argc, const char *const *argv, const char *text, size_t length, void *out, const char *variable,
          int dashes) __asm__(PARSE);

#ifndef APART
int parse(int argc, const char *const *argv, const char *text, size_t length, void *out, const char *variable,
          int dashes)
{
    printf("parse %d %s %zu %d %s %d\n", argc, text, length, out != NULL, variable, dashes);
    for (int i = 0; i < argc; i++)
        printf("  %s\n", argv[i]);
    return argc;
}
#endif

#ifndef LIBRARY
#ifndef EARLY
#define EARLY 0
#endif
enum { NOTHING, UNSET, SET, ARGUMENT, NUMBER, FILES, DERIVED, OTHERS, WALKS, MAPS, SMALL_STACK, ODD, USAGE };

extern char **environ;
static int kept_argc, early_result;
static char *kept_block;
static const char *kept_text = "none";
static char handler_stack[16384];

static void handler(int signal)
{
    printf("signal %d\n", signal);
}

/* As a C++ program would: the first call of malloc asks for random bytes. */
__attribute__((constructor)) static void construct(void)
{
    void *volatile block = malloc(10);
    free(block);
}

static void before(int argc, char **argv)
{
    switch (EARLY) {
    case UNSET: kept_text = getenv("HS_EARLY"); break;
    case SET: kept_text = getenv("HS_ALWAYS"); break;
    case ARGUMENT: early_result = argc > 1 ? argv[1][0] : 0; break;
    case NUMBER: early_result = getpid() > 0; break;
    case FILES: early_result = access("/", R_OK); break;
    case DERIVED: early_result = argc * 2; break;
    case ODD: early_result = argc & 1; break;
    case USAGE:
        if (argc == 1)
            exit(3);
        break;
    case WALKS:
        for (char **variable = environ; *variable; variable++)
            early_result += strncmp(*variable, "HS_EARLY=", 9) == 0;
        break;
    case SMALL_STACK: early_result = sigaltstack(&(stack_t){.ss_sp = handler_stack, .ss_size = 64}, NULL); break;
    case MAPS: kept_text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); break;
    }
}

int main(int argc, char **argv)
{
    const stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    volatile int number = argc;
    struct sigaction action;
    int skipped = EARLY == OTHERS;
    kept_argc = argc;
    kept_block = malloc(100000);
    memset(kept_block, 'b', 100000);
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_ONSTACK}, NULL);
    sigaction(SIGSYS, &(struct sigaction){.sa_handler = handler}, NULL);
    sigaction(SIGSEGV, NULL, &action);
    before(argc, argv);
    int parsed = parse(argc - skipped, (const char *const *)argv + skipped, "tool", 4, NULL, "OPTIONS", 0);
    printf("%d %d %d %d %d %s\n", argc, number, kept_argc, parsed, early_result, kept_text ? kept_text : "unset");
    for (char **variable = environ; *variable; variable++)
        puts(*variable);
    printf("block %c %c %d\n", kept_block[0], kept_block[99999], action.sa_handler == SIG_DFL);
    raise(SIGUSR1);
    sigaction(SIGSYS, NULL, &action);
    printf("handler %d\n", action.sa_handler == handler);
    stack_t old;
    sigaltstack(NULL, &old);
    printf("stack %d %zu %d\n", old.ss_sp == stack.ss_sp, old.ss_size, old.ss_flags);
    /* What the next run must not see. */
    number = kept_argc = -1;
    memset(kept_block, 'x', 100000);
    kept_text = "late";
    early_result = 77;
    signal(SIGUSR1, SIG_IGN);
    free(kept_block);
    kept_block = malloc(900000);
    memset(kept_block, 'y', 900000);
    return argc;
}
#endif
