/* A googletest executable with two tests; the second leaves by a signal unless it has a shard of its own. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--gtest_list_tests") == 0) {
    puts("C.\n  one\n  two");
    return 0;
  }
  const char *output = getenv("GTEST_OUTPUT"), *index = getenv("GTEST_SHARD_INDEX");
  if (!index || strcmp(index, "0") != 0) {
    puts("about to crash");
    fflush(stdout);
    raise(SIGSEGV);
  }
  FILE *file = fopen(output + strlen("json:"), "w");
  if (!file)
    return 2;
  fputs("{\"testsuites\": [{\"name\": \"C\", \"testsuite\": "
        "[{\"name\": \"one\", \"result\": \"COMPLETED\", \"time\": \"0.001s\"}]}]}", file);
  return fclose(file);
}
