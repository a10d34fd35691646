// spin: a busy loop of a known length, for bench/ab-calibration and bench/ab-hyperfine.
//
//   spin MILLISECONDS NOISE [cpu]
//
// Busy until that much of the monotonic clock has passed since the start of main, times 1 + NOISE * z, where z is
// drawn anew each time from the standard normal distribution. The length is bound to the clock and not to a number
// of rounds, so that what is compared is known whatever else the machine does. With `cpu` it is bound to all the
// CPU time of the process, its start included: that is known even where other processes hold the processors.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static clockid_t clock_used = CLOCK_MONOTONIC;

static double now(void) {
  struct timespec t;
  clock_gettime(clock_used, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static double normal(void) {
  uint64_t bits[2];
  if (getrandom(bits, sizeof bits, 0) != sizeof bits) {
    perror("spin: getrandom");
    exit(1);
  }
  double u = ((bits[0] >> 11) + 1) * 0x1p-53, v = (bits[1] >> 11) * 0x1p-53;
  return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

int main(int argc, char **argv) {
  double begun = now();
  if (argc == 4 && strcmp(argv[3], "cpu") == 0) {
    clock_used = CLOCK_PROCESS_CPUTIME_ID;
    begun = 0;
  } else if (argc != 3) {
    fprintf(stderr, "usage: spin MILLISECONDS NOISE [cpu]\n");
    return 2;
  }
  double until = begun + atof(argv[1]) / 1000 * (1 + atof(argv[2]) * normal());
  while (now() < until) {
  }
  return 0;
}
