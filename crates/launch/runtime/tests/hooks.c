/* A program whose constructor hooks its calls of getppid, as a profiler does, and which counts what its heap has. With -DLIBRARY, a library
 * of its, which has a call of a function that nobody defines. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef LIBRARY
void nobody_has_this(void);
void may_call(int calls);

void may_call(int calls)
{
    if (calls)
        nobody_has_this();
}
#else
void may_call(int calls);

static int calls;
static pid_t (*next)(void);
static void **slot;

static pid_t hook(void)
{
    calls++;
    return 1;
}

__attribute__((constructor)) static void look(void)
{
    const ElfW(Rela) *slots = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    size_t size = 0;
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_JMPREL)
            slots = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_PLTRELSZ)
            size = entry->d_un.d_val;
        if (entry->d_tag == DT_SYMTAB)
            symbols = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB)
            names = (const char *)entry->d_un.d_ptr;
    }
    for (size_t i = 0; i < size / sizeof *slots; i++)
        if (strcmp(names + symbols[ELF64_R_SYM(slots[i].r_info)].st_name, "getppid") == 0)
            slot = (void **)(_r_debug.r_map->l_addr + slots[i].r_offset);
    if (!slot)
        return;
    next = (pid_t(*)(void))*slot;
    *slot = (void *)hook;
}

int main(int argc, char **argv)
{
    const size_t used = mallinfo2().uordblks;
    getppid();
    if (argc > 1 && strcmp(argv[1], "unhook") == 0)
        *slot = (void *)next;
    getppid();
    may_call(argc > 2);
    printf("hooked %d, calls %d, heap %zu\n", slot != NULL, calls, used);
    return 0;
}
#endif
