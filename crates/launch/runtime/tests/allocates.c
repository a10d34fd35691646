/* Tells which allocator it has, what it sees of it, and which one a child has: "allocates [child]". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(const char *who)
{
    int (*owns)(const void *) = (int (*)(const void *))dlsym(RTLD_DEFAULT, "hs_test_owns");
    const char *preload = getenv("LD_PRELOAD");
    char *own = malloc(40), *of_libc = strdup(who);
    if (!own || !of_libc)
        exit(3);
    own = realloc(own, 4000);
    printf("%s: allocator %s, LD_PRELOAD %s\n", who, !owns ? "system" : owns(own) && owns(of_libc) ? "chosen" : "mixed",
           preload ? preload : "unset");
    free(own);
    free(of_libc);
}

int main(int argc, char **argv)
{
    tell(argv[0]);
    for (int i = 0; i < 3000; i++) {
        char *block = malloc(1000 + (size_t)i);
        if (!block)
            return 3;
        memset(block, i, 1000);
        if (i % 3 == 0)
            free(block);
    }
    if (argc > 1) {
        fflush(stdout);
        if (fork() == 0) {
            execl("/proc/self/exe", "child", (char *)NULL);
            _exit(4);
        }
        wait(NULL);
    }
    return 0;
}
