/* Tests of the parts of runtime/fork/snapshot.c that look at memory and names. They are private to it, so it is included; what
 * it asks of other files is answered here. */
#include "fork/snapshot.c"
#include "unit.h"

int hs_marks_timers(void)
{
    return 0;
}

int hs_imports_is_libcs(const char *path)
{
    return starts(path, "/lib/libc.so.");
}

void hs_imports_prepare(void)
{
}

int hs_imports_have(uintptr_t place)
{
    return place == 0;
}

int hs_own_has(uintptr_t from, size_t size)
{
    return from == 0x1000 && size;
}

int hs_imports_are_libcs(void)
{
    return 1;
}

int hs_imports_keep_order(void)
{
    return 1;
}

int hs_exports_hide_libcs(void)
{
    return 1;
}

/* A block as the kernel lays it out: two arguments' strings, then the environment's. */
static char block[] = "tool\0-x\0FIRST=1\0ANOTHER=2\0";
static char *pointers[] = {block, block + 5, NULL, block + 8, block + 16, NULL};
static const struct hs_start start = {2, pointers, pointers + 3};

static unsigned kept_of(const void *pointer)
{
    return kept((uintptr_t)pointer, &start, (uintptr_t)block, (uintptr_t)block + sizeof block, 0);
}

static unsigned kept_by_libc(const void *pointer)
{
    return kept((uintptr_t)pointer, &start, (uintptr_t)block, (uintptr_t)block + sizeof block, 1);
}

static void libc_may_keep_the_lists_and_the_name(void)
{
    CHECK_EQUAL(kept_by_libc(pointers), 0);
    CHECK_EQUAL(kept_by_libc(pointers + 3), 0);
    CHECK_EQUAL(kept_by_libc(block), 0);
    CHECK_EQUAL(kept_by_libc(block + 4), 0);
    CHECK_EQUAL(kept_by_libc(block + 5), KEPT_STRING);
    CHECK_EQUAL(kept_by_libc(block + 7), KEPT_STRING);
    CHECK_EQUAL(kept_by_libc(block + 16), KEPT_ENVIRONMENT);
}

static void tells_pointers_into_the_block(void)
{
    /* Each request has its list there. */
    CHECK_EQUAL(kept_of(pointers), 0);
    CHECK_EQUAL(kept_of(pointers + 2), 0);
    CHECK_EQUAL(kept_of(pointers + 3), KEPT_ENVIRONMENT);
    CHECK_EQUAL(kept_of(block), KEPT_STRING);
    CHECK_EQUAL(kept_of(block + 3), KEPT_STRING);
    CHECK_EQUAL(kept_of(block + 4), KEPT_STRING);
    CHECK_EQUAL(kept_of(block + 5), KEPT_STRING);
    CHECK_EQUAL(kept_of(block + 8), KEPT_ENVIRONMENT);
    CHECK_EQUAL(kept_of(block + 14), KEPT_ENVIRONMENT);
    CHECK_EQUAL(kept_of(block + 16), KEPT_ENVIRONMENT);
    CHECK_EQUAL(kept_of(block + 24), KEPT_ENVIRONMENT);
    CHECK_EQUAL(kept_of(block + sizeof block), 0);
    CHECK_EQUAL(kept_of(NULL), 0);
}

static void knows_whose_data_keeps_pointers_by_design(void)
{
    const char *const own[] = {"[stack]", "/memfd:hotstart-runtime (deleted)"};
    const char *const others[] = {"/usr/bin/opt", "/usr/lib/libcrypto.so.3", "/lib/libc.so.6", "[heap]", "[anon:heap]", "",
                                  "/memfd:other (deleted)", "/home/ld/tool"};
    struct hs_mapping map = {0x2000, 0x3000, "rw-p", ""};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        CHECK((map.path = own[i], keeps_by_design(&map)));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK((map.path = others[i], !keeps_by_design(&map)));
    map.from = 0x1000;
    CHECK(keeps_by_design(&map));
}

/* Finds a word anywhere in a mapping, and makes no page that was not there. */
static void scans_pages_that_exist(void)
{
    enum { PAGES = 64 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char exists[PAGES];
    char *area = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uintptr_t from = (uintptr_t)area, to = from + PAGES * page;
    madvise(area, PAGES * page, MADV_NOHUGEPAGE);
    CHECK_EQUAL(scan(from, to, &start, 0), 0);
    uintptr_t *last = (uintptr_t *)to - 1;
    *last = (uintptr_t)(pointers + 3);
    CHECK_EQUAL(scan(from, to, &start, 0), KEPT_ENVIRONMENT);
    CHECK_EQUAL(scan(from, to - page, &start, 0), 0);
    CHECK_EQUAL(mincore(area, PAGES * page, exists), 0);
    int count = 0;
    for (int i = 0; i < PAGES; i++)
        count += exists[i] & 1;
    CHECK_EQUAL(count, 1);
    munmap(area, PAGES * page);
}

static void finds_armed_timers_and_blocked_signals(void)
{
    struct itimerval timer = {.it_value = {.tv_sec = 1000}}, none = {0};
    sigset_t set, before;
    CHECK(!timers_armed());
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
    CHECK(timers_armed());
    setitimer(ITIMER_VIRTUAL, &none, NULL);
    CHECK(!timers_armed());
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, &before);
    CHECK(signals_touched());
    sigprocmask(SIG_SETMASK, &before, NULL);
}

const struct unit_test tests_of_snapshot[] = {
    {"snapshot: tells pointers into the block", tells_pointers_into_the_block},
    {"snapshot: libc may keep the lists and the name", libc_may_keep_the_lists_and_the_name},
    {"snapshot: knows whose data keeps pointers by design", knows_whose_data_keeps_pointers_by_design},
    {"snapshot: scans pages that exist", scans_pages_that_exist},
    {"snapshot: finds armed timers and blocked signals", finds_armed_timers_and_blocked_signals},
    {NULL, NULL},
};
