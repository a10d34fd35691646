/* Finds functions that the runtime imports from libc and ld.so, and gets from somebody else; and names that it takes away from somebody
 * else than libc.
 *
 * A symbol is looked up in the executable first, then in what is preloaded. A tool that has a memcpy, a strlen or an sbrk of its own would
 * have the runtime call it, before main and between runs: what that function counts, logs or does wrong then differs from a fresh process.
 * No list of names is needed: the loader has written each address into the runtime's own tables.
 *
 * The runtime itself stands before the tool's libraries. A function of theirs, or a variable, that has the name of one of libc's is
 * therefore looked for behind each name that the runtime defines.
 *
 * Nothing here calls a function before it is known to be libc's.
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

/* The directory of the loader's file, with the slash behind it. A file of libc's lies there; another file may have such a name. */
static char home[4096];

static size_t home_size(const char *path)
{
    size_t size = 0;
    for (size_t i = 0; path[i]; i++)
        if (path[i] == '/')
            size = i + 1;
    return size;
}

/* Once: whoever asks may go through the list of mappings just then. */
static void find_home(void)
{
    static int is_sought;
    struct hs_mapping now;
    const char *const list = is_sought ? NULL : hs_maps_read();
    is_sought = 1;
    for (const char *at = list; at && (at = hs_maps_next(at, &now));)
        if (_r_debug.r_ldbase >= now.from && _r_debug.r_ldbase < now.to) {
            const size_t size = home_size(now.path);
            for (size_t i = 0; i < size && size < sizeof home; i++)
                home[i] = now.path[i];
        }
}

/* Until glibc 2.33 there were more files of it. hs_imports_prepare comes first. */
int hs_imports_is_libcs(const char *path)
{
    static const char *const names[] = {"libc.so.",      "libc-2.",   "ld-linux", "ld-2.",     "libpthread.so.",
                                        "libpthread-2.", "libdl.so.", "libdl-2.", "librt.so.", "librt-2."};
    const size_t size = home_size(path);
    if (!*home || !begins(path, home) || home[size])
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins(path + size, names[i]))
            return 1;
    return 0;
}

static size_t find_texts(void)
{
    struct hs_mapping now;
    size_t count = 0;
    find_home();
    for (const char *at = hs_maps_read(); at && (at = hs_maps_next(at, &now));)
        if (now.access[2] == 'x' && hs_imports_is_libcs(now.path) && count < TEXTS_MAX) {
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

static size_t text_count;

/* Finds libc and the loader, for the two questions. */
void hs_imports_prepare(void)
{
    text_count = find_texts();
}

/* Whether an address lies in the text of libc or the loader. */
int hs_imports_have(uintptr_t place)
{
    return is_in(text_count, place);
}

/* Whether the executable itself asks for libc. The runtime does, too: where nobody else comes before the executable's libraries, libc would
 * come before theirs because of that. */
int hs_imports_keep_order(void)
{
    const struct link_map *const program = _r_debug.r_map;
    const char *names = NULL;
    for (const ElfW(Dyn) *entry = program ? program->l_ld : NULL; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            names = (const char *)(entry->d_un.d_ptr < program->l_addr ? program->l_addr + entry->d_un.d_ptr : entry->d_un.d_ptr);
    for (const ElfW(Dyn) *entry = names ? program->l_ld : NULL; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED && begins(names + entry->d_un.d_val, "libc.so."))
            return 1;
    return 0;
}

/* What an object's symbols are found by. The loader has made addresses of offsets, where it could write. */
struct symbols {
    const ElfW(Sym) *all;
    const char *names;
    const uint32_t *table; /* buckets, the first symbol that can be found, words of a filter, its shift; the filter; buckets; chains */
};

static int find_symbols(struct symbols *out, const ElfW(Dyn) *entry, uintptr_t base)
{
    *out = (struct symbols){NULL, NULL, NULL};
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const uintptr_t value = entry->d_un.d_ptr, place = value < base ? base + value : value;
        switch (entry->d_tag) {
        case DT_SYMTAB: out->all = (const ElfW(Sym) *)place; break;
        case DT_STRTAB: out->names = (const char *)place; break;
        case DT_GNU_HASH: out->table = (const uint32_t *)place; break;
        }
    }
    return out->all && out->names && out->table;
}

static const uint32_t *buckets_of(const uint32_t *table)
{
    return table + 4 + (size_t)table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
}

static int equal(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* Where an object defines this name; 0 if it does not. */
static uintptr_t definition(const struct symbols *symbols, uintptr_t base, const char *name)
{
    uint32_t hash = 5381;
    for (const char *at = name; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    const uint32_t *const buckets = buckets_of(symbols->table), *const chains = buckets + symbols->table[0];
    uint32_t at = symbols->table[0] ? buckets[hash % symbols->table[0]] : 0;
    for (; at >= symbols->table[1]; at++) {
        const ElfW(Sym) *const symbol = &symbols->all[at];
        const uint32_t chain = chains[at - symbols->table[1]];
        if ((chain | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF && equal(symbols->names + symbol->st_name, name))
            return base + symbol->st_value;
        if (chain & 1)
            return 0;
    }
    return 0;
}

/* Whether each definition of this name behind the runtime is a function of libc's. (dlsym would leave its error on the heap.) Of a library
 * without the table by which names are found (--hash-style=sysv) nobody knows. */
static int hides_libcs_only(const struct link_map *own, const char *name, size_t count)
{
    for (const struct link_map *map = own->l_next; map; map = map->l_next) {
        struct symbols symbols;
        if (begins(map->l_name, "linux-vdso"))
            continue;
        if (!find_symbols(&symbols, map->l_ld, map->l_addr))
            return 0;
        const uintptr_t found = definition(&symbols, map->l_addr, name);
        if (found && !is_in(count, found))
            return 0;
    }
    return 1;
}

/* Whether what each name of the runtime's hides is a function of libc's, if anything. */
int hs_exports_hide_libcs(void)
{
    extern const char __ehdr_start[] HS_HIDDEN;
    const uintptr_t base = (uintptr_t)__ehdr_start;
    const struct link_map *own = _r_debug.r_map;
    struct symbols symbols;
    const size_t count = find_texts();
    while (own && own->l_addr != base)
        own = own->l_next;
    if (!own || !find_symbols(&symbols, _DYNAMIC, base))
        return 0;
    const uint32_t *const buckets = buckets_of(symbols.table), *const chains = buckets + symbols.table[0];
    for (uint32_t i = 0; i < symbols.table[0]; i++)
        for (uint32_t at = buckets[i]; at >= symbols.table[1]; at++) {
            if (!hides_libcs_only(own, symbols.names + symbols.all[at].st_name, count))
                return 0;
            if (chains[at - symbols.table[1]] & 1)
                break;
        }
    return 1;
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
            const uintptr_t found = *(const uintptr_t *)(base + entry->r_offset);
            /* Nobody has it, and nobody calls it: on aarch64 __gmon_start__ is in the second table. */
            if (!found && ELF64_ST_BIND(symbols[at].st_info) == STB_WEAK)
                continue;
            if (at && symbols[at].st_shndx == SHN_UNDEF && is_function && !is_in(count, found))
                return 0;
        }
    return 1;
}
