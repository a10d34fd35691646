/* A tool that builds a table before it looks at its arguments, tells what it is as a process, and waits until its input ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned table[64 * 1024];
static unsigned runs;

int main(int argc, char **argv)
{
    char byte;
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        table[i] = i * 2654435761u;
    runs++;
    unsigned sum = 0;
    for (int i = 1; i < argc; i++)
        for (const char *at = argv[i]; *at; at++)
            sum = sum * 31 + table[(unsigned char)*at * 97 % 65536]++;
    pthread_mutexattr_t kind;
    pthread_mutex_t robust;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &kind);
    const int locked = pthread_mutex_lock(&robust), unlocked = pthread_mutex_unlock(&robust);
    printf("%u %u %d %d %d %d\n", runs, sum, clock() < CLOCKS_PER_SEC, locked, unlocked, getpgrp() != getsid(0));
    fflush(stdout);
    while (argc > 1 && strcmp(argv[1], "wait") == 0 && read(0, &byte, 1) == 1)
        ;
    puts(GREETING);
    return (int)(sum % 7);
}
