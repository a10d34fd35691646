/* The loader's and libc's own records of main's arguments.
 *
 * ld.so calls the constructors of a library that is opened later (dlopen) with the number of arguments and the list that it, or libc,
 * was given. In a zygote those are placeholders, so each start has its own written there. glibc keeps these words to itself. Both files
 * have the list beside the number, once. Where that is not so, a run that opens a library is doubtful (calls.c).
 *
 * The loader has made its own words read-only. They are writable only while they are written.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "runtime.h"

#define PAGE 4096

struct record {
    char ***argv;
    int *argc;
};

enum { LOADER, LIBC, FILES };

/* How far behind the list the number lies. */
static const intptr_t behind[FILES] = {[LOADER] = sizeof(char **), [LIBC] = HS_LIBC_NUMBER};

/* While `is_known`, each record was found once in its file, and is as main was called last. Otherwise nothing is written there. */
static struct {
    struct record records[FILES];
    int is_known;
} loader;

/* While the data of both files is searched. */
struct search {
    const struct hs_start *start;
    /* A place within each file. */
    uintptr_t inside[FILES];
    unsigned found[FILES];
};

static int is_inside(const struct dl_phdr_info *info, uintptr_t place)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && place >= from && place < from + info->dlpi_phdr[i].p_memsz)
            return 1;
    }
    return 0;
}

static void search_in(struct search *search, int file, uintptr_t from, uintptr_t to)
{
    const uintptr_t first = (from + 7) & ~(uintptr_t)7;
    for (uintptr_t at = first; at + sizeof(char **) <= to; at += sizeof(char **)) {
        const uintptr_t number = at + (uintptr_t)behind[file];
        if (*(char ***)at != search->start->argv || number < first || number + sizeof(char **) > to)
            continue;
        if (*(int *)number != search->start->argc)
            continue;
        loader.records[file] = (struct record){(char ***)at, (int *)number};
        search->found[file]++;
    }
}

static int search_file(struct dl_phdr_info *info, size_t size, void *data)
{
    struct search *search = data;
    (void)size;
    for (int file = 0; file < FILES; file++) {
        if (!is_inside(info, search->inside[file]))
            continue;
        for (int i = 0; i < info->dlpi_phnum; i++) {
            const ElfW(Phdr) *part = &info->dlpi_phdr[i];
            const uintptr_t from = info->dlpi_addr + part->p_vaddr;
            if (part->p_type == PT_LOAD && part->p_flags & PF_W)
                search_in(search, file, from, from + part->p_memsz);
        }
    }
    return 0;
}

/* That of the loader, where the number lies behind the list. */
static int protect(const struct record *record, int access)
{
    const uintptr_t from = (uintptr_t)record->argv & -(uintptr_t)PAGE;
    const uintptr_t to = ((uintptr_t)(record->argc + 1) + PAGE - 1) & -(uintptr_t)PAGE;
    return (int)HS_SYS(SYS_mprotect, from, to - from, access);
}

/* In a zygote, when its constructors are done. */
void hs_loader_find(const struct hs_start *start)
{
    struct search search = {.start = start};
    search.inside[LOADER] = (uintptr_t)dlsym(RTLD_DEFAULT, "_dl_argv");
    search.inside[LIBC] = (uintptr_t)dlsym(RTLD_NEXT, "__libc_start_main");
    if (!search.inside[LOADER] || !search.inside[LIBC])
        return;
    dl_iterate_phdr(search_file, &search);
    loader.is_known = search.found[LOADER] == 1 && search.found[LIBC] == 1;
}

/* Whether libraries that are opened now are given the arguments of the start. */
int hs_loader_is_known(void)
{
    return loader.is_known;
}

/* What lies behind the number is another's. */
static void write_record(const struct record *record, const struct hs_call *call)
{
    *record->argv = call->argv;
    *record->argc = call->argc;
}

/* Tells them what main is given. If the loader's record cannot be written, it is as if it were not known. */
void hs_loader_tell(const struct hs_call *call)
{
    const struct record *own = &loader.records[LOADER];
    if (!loader.is_known)
        return;
    write_record(&loader.records[LIBC], call);
    if (*own->argv == call->argv && *own->argc == call->argc)
        return;
    if (protect(own, PROT_READ | PROT_WRITE) != 0) {
        loader.is_known = 0;
        return;
    }
    write_record(own, call);
    protect(own, PROT_READ);
}
