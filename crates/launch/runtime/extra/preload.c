/* Takes an allocator out of LD_PRELOAD before anything else in the process can read its environment.
 *
 * A tool with a chosen allocator is started cold with LD_PRELOAD=THIS:ALLOCATOR[:THE USER'S OWN]. ld.so has loaded both libraries when
 * this code runs. Only the user's own setting stays, if there is one. So neither the tool nor its children can see a difference, and a
 * fork of a zygote, which never sees the variable, is the same. The linker flag -z initfirst has it initialised first.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

static const char NAME[] = "LD_PRELOAD=";

/* The text behind our own entry and the allocator's, which may be empty; NULL if the value is not ours. */
static char *users(char *value, const char *own)
{
    const size_t length = strlen(own);
    if (strncmp(value, own, length) != 0 || value[length] != ':')
        return NULL;
    char *end = strchr(value + length + 1, ':');
    return end ? end + 1 : value + strlen(value);
}

__attribute__((constructor)) static void scrub(int argc, char **argv, char **envp)
{
    Dl_info info;
    (void)argc;
    (void)argv;
    if (!dladdr(NAME, &info))
        return;
    for (char **at = envp; *at; at++) {
        if (strncmp(*at, NAME, sizeof NAME - 1) != 0)
            continue;
        char *value = *at + sizeof NAME - 1, *rest = users(value, info.dli_fname);
        if (!rest)
            continue;
        if (rest[-1] == ':') {
            memmove(value, rest, strlen(rest) + 1);
            return;
        }
        do
            at[0] = at[1];
        while (*at++);
        return;
    }
}
