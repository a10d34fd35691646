/* A program and its libraries, which say what they do at the process's end, in that order. Built with -DNAME="x" it is a
 * library. What it registers for that it is told by main, in JOIN, if its constructor does not (-DEARLY, -DUNSEEN).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
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

static void at_quick_end(void)
{
    say("function for quick_exit");
}

static void before_fork(void)
{
    say("fork");
}

static void wants(const char *what)
{
    if (strcmp(what, "atexit") == 0)
        atexit(at_end);
    if (strcmp(what, "object") == 0)
        __cxa_atexit(at_end_of_object, NULL, &__dso_handle);
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

#ifdef EARLY
__attribute__((constructor)) static void begin(void)
{
    wants("atexit");
}
#endif

#ifdef UNSEEN
/* By libc's own function, whatever else has its name. */
__attribute__((constructor)) static void begin(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    int (*add)(void (*)(void *), void *, void *) =
        (int (*)(void (*)(void *), void *, void *))dlsym(libc, "__cxa_atexit");
    add((void (*)(void *))(void (*)(void))at_end, NULL, &__dso_handle);
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
        if (strcmp(argv[i], "quick_exit") == 0)
            quick_exit(3);
    }
    puts("main ends");
    return 5;
}

#endif
