/* Tests of the parts of runtime/fork/snapshot.c that look at memory and names. They are private to it, so it is included; what
 * it asks of other files is answered here. */
#include "fork/snapshot.c"
#include "unit.h"

int hs_marks_timers(void)
{
    return 0;
}

void hs_strings_keep_list(void)
{
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

/* Constructors asked for this one. */
int hs_asked_for(const char *assignment)
{
    return starts(assignment, "ASKED=");
}

/* A block as the kernel lays it out: two arguments' strings, then the environment's. */
static char block[] = "tool\0-x\0ASKED=1\0UNASKED=2\0";
static char *pointers[] = {block, block + 5, NULL, block + 8, block + 16, NULL};
static const struct hs_start start = {2, pointers, pointers + 3};

static unsigned kept_of(const void *pointer)
{
    return kept((uintptr_t)pointer, &start, (uintptr_t)block, (uintptr_t)block + sizeof block);
}

static void tells_pointers_into_the_block(void)
{
    CHECK_EQUAL(kept_of(pointers), KEPT_LIST);
    CHECK_EQUAL(kept_of(pointers + 2), KEPT_LIST);
    CHECK_EQUAL(kept_of(pointers + 3), KEPT_ENVIRONMENT);
    CHECK_EQUAL(kept_of(block), KEPT_STRING);
    CHECK_EQUAL(kept_of(block + 3), KEPT_STRING);
    CHECK_EQUAL(kept_of(block + 4), KEPT_STRING);
    CHECK_EQUAL(kept_of(block + 5), 0);
    CHECK_EQUAL(kept_of(block + 8), 0);
    CHECK_EQUAL(kept_of(block + 14), 0);
    CHECK_EQUAL(kept_of(block + 16), KEPT_ENVIRONMENT);
    CHECK_EQUAL(kept_of(block + 24), KEPT_ENVIRONMENT);
    CHECK_EQUAL(kept_of(block + sizeof block), 0);
    CHECK_EQUAL(kept_of(NULL), 0);
}

static void knows_whose_data_keeps_pointers_by_design(void)
{
    const char *const own[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/libc-2.31.so", "/lib64/ld-linux-x86-64.so.2",
                               "[stack]", "[vvar]", "/memfd:hotstart-runtime (deleted)", "", "nameless"};
    const char *const others[] = {"/usr/bin/opt", "/usr/lib/libcrypto.so.3", "/usr/lib/libc++.so.1",
                                  "/memfd:other (deleted)", "/home/ld/tool"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        CHECK(keeps_by_design(own[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(!keeps_by_design(others[i]));
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
    CHECK_EQUAL(scan(from, to, &start), 0);
    uintptr_t *last = (uintptr_t *)to - 1;
    *last = (uintptr_t)(pointers + 3);
    CHECK_EQUAL(scan(from, to, &start), KEPT_ENVIRONMENT);
    CHECK_EQUAL(scan(from, to - page, &start), 0);
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
    {"snapshot: knows whose data keeps pointers by design", knows_whose_data_keeps_pointers_by_design},
    {"snapshot: scans pages that exist", scans_pages_that_exist},
    {"snapshot: finds armed timers and blocked signals", finds_armed_timers_and_blocked_signals},
    {NULL, NULL},
};
