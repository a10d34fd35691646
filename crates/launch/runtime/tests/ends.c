/* A program and its libraries, which say what they do at the process's end, in that order. Built with -DNAME="x" it is a
 * library. What it registers for that it is told by main, in JOIN, and by -DBEGIN="words" what in its constructor.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef NAME

extern void *__dso_handle;
int __cxa_atexit(void (*function)(void *), void *argument, void *library);

static int forks, quits;

static void say(const char *what)
{
    char line[64];
    int size = snprintf(line, sizeof line, "%s: %s\n", NAME, what);
    if (write(1, line, (size_t)size) != size)
        abort();
}

static void at_end(void)
{
    say("registered function");
}

static void at_end_of_object(void *object)
{
    (void)object;
    say("destructor");
}

static void at_numbered_end(void *number)
{
    char line[32];
    snprintf(line, sizeof line, "destructor %d", (int)(intptr_t)number);
    say(line);
}

/* libc tells it the status too, but only from exit. */
static void at_end_with_status(void *object, int status)
{
    (void)object;
    say(status == 5 ? "status 5" : "status 0");
}

static void at_end_that_registers(void *object)
{
    say("destructor registers");
    __cxa_atexit(at_end_of_object, object, &__dso_handle);
    atexit(at_end);
}

static void at_end_that_exits(void *object)
{
    (void)object;
    say("destructor exits");
    exit(7);
}

static void at_end_that_forks(void *object)
{
    (void)object;
    say("destructor forks");
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
}

static void at_quick_end(void)
{
    say("function for quick_exit");
}

static void before_fork(void)
{
    say("fork");
}

static void *registers(void *object)
{
    __cxa_atexit(at_end_of_object, object, &__dso_handle);
    return NULL;
}

/* By libc's own function, whatever else has its name. */
static void registers_unseen(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    int (*add)(void (*)(void *), void *, void *) =
        (int (*)(void (*)(void *), void *, void *))dlsym(libc, "__cxa_atexit");
    add((void (*)(void *))(void (*)(void))at_end, NULL, &__dso_handle);
}

static void wants(const char *what)
{
    /* Handles that no library's end asks for. */
    static int stranger, other_stranger;
    pthread_t thread;
    if (strcmp(what, "atexit") == 0)
        atexit(at_end);
    if (strcmp(what, "object") == 0)
        registers(NULL);
    const int count = strcmp(what, "many") == 0 ? 70 : strcmp(what, "some") == 0 ? 25 : 0;
    for (int i = 0; i < count; i++)
        __cxa_atexit(at_numbered_end, (void *)(intptr_t)i, &__dso_handle);
    if (strcmp(what, "stranger") == 0)
        __cxa_atexit(at_numbered_end, (void *)1001, &stranger);
    if (strcmp(what, "other_stranger") == 0)
        __cxa_atexit(at_end_that_registers, NULL, &other_stranger);
    if (strcmp(what, "nobody") == 0)
        __cxa_atexit(at_numbered_end, (void *)1002, NULL);
    if (strcmp(what, "stranger_registers") == 0)
        __cxa_atexit(at_end_that_registers, NULL, &stranger);
    if (strcmp(what, "status") == 0)
        __cxa_atexit((void (*)(void *))at_end_with_status, NULL, &__dso_handle);
    if (strcmp(what, "stranger_status") == 0)
        __cxa_atexit((void (*)(void *))at_end_with_status, NULL, &stranger);
    if (strcmp(what, "registers") == 0)
        __cxa_atexit(at_end_that_registers, NULL, &__dso_handle);
    if (strcmp(what, "exits") == 0)
        __cxa_atexit(at_end_that_exits, NULL, &__dso_handle);
    if (strcmp(what, "destructor_forks") == 0)
        __cxa_atexit(at_end_that_forks, NULL, &__dso_handle);
    if (strcmp(what, "thread") == 0 && pthread_create(&thread, NULL, registers, NULL) == 0)
        pthread_join(thread, NULL);
    if (strcmp(what, "unseen") == 0)
        registers_unseen();
    if (strcmp(what, "quick") == 0)
        at_quick_exit(at_quick_end);
    if (strcmp(what, "atfork") == 0)
        pthread_atfork(before_fork, NULL, NULL);
    if (strcmp(what, "forks") == 0)
        forks = 1;
    if (strcmp(what, "quits") == 0)
        quits = 1;
}

/* Each library's is another one. */
__attribute__((visibility("default"))) void JOIN(const char *what)
{
    wants(what);
}

#ifdef BEGIN
__attribute__((constructor)) static void begin(void)
{
    char words[] = BEGIN;
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        wants(word);
}
#endif

__attribute__((destructor)) static void end(void)
{
    say("end");
    if (quits)
        quick_exit(4);
    if (!forks)
        return;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
}

#else

void first_wants(const char *what);
void second_wants(const char *what);

/* Pairs of a library and what it wants; `open` and a library that is opened and closed again; how to end. */
int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "first") == 0)
            first_wants(argv[i + 1]);
        if (strcmp(argv[i], "second") == 0)
            second_wants(argv[i + 1]);
        if (strcmp(argv[i], "open") == 0)
            dlclose(dlopen(argv[i + 1], RTLD_NOW));
        /* Where the next block lies in its page: what was allocated before decides it. */
        if (strcmp(argv[i], "heap") == 0)
            printf("heap %03x\n", (unsigned)((uintptr_t)malloc(24) & 0xfff));
        if (strcmp(argv[i], "quick_exit") == 0)
            quick_exit(3);
    }
    puts("main ends");
    return 5;
}

#endif
