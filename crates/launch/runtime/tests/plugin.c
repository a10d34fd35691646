/* A program that opens a library in main, and, with -DPLUGIN, that library: its constructor keeps what it is called with. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#ifdef PLUGIN
int plugin_count;
char *plugin_last, **plugin_list;
__attribute__((constructor)) static void keep(int argc, char **argv, char **envp)
{
    (void)envp;
    plugin_count = argc;
    plugin_list = argv;
    plugin_last = argv[argc - 1];
}
#else
extern void *__libc_stack_end;

int main(int argc, char **argv)
{
    void *library = dlopen(PLUGIN_PATH, RTLD_NOW);
    if (!library)
        return 1;
    int count = *(int *)dlsym(library, "plugin_count");
    char *last = *(char **)dlsym(library, "plugin_last"), **list = *(char ***)dlsym(library, "plugin_list");
    printf("%d %d %s %d %ld\n", argc, count, last, list == argv, *(long *)__libc_stack_end);
    return 0;
}
#endif
