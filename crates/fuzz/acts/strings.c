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
