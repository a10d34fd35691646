/* Finds functions that the runtime imports from libc and ld.so, and gets from somebody else.
 *
 * A symbol is looked up in the executable first, then in what is preloaded. A tool that has a memcpy, a strlen or an sbrk of its own would
 * have the runtime call it, before main and between runs: what that function counts, logs or does wrong then differs from a fresh process.
 * No list of names is needed: the loader has written each address into the runtime's own tables.
 *
 * Nothing here calls such a function.
 */
#include <link.h>

#include "runtime.h"

/* Text of libc and of the loader; either has one such mapping, or a few where parts of it have been writable. */
#define TEXTS_MAX 512

static struct {
    uintptr_t from, to;
} texts[TEXTS_MAX];

static int begins(const char *text, const char *with)
{
    while (*with && *text == *with)
        text++, with++;
    return !*with;
}

/* Until glibc 2.33 there were more files of it. */
static int is_of_libc(const char *path)
{
    static const char *const names[] = {"libc.so.", "libc-2.", "ld-linux", "ld-2.", "libpthread", "libdl.so.", "libdl-2."};
    const char *name = path;
    for (; *path; path++)
        if (*path == '/')
            name = path + 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins(name, names[i]))
            return 1;
    return 0;
}

static size_t find_texts(void)
{
    struct hs_mapping now;
    size_t count = 0;
    for (const char *at = hs_maps_read(); at && (at = hs_maps_next(at, &now));)
        if (now.access[2] == 'x' && is_of_libc(now.path) && count < TEXTS_MAX) {
            texts[count].from = now.from;
            texts[count++].to = now.to;
        }
    return count;
}

static int is_in(size_t count, uintptr_t place)
{
    for (size_t i = 0; i < count; i++)
        if (place >= texts[i].from && place < texts[i].to)
            return 1;
    return 0;
}

int hs_imports_are_libcs(void)
{
    extern const char __ehdr_start[] HS_HIDDEN;
    const uintptr_t base = (uintptr_t)__ehdr_start;
    const ElfW(Sym) *symbols = NULL;
    const ElfW(Rela) *parts[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    const size_t count = find_texts();
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
        const uintptr_t value = entry->d_un.d_ptr, place = value < base ? base + value : value;
        switch (entry->d_tag) {
        case DT_SYMTAB: symbols = (const ElfW(Sym) *)place; break;
        case DT_RELA: parts[0] = (const ElfW(Rela) *)place; break;
        case DT_RELASZ: sizes[0] = entry->d_un.d_val; break;
        case DT_JMPREL: parts[1] = (const ElfW(Rela) *)place; break;
        case DT_PLTRELSZ: sizes[1] = entry->d_un.d_val; break;
        }
    }
    if (!symbols)
        return 0;
    for (int part = 0; part < 2; part++)
        for (size_t i = 0; parts[part] && i < sizes[part] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Rela) *entry = &parts[part][i];
            const size_t at = ELF64_R_SYM(entry->r_info);
            /* The second table is of functions only, whatever the linker knew. */
            const int is_function = part == 1 || ELF64_ST_TYPE(symbols[at].st_info) == STT_FUNC;
            if (at && symbols[at].st_shndx == SHN_UNDEF && is_function && !is_in(count, *(const uintptr_t *)(base + entry->r_offset)))
                return 0;
        }
    return 1;
}
