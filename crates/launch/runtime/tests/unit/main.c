/* Runs the unit tests of the runtime and prints a result line that tools/check counts. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static unsigned long failures;

static void fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: does not hold: %s", file, line, what);
    failures++;
}

void unit_check(int holds, const char *file, int line, const char *what)
{
    if (holds)
        return;
    fail(file, line, what);
    fputc('\n', stderr);
}

void unit_check_equal(long left, long right, const char *file, int line, const char *what)
{
    if (left == right)
        return;
    fail(file, line, what);
    fprintf(stderr, " (%ld and %ld)\n", left, right);
}

void unit_check_text(const char *left, const char *right, const char *file, int line, const char *what)
{
    if (left && strcmp(left, right) == 0)
        return;
    fail(file, line, what);
    fprintf(stderr, " (\"%s\" and \"%s\")\n", left ? left : "(null)", right);
}

uint32_t unit_random(uint32_t limit)
{
    static uint64_t state = 7;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33) % limit;
}

/* In a child of its own; whether it ended in order, and everything held. */
static int runs(const struct unit_test *test)
{
    int status;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        test->run();
        _exit(failures != 0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    const struct unit_test *const lists[] = {tests_of_bind, tests_of_decode,   tests_of_delta, tests_of_io,    tests_of_page_cache,
                                             tests_of_mappings, tests_of_maps, tests_of_memory, tests_of_affinity, tests_of_snapshot,
                                             tests_of_text, tests_of_title,    tests_of_usage, tests_of_flags,
                                             tests_of_pointers, tests_of_pays,  tests_of_sites};
    unsigned passed = 0, failed = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const struct unit_test *test = lists[i]; test->name; test++) {
            const int good = runs(test);
            printf("test %s ... %s\n", test->name, good ? "ok" : "FAILED");
            *(good ? &passed : &failed) += 1;
        }
    }
    printf("test result: %s. %u passed; %u failed\n", failed ? "FAILED" : "ok", passed, failed);
    return failed != 0;
}
