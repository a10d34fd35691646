/* Binds the functions that ld.so would bind at their first call, so that no fork has to.
 *
 * LD_BIND_NOW would do so, too, but would stay in force for libraries opened later. There it turns an undefined function that is never
 * called into an error. A slot is bound here only if ld.so can give no other answer: the object does not search itself first, and the
 * symbol has a version or its definer has none. All other slots stay lazy. So does a slot whose answer lies in the program itself: that
 * may be the program's own jump to a function whose address it takes, which ld.so does not use for calls. And so does one whose
 * definition is chosen by a function of the library's own (IFUNC): that runs at the first call, and may look at anything. libc's and
 * libm's look at the processor only.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

#include "runtime.h"

struct object {
    ElfW(Addr) base;
    const ElfW(Rela) *slots;
    size_t slot_count;
    const ElfW(Sym) *symbols;
    const char *strings;
    const ElfW(Half) *versions;
    const ElfW(Verneed) *needed;
    size_t needed_count;
    int skip;
};

static void read_dynamic(const struct link_map *map, struct object *out)
{
    *out = (struct object){.base = map->l_addr};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_JMPREL: out->slots = (const void *)entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: out->slot_count = entry->d_un.d_val / sizeof *out->slots; break;
        case DT_SYMTAB: out->symbols = (const void *)entry->d_un.d_ptr; break;
        case DT_STRTAB: out->strings = (const void *)entry->d_un.d_ptr; break;
        case DT_VERSYM: out->versions = (const void *)entry->d_un.d_ptr; break;
        /* ld.so leaves this one as it is in the file. */
        case DT_VERNEED: out->needed = (const void *)(map->l_addr + entry->d_un.d_ptr); break;
        case DT_VERNEEDNUM: out->needed_count = entry->d_un.d_val; break;
        case DT_SYMBOLIC:
        case DT_BIND_NOW: out->skip = 1; break;
        case DT_PLTREL: out->skip |= entry->d_un.d_val != DT_RELA; break;
        case DT_FLAGS: out->skip |= (entry->d_un.d_val & (DF_SYMBOLIC | DF_BIND_NOW)) != 0; break;
        case DT_FLAGS_1: out->skip |= (entry->d_un.d_val & DF_1_NOW) != 0; break;
        }
    }
    /* ld.so turns these into addresses, except in objects whose dynamic section cannot be written (the vDSO). */
    out->skip |= !out->slots || !out->symbols || !out->strings || (ElfW(Addr))out->symbols < map->l_addr;
}

static const char *version_name(const struct object *object, ElfW(Half) index)
{
    const ElfW(Verneed) *file = object->needed;
    for (size_t i = 0; file && i < object->needed_count; i++) {
        const ElfW(Vernaux) *version = (const void *)((const char *)file + file->vn_aux);
        for (size_t j = 0; j < file->vn_cnt; j++) {
            if (version->vna_other == index)
                return object->strings + version->vna_name;
            version = (const void *)((const char *)version + version->vna_next);
        }
        file = (const void *)((const char *)file + file->vn_next);
    }
    return NULL;
}

#define LIBRARIES_MAX 512
#define LAZY_MAX 65536
#define CHOSEN_MAX 256
/* Filled by hs_bind_all, in the zygote. What has no room here only stays lazy: a library that is not listed counts as one without versions,
 * and once `chosen` is full every function counts as chosen. */
static struct {
    /* Where a library's symbols may be, and whether they have versions. dladdr goes through all symbols of a library for each that
     * is asked for, which took mlir-opt more than 20 seconds. */
    struct {
        ElfW(Addr) low, high;
        int knows_versions;
    } libraries[LIBRARIES_MAX];
    size_t library_count;
    /* Slots that were left as they are, for ld.so to bind at the first call. A worker keeps ld.so's answer, which
     * would be the same in each run. Each is in the list until it was bound. */
    void **lazy[LAZY_MAX];
    size_t lazy_count;
    /* Functions that libraries choose. */
    const char *chosen[CHOSEN_MAX];
    size_t chosen_count;
} known;

static int note_library(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    if (known.library_count == LIBRARIES_MAX)
        return 1;
    known.libraries[known.library_count].low = ~(ElfW(Addr))0;
    known.libraries[known.library_count].high = 0;
    known.libraries[known.library_count].knows_versions = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const ElfW(Addr) low = info->dlpi_addr + part->p_vaddr, high = low + part->p_memsz;
        if (part->p_type == PT_LOAD && low < known.libraries[known.library_count].low)
            known.libraries[known.library_count].low = low;
        if (part->p_type == PT_LOAD && high > known.libraries[known.library_count].high)
            known.libraries[known.library_count].high = high;
        for (const ElfW(Dyn) *entry = (const void *)low; part->p_type == PT_DYNAMIC && entry->d_tag != DT_NULL; entry++)
            known.libraries[known.library_count].knows_versions |= entry->d_tag == DT_VERSYM;
    }
    known.library_count++;
    return 0;
}

/* How many symbols the table has that a hash table of GNU's style finds: the last chain ends with the last symbol. */
static size_t symbols_of(const uint32_t *hash)
{
    const uint32_t buckets = hash[0], first = hash[1], words = hash[2];
    const uint32_t *const bucket = hash + 4 + words * (sizeof(ElfW(Addr)) / sizeof *hash), *const chain = bucket + buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; i++)
        last = bucket[i] > last ? bucket[i] : last;
    if (last < first)
        return first;
    while (!(chain[last - first] & 1))
        last++;
    return last + 1;
}

/* Whether a library is one of libc's, by the name that it gives itself. */
static int is_of_libc(const char *name)
{
    return name && (strcmp(name, "libc.so.6") == 0 || strcmp(name, "libm.so.6") == 0 || strncmp(name, "ld-linux", 8) == 0);
}

static void note_chosen(const struct link_map *map)
{
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const uint32_t *hash = NULL;
    ElfW(Addr) own = 0;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_SYMTAB: symbols = (const void *)entry->d_un.d_ptr; break;
        case DT_STRTAB: strings = (const void *)entry->d_un.d_ptr; break;
        case DT_GNU_HASH: hash = (const void *)entry->d_un.d_ptr; break;
        case DT_SONAME: own = entry->d_un.d_val; break;
        }
    }
    /* As in read_dynamic. */
    if (!symbols || !strings || (ElfW(Addr))symbols < map->l_addr)
        return;
    if (own && is_of_libc(strings + own))
        return;
    if (!hash)
        known.chosen_count = CHOSEN_MAX;
    for (size_t i = 0, count = hash ? symbols_of(hash) : 0; i < count && known.chosen_count < CHOSEN_MAX; i++)
        if (ELF64_ST_TYPE(symbols[i].st_info) == STT_GNU_IFUNC && symbols[i].st_shndx != SHN_UNDEF)
            known.chosen[known.chosen_count++] = strings + symbols[i].st_name;
}

/* Whether some library may choose this function; to look it up would have it chosen now. */
static int is_chosen(const char *name)
{
    if (known.chosen_count == CHOSEN_MAX)
        return 1;
    for (size_t i = 0; i < known.chosen_count; i++)
        if (strcmp(known.chosen[i], name) == 0)
            return 1;
    return 0;
}

static int knows_versions(const void *address)
{
    for (size_t i = 0; i < known.library_count; i++)
        if ((ElfW(Addr))address >= known.libraries[i].low && (ElfW(Addr))address < known.libraries[i].high)
            return known.libraries[i].knows_versions;
    return 1;
}

static int is_own(const void *address)
{
    extern const char __ehdr_start[] HS_HIDDEN, _end[] HS_HIDDEN;
    return (const char *)address >= __ehdr_start && (const char *)address < _end;
}

/* Whether an object that is searched earlier defines the function without a version, an allocator in place of libc's,
 * say: to ld.so that is the answer, while a lookup by version passes it by. */
static int is_shadowed(const char *name, const void *address)
{
    void *first = dlsym(RTLD_DEFAULT, name);
    if (is_own(first))
        first = dlsym(RTLD_NEXT, name);
    return first != address;
}

static void *find(const struct object *object, const ElfW(Rela) *slot)
{
    size_t index = ELF64_R_SYM(slot->r_info);
    const ElfW(Sym) *symbol = &object->symbols[index];
    const char *name = object->strings + symbol->st_name;
    if (ELF64_ST_BIND(symbol->st_info) == STB_WEAK || symbol->st_other & 3)
        return NULL;
    ElfW(Half) version = object->versions ? object->versions[index] & 0x7fff : 0;
    const char *wanted = version > 1 ? version_name(object, version) : NULL;
    if (version > 1 && !wanted)
        return NULL;
    void *address = wanted ? dlvsym(RTLD_DEFAULT, name, wanted) : dlsym(RTLD_DEFAULT, name);
    if (wanted)
        return address && !is_shadowed(name, address) ? address : NULL;
    return address && !knows_versions(address) ? address : NULL;
}

/* Calls `keep` for each slot that ld.so has bound since, and forgets it. `before` returns the former content of a slot. */
void hs_bind_learn(void *(*before)(void **place), void (*keep)(void **place))
{
    size_t left = 0;
    for (size_t i = 0; i < known.lazy_count; i++) {
        if (*known.lazy[i] != before(known.lazy[i]))
            keep(known.lazy[i]);
        else
            known.lazy[left++] = known.lazy[i];
    }
    known.lazy_count = left;
}

struct range {
    ElfW(Addr) low, high;
};

static struct range program_range(ElfW(Addr) base)
{
    const ElfW(Phdr) *header = (const void *)getauxval(AT_PHDR);
    struct range range = {~(ElfW(Addr))0, 0};
    for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++) {
        if (header[i].p_type != PT_LOAD)
            continue;
        ElfW(Addr) low = base + header[i].p_vaddr, high = low + header[i].p_memsz;
        range.low = low < range.low ? low : range.low;
        range.high = high > range.high ? high : range.high;
    }
    return range;
}

void hs_bind_all(void)
{
    const struct range program = program_range(_r_debug.r_map->l_addr);
    dl_iterate_phdr(note_library, NULL);
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next)
        note_chosen(map);
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
        struct object object;
        read_dynamic(map, &object);
        for (size_t i = 0; !object.skip && i < object.slot_count; i++) {
            const ElfW(Rela) *slot = &object.slots[i];
            if (ELF64_R_TYPE(slot->r_info) != HS_JUMP_SLOT)
                continue;
            /* Chosen in each run anew. */
            if (is_chosen(object.strings + object.symbols[ELF64_R_SYM(slot->r_info)].st_name))
                continue;
            void **place = (void **)(object.base + slot->r_offset);
            /* A lookup by version passes the runtime's own definitions by, which ld.so would find first. */
            void *address = hs_marks_stand_in(find(&object, slot));
            address = hs_threads_stand_in(hs_nested_stand_in(hs_audit_stand_in(address)));
            int own = (ElfW(Addr))address >= program.low && (ElfW(Addr))address < program.high;
            if (address && !own) {
                if (*place != address)
                    *place = address;
            } else if (known.lazy_count < LAZY_MAX) {
                known.lazy[known.lazy_count++] = place;
            }
        }
    }
}
