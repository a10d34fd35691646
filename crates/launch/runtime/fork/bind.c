/* Binds the functions that ld.so would bind at their first call, so that no fork has to. What a constructor has put into a slot stays
 * there.
 *
 * LD_BIND_NOW would do so, too, but would stay in force for libraries opened later. There it turns an undefined function that is never
 * called into an error. A slot is bound here only if ld.so can give no other answer: the object was loaded at the start, so that it is
 * bound in the global scope; it does not search itself first; the first object of that scope that has the name at all, in any version,
 * was loaded at the start as well, and has the answer; and the symbol has a version or its definer has none. Libraries that are opened
 * later only come behind these in that scope, and these are never unloaded. All other slots stay lazy. So does a slot whose answer lies
 * in the program itself: that may be the program's own jump to a function whose address it takes, which ld.so does not use for calls.
 * And so does one whose definition is chosen by a function of the library's own (IFUNC): that runs at the first call, and may look at
 * anything. libc's and libm's look at the processor only.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

#include "runtime.h"

struct object {
    ElfW(Addr) base;
    const ElfW(Rela) *slots;
    size_t slot_count;
    void *const *table; /* of slots: the first ones are the loader's own */
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
        case DT_PLTGOT: out->table = (void *const *)entry->d_un.d_ptr; break;
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
    /* A tracer puts its own function there, which all calls come to that are not bound. */
    if (!out->skip)
        out->skip = !out->table || out->table[1] != map || !hs_imports_have((uintptr_t)out->table[2]);
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

struct range {
    ElfW(Addr) low, high;
};

/* An object, in ld.so's order. */
struct library {
    /* Where its symbols may be. dladdr goes through all symbols of a library for each that is asked for, which took mlir-opt more than 20
     * seconds. */
    ElfW(Addr) low, high, base;
    struct range text;
    const ElfW(Dyn) *dynamic;
    int knows_versions;
    /* NULL in what the kernel maps, which is in no scope; `hash` where there is none of GNU's style. */
    const ElfW(Sym) *symbols;
    const char *strings, *name;
    const uint32_t *hash;
};

/* Filled by hs_bind_all, in the zygote. What has no room here only stays lazy: a library that is not listed counts as one without versions
 * that was opened later, and once `chosen` is full every function counts as chosen. */
static struct {
    struct library libraries[LIBRARIES_MAX];
    size_t library_count;
    /* The first ones, which were loaded at the start. They and what was opened with RTLD_GLOBAL since are the global scope. */
    size_t started_count;
    /* Slots of these that were left as they are, for ld.so to bind at the first call. A worker keeps ld.so's answer, if it would be the
     * same in each run. Each is in the list until it was bound. */
    struct {
        void **place;
        const char *name;
    } lazy[LAZY_MAX];
    size_t lazy_count;
    /* Functions that libraries choose. */
    const char *chosen[CHOSEN_MAX];
    size_t chosen_count;
    /* A lookup has failed, which leaves its message on the heap. */
    int has_failed;
} known;

static void read_tables(struct library *out)
{
    ElfW(Addr) own = 0;
    for (const ElfW(Dyn) *entry = out->dynamic; entry && entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_SYMTAB: out->symbols = (const void *)entry->d_un.d_ptr; break;
        case DT_STRTAB: out->strings = (const void *)entry->d_un.d_ptr; break;
        case DT_GNU_HASH: out->hash = (const void *)entry->d_un.d_ptr; break;
        case DT_SONAME: own = entry->d_un.d_val; break;
        case DT_VERSYM: out->knows_versions = 1; break;
        }
    }
    /* As in read_dynamic. */
    if (!out->symbols || !out->strings || (ElfW(Addr))out->symbols < out->base)
        out->symbols = NULL;
    else if (own)
        out->name = out->strings + own;
}

static int note_library(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    if (known.library_count == LIBRARIES_MAX)
        return 1;
    struct library *out = &known.libraries[known.library_count++];
    *out = (struct library){.low = ~(ElfW(Addr))0, .base = info->dlpi_addr};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const ElfW(Addr) low = info->dlpi_addr + part->p_vaddr, high = low + part->p_memsz;
        if (part->p_type == PT_LOAD && low < out->low)
            out->low = low;
        if (part->p_type == PT_LOAD && high > out->high)
            out->high = high;
        if (part->p_type == PT_LOAD && part->p_flags & PF_X && !out->text.high)
            out->text = (struct range){low, high};
        if (part->p_type == PT_DYNAMIC)
            out->dynamic = (const void *)low;
    }
    read_tables(out);
    return 0;
}

static int is_in(const struct library *library, const void *address)
{
    return (ElfW(Addr))address >= library->low && (ElfW(Addr))address < library->high;
}

/* Whether one of the first objects needs this one, by the name under which it was found or by its own. */
static int is_needed(const struct link_map *map, const struct library *library, size_t first)
{
    const char *slash = strrchr(map->l_name, '/');
    const char *file = slash ? slash + 1 : map->l_name;
    for (size_t i = 0; i < first; i++) {
        for (const ElfW(Dyn) *entry = known.libraries[i].dynamic; known.libraries[i].symbols && entry->d_tag != DT_NULL; entry++) {
            const char *needed = known.libraries[i].strings + entry->d_un.d_val;
            if (entry->d_tag == DT_NEEDED && (strcmp(needed, file) == 0 || (library->name && strcmp(needed, library->name) == 0)))
                return 1;
        }
    }
    return 0;
}

/* Counts the objects that were loaded at the start: those up to the last of which that is sure, since later ones are appended; and
 * then those that these need. */
static void count_started(void)
{
    const void *const sure[] = {(void *)getauxval(AT_PHDR), &known, (void *)gnu_get_libc_version, &_r_debug};
    size_t count = 0;
    known.started_count = 0;
    for (size_t i = 0; i < known.library_count; i++)
        for (size_t j = 0; j < sizeof sure / sizeof *sure; j++)
            if (is_in(&known.libraries[i], sure[j]))
                count = i + 1;
    for (const struct link_map *map = _r_debug.r_map; map && known.started_count < known.library_count; map = map->l_next) {
        const struct library *next = &known.libraries[known.started_count];
        if (next->dynamic != map->l_ld)
            return;
        if (known.started_count >= count && next->symbols && !is_needed(map, next, known.started_count))
            return;
        known.started_count++;
    }
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* Whether a library defines the function in some version: anywhere, or at this address, which it does not choose. */
static int defines(const struct library *in, const char *name, uint32_t hash, const void *address)
{
    const uint32_t *const table = in->hash, buckets = table[0], first = table[1], words = table[2], shift = table[3];
    const ElfW(Addr) *const filter = (const void *)(table + 4);
    const size_t bits = 8 * sizeof *filter;
    const uint32_t *const bucket = (const void *)(filter + words), *const chain = bucket + buckets;
    const ElfW(Addr) word = filter[hash / bits % words];
    if (!(word >> hash % bits & word >> (hash >> shift) % bits & 1) || bucket[hash % buckets] < first)
        return 0;
    for (uint32_t i = bucket[hash % buckets];; i++) {
        const ElfW(Sym) *symbol = &in->symbols[i];
        const int chooses = ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
        const int is_here = !address || (!chooses && in->base + symbol->st_value == (ElfW(Addr))address);
        const int is_defined = (chain[i - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF;
        if (is_defined && is_here && strcmp(in->strings + symbol->st_name, name) == 0)
            return 1;
        if (chain[i - first] & 1)
            return 0;
    }
}

/* The first of the objects from the start that defines a function, or may; with the runtime, or without it. */
static const struct library *first_definer(const char *name, int with_own)
{
    const uint32_t hash = hash_of(name);
    for (size_t i = 0; i < known.started_count; i++) {
        const struct library *at = &known.libraries[i];
        if (!at->symbols || (!with_own && is_in(at, &known)))
            continue;
        if (!at->hash || defines(at, name, hash, NULL))
            return at;
    }
    return NULL;
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

static void note_chosen(const struct library *in)
{
    if (!in->symbols || is_of_libc(in->name))
        return;
    if (!in->hash)
        known.chosen_count = CHOSEN_MAX;
    for (size_t i = 0, count = in->hash ? symbols_of(in->hash) : 0; i < count && known.chosen_count < CHOSEN_MAX; i++)
        if (ELF64_ST_TYPE(in->symbols[i].st_info) == STT_GNU_IFUNC && in->symbols[i].st_shndx != SHN_UNDEF)
            known.chosen[known.chosen_count++] = in->strings + in->symbols[i].st_name;
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
        if (is_in(&known.libraries[i], address))
            return known.libraries[i].knows_versions;
    return 1;
}

static int is_own(const void *address)
{
    extern const char __ehdr_start[] HS_HIDDEN, _end[] HS_HIDDEN;
    return (const char *)address >= __ehdr_start && (const char *)address < _end;
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
    /* What nobody defines is not asked for. */
    if ((version > 1 && !wanted) || !first_definer(name, 1))
        return NULL;
    void *address = wanted ? dlvsym(RTLD_DEFAULT, name, wanted) : dlsym(RTLD_DEFAULT, name);
    known.has_failed |= !address;
    /* An object that is searched earlier may define it without a version, an allocator in place of libc's, say: see `answer`. */
    if (wanted)
        return address;
    return address && !knows_versions(address) ? address : NULL;
}

/* Whether ld.so finds this in each run: the first definition in the global scope, if it is that of an object from the start. A run may
 * have bound to a library that it has opened, or written to its slots itself. */
static int is_found_always(const char *name, const void *address)
{
    const struct library *definer = first_definer(name, 1);
    return definer && definer->hash && defines(definer, name, hash_of(name), address);
}

/* Calls `keep` for each slot that ld.so has bound since, and forgets it. `before` returns the former content of a slot. */
void hs_bind_learn(void *(*before)(void **place), void (*keep)(void **place))
{
    size_t left = 0;
    for (size_t i = 0; i < known.lazy_count; i++) {
        void **const place = known.lazy[i].place;
        if (*place != before(place) && is_found_always(known.lazy[i].name, *place))
            keep(place);
        else
            known.lazy[left++] = known.lazy[i];
    }
    known.lazy_count = left;
}

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

/* What ld.so would bind a slot to, as far as that is sure; NULL otherwise. */
static void *answer(const struct object *object, const ElfW(Rela) *slot, const char *name)
{
    void *address = find(object, slot);
    const struct library *definer = address ? first_definer(name, 0) : NULL;
    return definer && (is_in(definer, address) || is_own(address)) ? address : NULL;
}

/* Whether a slot is as the linker has made it, and ld.so leaves it: it leads to its own entry in the object's linkage table, which pushes
 * the slot's number. Another content is ld.so's answer, or what somebody has written there in its place. */
static int is_lazy(const struct library *in, void *content, size_t index)
{
    const unsigned char *at = content;
    uint32_t number;
    if ((ElfW(Addr))at < in->text.low || (ElfW(Addr))at + 16 > in->text.high)
        return 0;
#ifdef __x86_64__
    static const unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
    const unsigned char push = 0x68;
    if (memcmp(at, landing, sizeof landing) == 0)
        at += sizeof landing;
    memcpy(&number, at + 1, sizeof number);
    /* With mold all slots lead to the table's head, which pushes r11 and the object. */
    static const unsigned char head[] = {0x41, 0x53, 0xff, 0x35};
    return (*at == push && number == index) || memcmp(at, head, sizeof head) == 0;
#else
    /* All slots of an object lead to one place. */
    (void)number, (void)index;
    return 1;
#endif
}

static void bind_object(const struct object *object, const struct library *in, const struct range *program)
{
    for (size_t i = 0; i < object->slot_count; i++) {
        const ElfW(Rela) *slot = &object->slots[i];
        const char *name = object->strings + object->symbols[ELF64_R_SYM(slot->r_info)].st_name;
        /* What is chosen is chosen in each run anew. */
        if (ELF64_R_TYPE(slot->r_info) != HS_JUMP_SLOT || is_chosen(name))
            continue;
        void **place = (void **)(object->base + slot->r_offset);
        if (!is_lazy(in, *place, i))
            continue;
        /* A lookup by version passes the runtime's own definitions by, which ld.so would find first. */
        void *address = hs_marks_interposed(answer(object, slot, name));
        address = hs_threads_interposed(hs_nested_interposed(hs_asked_interposed(address)));
        const int own = (ElfW(Addr))address >= program->low && (ElfW(Addr))address < program->high;
        if (address && !own) {
            *place = address;
        } else if (known.lazy_count < LAZY_MAX) {
            known.lazy[known.lazy_count].place = place;
            known.lazy[known.lazy_count++].name = name;
        }
    }
}

/* Binds what it can; -1 if that has left something that a fresh process has not. */
int hs_bind_all(void)
{
    const struct range program = program_range(_r_debug.r_map->l_addr);
    dl_iterate_phdr(note_library, NULL);
    count_started();
    for (size_t i = 0; i < known.library_count; i++)
        note_chosen(&known.libraries[i]);
    const struct link_map *map = _r_debug.r_map;
    for (size_t i = 0; i < known.started_count; i++, map = map->l_next) {
        struct object object;
        read_dynamic(map, &object);
        if (!object.skip)
            bind_object(&object, &known.libraries[i], &program);
    }
    return known.has_failed ? -1 : 0;
}
