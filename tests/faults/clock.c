/* For hotstart itself only: a clock of the day that jumps by a day to and fro, as if somebody set it all the time. What it
 * starts has the true one. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int jumps;

__attribute__((constructor)) static void begin(void)
{
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    const char *slash = strrchr(path, '/');
    jumps = slash && strcmp(slash, "/hotstart") == 0;
    unsetenv("LD_PRELOAD");
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    static unsigned turn;
    const int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (result == 0 && jumps && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % 2 ? 86400 : -86400;
    return result;
}
