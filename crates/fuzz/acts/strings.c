/* Arguments and environment lie side by side, with the program's name behind them, at the end of the stack. */
#include "act.h"
#include <sys/auxv.h>

#define FAMILY "strings"

extern char **environ;
extern char **own_argv;

/* Behind the last string, but for the program's name. */
static char *end_of_strings(void)
{
    char **last = environ;
    if (!*last)
        return NULL;
    while (last[1])
        last++;
    return *last + strlen(*last) + 1;
}

OBSERVE(strings_joined)
{
    int joined = 0, apart = 0;
    for (char **argument = own_argv; *argument; argument++) {
        const char *next = argument[1] ? argument[1] : environ[0];
        *(*argument + strlen(*argument) + 1 == next ? &joined : &apart) += 1;
    }
    SAY2("joined %ld apart %ld", joined, apart);
}

OBSERVE(strings_end)
{
    const char *name = end_of_strings(), *known = (const char *)getauxval(AT_EXECFN);
    if (!name || strcmp(name, known) != 0)
        return say("no name");
    const char *end = name + strlen(name) + 1;
    SAY3("zero %ld, at the end of a page %ld, behind it %ld", end[0] == 0 && memcmp(end, end + 1, 7) == 0,
         ((uintptr_t)end + 8) % 4096 == 0, probe_read(end + 8) != 0);
}

OBSERVE(strings_before)
{
    say("%d", own_argv[0][-1]);
}

OBSERVE(strings_of_all)
{
    unsigned sum = 0;
    const char *end = end_of_strings();
    for (const char *at = own_argv[0]; end && at < end; at++)
        sum = sum * 31 + (unsigned char)*at;
    say("%u", sum);
}

DISTURB(strings_overwrite)
{
    for (char **argument = own_argv + 1; *argument; argument++)
        (*argument)[strlen(*argument)] = 'z';
}

DISTURB(strings_overwrite_before)
{
    memset(own_argv[0] - 16, 'z', 16);
}

/* The end of the stack is at most so far from main's arrays, with requests of usual size. */
#define NEAR (32 * 1024)

static const uintptr_t *vector(void)
{
    char **end = environ;
    while (*end)
        end++;
    return (const uintptr_t *)(end + 1);
}

/* Arrays, auxiliary vector, strings, the program's path, and the end of the stack follow each other. */
OBSERVE(stack_above)
{
    char local;
    const uintptr_t *word = vector();
    while (*word)
        word += 2;
    const char *path = (const char *)getauxval(AT_EXECFN), *end = end_of_strings();
    SAY3("frame %ld, vector %ld, strings %ld", (char *)own_argv > &local && (char *)own_argv - &local < NEAR, (char *)word < own_argv[0],
         own_argv[0] - (char *)word < NEAR && end == path);
}

/* A fresh process has a fault some kilobytes above. */
OBSERVE(stack_above_end)
{
    const char *end = (const char *)getauxval(AT_EXECFN);
    end += strlen(end) + 1 + 8;
    SAY2("near %ld, behind it %ld", end - (char *)own_argv < 2 * NEAR, probe_read(end) != 0);
}

/* What lies there besides, until the first string: mostly zeros. */
OBSERVE(stack_above_zero)
{
    const uintptr_t *word = vector();
    while (*word)
        word += 2;
    size_t others = 0;
    for (const char *at = (const char *)(word + 2); at < own_argv[0]; at++)
        others += *at != 0;
    /* The random bytes, the platform's name; and another vector of less than 64 pairs. */
    say("few %d", others < 1024);
}

DISTURB(stack_above_write)
{
    for (char *at = (char *)vector(); at < own_argv[0]; at++)
        *at = 'y';
}
