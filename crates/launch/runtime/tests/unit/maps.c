/* Tests of runtime/maps.c: lines as the kernel writes them, and this process's own list. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"
#include "unit.h"

/* Entries are ended in place, so that each test needs a copy of its own. */
static struct hs_mapping only(const char *line)
{
    static char copy[8192];
    struct hs_mapping mapping;
    strcpy(copy, line);
    const char *rest = hs_maps_next(copy, &mapping);
    CHECK(rest == copy + strlen(line));
    CHECK(hs_maps_next(rest, &mapping) == NULL);
    return mapping;
}

static void reads_each_field(void)
{
    struct hs_mapping m = only("7f12a4c00000-7f12a4c22000 r-xp 0001c000 fe:00 1234567                    /lib/libc.so.6\n");
    CHECK_EQUAL(m.from, 0x7f12a4c00000);
    CHECK_EQUAL(m.to, 0x7f12a4c22000);
    CHECK(memcmp(m.access, "r-xp", 4) == 0);
    CHECK_TEXT(m.path, "/lib/libc.so.6");
}

static void reads_names_of_all_kinds(void)
{
    CHECK_TEXT(only("1000-2000 rw-p 00000000 00:00 0 \n").path, "");
    CHECK_TEXT(only("1000-2000 rw-p 00000000 00:00 0\n").path, "");
    CHECK_TEXT(only("1000-2000 rw-p 00000000 00:00 0                          [heap]\n").path, "[heap]");
    CHECK_TEXT(only("1000-2000 rw-p 00000000 00:00 0  [anon: a name]\n").path, "[anon: a name]");
    CHECK_TEXT(only("1000-2000 rw-s 00000000 00:01 9  /dev/zero (deleted)\n").path, "/dev/zero (deleted)");
    CHECK_TEXT(only("1000-2000 rw-p 00000000 00:00 0  /a\\012b c\n").path, "/a\\012b c");
    CHECK_TEXT(only("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n").path, "[vsyscall]");
}

static void reads_the_last_address(void)
{
    CHECK_EQUAL(only("ffffffffff600000-ffffffffffffffff --xp 00000000 00:00 0 [x]\n").to, UINTPTR_MAX);
}

static void reads_line_after_line(void)
{
    char text[] = "1000-2000 r--p 00000000 00:00 0 /a\n2000-3000 rw-p 00000000 00:00 0 \n5000-6000 ---p 0 0:0 0 /b\n";
    struct hs_mapping m;
    const char *at = text;
    CHECK((at = hs_maps_next(at, &m)) && m.from == 0x1000 && strcmp(m.path, "/a") == 0);
    CHECK((at = hs_maps_next(at, &m)) && m.from == 0x2000 && strcmp(m.path, "") == 0);
    CHECK((at = hs_maps_next(at, &m)) && m.to == 0x6000 && strcmp(m.path, "/b") == 0);
    CHECK(hs_maps_next(at, &m) == NULL);
}

static int is_listed(uintptr_t page, const char *access)
{
    struct hs_mapping m;
    int found = 0;
    uintptr_t last = 0;
    for (const char *at = hs_maps_read(); at && (at = hs_maps_next(at, &m));) {
        CHECK(m.from >= last && m.to > m.from);
        last = m.to;
        if (page >= m.from && page < m.to)
            found = memcmp(m.access, access, 4) == 0;
    }
    return found;
}

static void finds_own_mappings(void)
{
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(is_listed((uintptr_t)page, "r--p"));
    mprotect(page, size, PROT_READ | PROT_WRITE);
    CHECK(is_listed((uintptr_t)page, "rw-p"));
    munmap(page, size);
    CHECK(!is_listed((uintptr_t)page, "rw-p"));
    page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(is_listed((uintptr_t)page, "rw-s"));
    munmap(page, size);
}

const struct unit_test tests_of_maps[] = {
    {"maps: reads each field", reads_each_field},
    {"maps: reads names of all kinds", reads_names_of_all_kinds},
    {"maps: reads the last address", reads_the_last_address},
    {"maps: reads line after line", reads_line_after_line},
    {"maps: finds own mappings", finds_own_mappings},
    {NULL, NULL},
};
