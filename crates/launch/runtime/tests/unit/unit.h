/* Assertions and a list of tests, for the parts of the runtime that need no process of their own.
 *
 * Deliberately small: a test is a function, a failed CHECK is printed and counted, and the test goes on. Each runs in a child of its
 * own, since most files keep state that only a new process has not yet.
 */
#ifndef HOTSTART_UNIT_H
#define HOTSTART_UNIT_H

#include <stddef.h>
#include <stdint.h>

struct unit_test {
    const char *name;
    void (*run)(void);
};

#define CHECK(condition) unit_check((condition) != 0, __FILE__, __LINE__, #condition)
#define CHECK_EQUAL(left, right) unit_check_equal((long)(left), (long)(right), __FILE__, __LINE__, #left " == " #right)
#define CHECK_TEXT(left, right) unit_check_text(left, right, __FILE__, __LINE__, #left " == " #right)

void unit_check(int holds, const char *file, int line, const char *what);
void unit_check_equal(long left, long right, const char *file, int line, const char *what);
void unit_check_text(const char *left, const char *right, const char *file, int line, const char *what);

/* Numbers that look random and are the same in each run. */
uint32_t unit_random(uint32_t limit);

/* One list for each source file of the runtime, ended by an entry without a name. */
extern const struct unit_test tests_of_bind[], tests_of_decode[], tests_of_delta[], tests_of_io[], tests_of_page_cache[],
    tests_of_mappings[], tests_of_maps[], tests_of_memory[], tests_of_affinity[], tests_of_snapshot[], tests_of_text[],
    tests_of_title[], tests_of_usage[], tests_of_flags[], tests_of_pointers[], tests_of_pays[], tests_of_sites[];

#endif
