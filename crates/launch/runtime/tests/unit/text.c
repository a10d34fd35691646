/* Tests of runtime/extra/text.c: the bytes of text that was moved to large pages, and all that lies around it. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"

static const char *fake_read(void);
static const char *fake_next(const char *at, struct hs_mapping *out);
#define hs_maps_read fake_read
#define hs_maps_next fake_next
#include "extra/text.c"
#undef hs_maps_read
#undef hs_maps_next
#include "unit.h"

/* The mappings that the runtime is to see. */
static struct hs_mapping listed[32];
static size_t list_count;

static const char *fake_read(void)
{
    return list_count ? (const char *)&listed[0] : NULL;
}

static const char *fake_next(const char *at, struct hs_mapping *out)
{
    const struct hs_mapping *map = (const struct hs_mapping *)(const void *)at;
    if (map == listed + list_count)
        return NULL;
    *out = *map;
    return (const char *)(map + 1);
}

static void list(uintptr_t from, uintptr_t to, const char *access, const char *path)
{
    struct hs_mapping *map = &listed[list_count++];
    *map = (struct hs_mapping){.from = from, .to = to, .path = path};
    memcpy(map->access, access, sizeof map->access);
}

static unsigned char byte(size_t at)
{
    return (unsigned char)(at * 7 + at / 4096);
}

/* A file's bytes, mapped as a tool's text; begins one page behind a large page's border. */
static uintptr_t map_text(size_t size)
{
    const int fd = memfd_create("unit", MFD_CLOEXEC);
    CHECK_EQUAL(ftruncate(fd, (off_t)size), 0);
    unsigned char *content = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (size_t i = 0; i < size; i++)
        content[i] = byte(i);
    munmap(content, size);
    char *space = mmap(NULL, size + 2 * LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const uintptr_t at = (((uintptr_t)space + LARGE - 1) & -LARGE) + 4096;
    CHECK(mmap((void *)at, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == (void *)at);
    close(fd);
    return at;
}

static int is_as_in_file(uintptr_t at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (*(const unsigned char *)(at + i) != byte(i))
            return 0;
    return 1;
}

/* How the process really has it: "r-xp" and whether a file is mapped there. */
static int is_mapped_as(uintptr_t at, const char *access, int of_file)
{
    struct hs_mapping map;
    for (const char *line = hs_maps_read(); line && (line = hs_maps_next(line, &map));)
        if (at >= map.from && at < map.to)
            return memcmp(map.access, access, 4) == 0 && (*map.path != 0) == of_file;
    return 0;
}

static unsigned long mapped_pages(void)
{
    struct hs_mapping map;
    unsigned long sum = 0;
    for (const char *line = hs_maps_read(); line && (line = hs_maps_next(line, &map));)
        sum += (map.to - map.from) / 4096;
    return sum;
}

static void moves_the_aligned_part(void)
{
    const size_t size = 3 * LARGE;
    const uintptr_t at = map_text(size), inner = (at + LARGE - 1) & -LARGE, end = (at + size) & -LARGE;
    list(at, at + size, "r-xp", "/lib/large.so");
    const unsigned long before = mapped_pages();
    hs_text_enlarge();
    CHECK(is_as_in_file(at, size));
    CHECK(is_mapped_as(inner, "r-xp", 0) && is_mapped_as(end - 1, "r-xp", 0));
    CHECK(is_mapped_as(inner - 1, "r-xp", 1) && is_mapped_as(end, "r-xp", 1));
    CHECK_EQUAL(mapped_pages(), before);
}

static void leaves_all_else_alone(void)
{
    const size_t size = 3 * LARGE, small = LARGE;
    const uintptr_t text = map_text(size), little = map_text(small);
    list(text, text + size, "r--p", "/lib/large.so");
    list(text, text + size, "rwxp", "/lib/large.so");
    list(text, text + size, "r-xs", "/lib/large.so");
    list(text, text + size, "r-xp", "");
    list(text, text + size, "r-xp", "[vdso]");
    list(little, little + small, "r-xp", "/lib/small.so");
    hs_text_enlarge();
    CHECK(is_mapped_as(text + LARGE, "r-xp", 1) && is_mapped_as(little, "r-xp", 1));
    list_count = 0;
    hs_text_enlarge();
    CHECK(is_as_in_file(text, size));
}

static void more_mappings_than_it_has_room_for(void)
{
    uintptr_t at[20];
    for (size_t i = 0; i < 20; i++) {
        at[i] = map_text(3 * LARGE);
        list(at[i], at[i] + 3 * LARGE, "r-xp", "/lib/large.so");
    }
    hs_text_enlarge();
    for (size_t i = 0; i < 20; i++) {
        CHECK(is_as_in_file(at[i], 3 * LARGE));
        CHECK(is_mapped_as(at[i] + LARGE, "r-xp", i >= 16));
    }
}

const struct unit_test tests_of_text[] = {
    {"text: moves the aligned part", moves_the_aligned_part},
    {"text: leaves all else alone", leaves_all_else_alone},
    {"text: more mappings than it has room for", more_mappings_than_it_has_room_for},
    {NULL, NULL},
};
