/* The tool under test. */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: greet NAME\n");
    return 2;
  }
  printf("hello, %s\n", argv[1]);
  return strcmp(argv[1], "nobody") == 0;
}
