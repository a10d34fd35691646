// populate: preloaded into a linker, maps its files as if they had been touched before. For bench/lld.
//
// POPULATE=inputs    mappings of files are populated when they are made (MAP_POPULATE)
// POPULATE=ahead     by a second thread, while the linker goes on (MADV_POPULATE_READ)
// POPULATE=output    the output's shared mapping only (MADV_POPULATE_WRITE)
// POPULATE=none      nothing; what the preloading itself costs
//
// Only what ld.lld maps for its inputs (private, read-only) and its output (shared, writable) is meant.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAITING_MAX 65536

static struct { void *from; size_t size; } waiting[WAITING_MAX];
static size_t made, done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;

static void *populate(void *unused) {
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (done == made)
      pthread_cond_wait(&more, &lock);
    size_t now = done++;
    pthread_mutex_unlock(&lock);
    // What has been unmapped meanwhile is an error that means nothing.
    madvise(waiting[now].from, waiting[now].size, MADV_POPULATE_READ);
  }
}

static void hand_over(void *from, size_t size) {
  static int started;
  pthread_mutex_lock(&lock);
  if (made < WAITING_MAX) {
    waiting[made].from = from;
    waiting[made++].size = size;
    pthread_cond_signal(&more);
  }
  if (!started) {
    pthread_t thread;
    started = pthread_create(&thread, NULL, populate, NULL) == 0;
  }
  pthread_mutex_unlock(&lock);
}

void *mmap(void *address, size_t size, int access, int flags, int fd, off_t offset) {
  const char *how = getenv("POPULATE");
  int is_input = fd >= 0 && access == PROT_READ && flags & MAP_PRIVATE;
  int is_output = fd >= 0 && access & PROT_WRITE && flags & MAP_SHARED;
  if (is_input && how && strcmp(how, "inputs") == 0)
    flags |= MAP_POPULATE;
  void *made_at = (void *)syscall(SYS_mmap, address, size, access, flags, fd, offset);
  if (made_at == MAP_FAILED || !how)
    return made_at;
  if (is_input && strcmp(how, "ahead") == 0)
    hand_over(made_at, size);
  if (is_output && strcmp(how, "output") == 0)
    madvise(made_at, size, MADV_POPULATE_WRITE);
  return made_at;
}

void *mmap64(void *address, size_t size, int access, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));
