/* Tests of the parts of runtime/fork/bind.c that read tables. They are private to it, so it is included; what it asks of other
 * files is answered here. */
#include "fork/bind.c"
#include "unit.h"

#include <string.h>

void *hs_asked_interposed(void *function)
{
    return function;
}

void *hs_marks_interposed(void *function)
{
    return function;
}

void *hs_threads_interposed(void *function)
{
    return function;
}

void *hs_nested_interposed(void *function)
{
    return function;
}

#define BASE 0x10000

static struct link_map bound = {.l_addr = BASE};
/* What the loader has put before the slots: of its functions, see hs_imports_have. */
static void *table[3] = {NULL, &bound, NULL};

/* A dynamic section that can be bound, with one more entry. */
static struct object read_with(ElfW(Sxword) tag, ElfW(Xword) value)
{
    ElfW(Dyn) dynamic[] = {
        {DT_JMPREL, {.d_ptr = BASE + 1}},
        {DT_PLTRELSZ, {.d_val = 5 * sizeof(ElfW(Rela))}},
        {DT_SYMTAB, {.d_ptr = BASE + 2}},
        {DT_STRTAB, {.d_ptr = BASE + 3}},
        {DT_VERNEED, {.d_ptr = 4}},
        {DT_PLTREL, {.d_val = DT_RELA}},
        {DT_PLTGOT, {.d_ptr = (ElfW(Addr))table}},
        {tag, {.d_val = value}},
        {DT_NULL, {0}},
    };
    struct object object;
    bound.l_ld = dynamic;
    read_dynamic(&bound, &object);
    return object;
}

static void reads_a_dynamic_section(void)
{
    const struct object object = read_with(DT_VERNEEDNUM, 7);
    CHECK(!object.skip);
    CHECK_EQUAL(object.slot_count, 5);
    CHECK_EQUAL((uintptr_t)object.slots, BASE + 1);
    CHECK_EQUAL((uintptr_t)object.needed, BASE + 4);
    CHECK_EQUAL(object.needed_count, 7);
}

static void leaves_objects_alone_that_ld_so_binds_otherwise(void)
{
    CHECK(read_with(DT_SYMBOLIC, 0).skip);
    CHECK(read_with(DT_BIND_NOW, 0).skip);
    CHECK(read_with(DT_PLTREL, DT_REL).skip);
    CHECK(read_with(DT_FLAGS, DF_SYMBOLIC).skip);
    CHECK(read_with(DT_FLAGS, DF_BIND_NOW).skip);
    CHECK(read_with(DT_FLAGS_1, DF_1_NOW).skip);
    CHECK(!read_with(DT_FLAGS, DF_STATIC_TLS).skip);
    CHECK(!read_with(DT_FLAGS_1, DF_1_PIE).skip);
    /* A dynamic section that ld.so could not write to holds offsets, not addresses. */
    CHECK(read_with(DT_SYMTAB, 2).skip);
    CHECK(read_with(DT_JMPREL, 0).skip);
    /* Others may stand where the loader does. */
    table[1] = NULL;
    CHECK(read_with(DT_VERNEEDNUM, 7).skip);
    table[1] = &bound, table[2] = table;
    CHECK(read_with(DT_VERNEEDNUM, 7).skip);
    table[2] = NULL;
}

/* An entry of a linkage table pushes its number; behind it lies what is_lazy may read as well. */
static void knows_a_slot_that_nobody_has_written_to(void)
{
    unsigned char code[64] = {0xf3, 0x0f, 0x1e, 0xfa, 0x68, 3, 0, 0, 0};
    const struct library in = {.text = {(ElfW(Addr))code, (ElfW(Addr))code + sizeof code}};
    CHECK(is_lazy(&in, code, 3));
    CHECK(is_lazy(&in, code + 4, 3));
    CHECK(!is_lazy(&in, code, 4));
    CHECK(!is_lazy(&in, code + 5, 3));
    CHECK(!is_lazy(&in, code + sizeof code, 3));
    CHECK(!is_lazy(&in, table, 3));
}

static void finds_names_of_versions(void)
{
    const struct {
        ElfW(Verneed) file;
        ElfW(Vernaux) versions[2];
        ElfW(Verneed) last;
        ElfW(Vernaux) last_version;
    } table = {
        {.vn_cnt = 2, .vn_aux = sizeof(ElfW(Verneed)), .vn_next = sizeof(ElfW(Verneed)) + 2 * sizeof(ElfW(Vernaux))},
        {{.vna_other = 2, .vna_name = 1, .vna_next = sizeof(ElfW(Vernaux))}, {.vna_other = 4, .vna_name = 3}},
        {.vn_cnt = 1, .vn_aux = sizeof(ElfW(Verneed))},
        {.vna_other = 3, .vna_name = 5},
    };
    const struct object object = {.strings = "\0A\0B\0C", .needed = &table.file, .needed_count = 2};
    CHECK_TEXT(version_name(&object, 2), "A");
    CHECK_TEXT(version_name(&object, 4), "B");
    CHECK_TEXT(version_name(&object, 3), "C");
    CHECK(version_name(&object, 5) == NULL);
    CHECK(version_name(&(struct object){0}, 2) == NULL);
}

static void *saved[4];

static void *before(void **place)
{
    (void)place;
    return saved;
}

static unsigned kept_count;

static void keep(void **place)
{
    (void)place;
    kept_count++;
}

static void note_all(void)
{
    known.library_count = 0;
    dl_iterate_phdr(note_library, NULL);
    count_started();
}

/* What ld.so finds first, and nothing else. */
static void learns_what_is_found_in_each_run_once(void)
{
    void *slots[] = {saved, saved, saved};
    note_all();
    for (size_t i = 0; i < 3; i++) {
        known.lazy[i].place = &slots[i];
        known.lazy[i].name = "umask";
    }
    known.lazy_count = 3;
    hs_bind_learn(before, keep);
    CHECK_EQUAL(kept_count, 0);
    slots[0] = saved + 1;
    slots[1] = dlsym(RTLD_DEFAULT, "umask");
    slots[2] = dlsym(RTLD_DEFAULT, "getppid");
    hs_bind_learn(before, keep);
    CHECK_EQUAL(kept_count, 1);
    CHECK_EQUAL(known.lazy_count, 2);
    CHECK(known.lazy[1].place == &slots[2]);
    hs_bind_learn(before, keep);
    CHECK_EQUAL(kept_count, 1);
    known.lazy_count = 0;
}

static void knows_the_program_and_itself(void)
{
    const struct range program = program_range(_r_debug.r_map->l_addr);
    const ElfW(Addr) own = (ElfW(Addr))&knows_the_program_and_itself, library = (ElfW(Addr))dlsym(RTLD_DEFAULT, "getpid");
    CHECK(own >= program.low && own < program.high);
    CHECK(library < program.low || library >= program.high);
    CHECK(is_own(&knows_the_program_and_itself));
    note_all();
    CHECK(knows_versions((void *)library));
}

static void knows_who_defines_a_function_first(void)
{
    note_all();
    CHECK(known.started_count > 2);
    const struct library *definer = first_definer("umask", 0);
    CHECK(definer && is_in(definer, dlsym(RTLD_DEFAULT, "umask")));
    CHECK(first_definer("no_such_function_anywhere", 0) == NULL);
    /* A library that may define everything is before it. */
    known.libraries[1].symbols = known.libraries[0].symbols;
    known.libraries[1].hash = NULL;
    CHECK(first_definer("umask", 0) == &known.libraries[1]);
}

static void counts_only_what_was_loaded_at_the_start(void)
{
    note_all();
    const size_t before = known.started_count;
    void *later = dlopen("libBrokenLocale.so.1", RTLD_LAZY);
    if (!later)
        return;
    note_all();
    CHECK_EQUAL(known.started_count, before);
    CHECK(known.library_count > before);
    CHECK_EQUAL(dlclose(later), 0);
}

const struct unit_test tests_of_bind[] = {
    {"bind: reads a dynamic section", reads_a_dynamic_section},
    {"bind: leaves objects alone that ld.so binds otherwise", leaves_objects_alone_that_ld_so_binds_otherwise},
    {"bind: knows a slot that nobody has written to", knows_a_slot_that_nobody_has_written_to},
    {"bind: finds names of versions", finds_names_of_versions},
    {"bind: learns what is found in each run, once", learns_what_is_found_in_each_run_once},
    {"bind: knows the program and itself", knows_the_program_and_itself},
    {"bind: knows who defines a function first", knows_who_defines_a_function_first},
    {"bind: counts only what was loaded at the start", counts_only_what_was_loaded_at_the_start},
    {NULL, NULL},
};
