/* An allocator for tests, to be preloaded. It gives memory only, and ends the process when it is handed a block that is
 * not its own: whoever mixes it with another one is found out. As real ones do, it asks for the time and for random
 * bytes before main, and has a large mapping of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define ARENA (8ul << 20)
#define LARGE (1ul << 20)
#ifndef ALLOCATOR_CLOCK
#define ALLOCATOR_CLOCK CLOCK_MONOTONIC
#endif
#ifndef ALLOCATOR_SEEDS
#define ALLOCATOR_SEEDS 1
#endif
#define COOKIE 0x616c6c6f63617465ul

struct head {
    size_t size;
    uint64_t cookie;
};

#ifdef ALLOCATOR_NAME
__attribute__((used)) static const char name[] = ALLOCATOR_NAME;
#endif

static char *at, *end;
static uint64_t seed;
static struct timespec begun;

__attribute__((constructor)) static void begin(void)
{
    clock_gettime(ALLOCATOR_CLOCK, &begun);
    if (ALLOCATOR_SEEDS && getrandom(&seed, sizeof seed, 0) != sizeof seed)
        _exit(99);
}

static void *map(size_t size)
{
    void *made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return made == MAP_FAILED ? NULL : made;
}

static char *room(size_t size)
{
    if (size > LARGE)
        return map(size);
    if ((size_t)(end - at) < size) {
        at = map(ARENA);
        end = at ? at + ARENA : NULL;
    }
    char *block = at;
    if (block)
        at += size;
    return block;
}

void *memalign(size_t alignment, size_t size)
{
    if (alignment < 16)
        alignment = 16;
    char *block = room(size + sizeof(struct head) + alignment + 16);
    if (!block) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t place = ((uintptr_t)block + sizeof(struct head) + alignment - 1) & -alignment;
    ((struct head *)place)[-1] = (struct head){size, COOKIE};
    at = (char *)(((uintptr_t)at + 15) & -16ul);
    return (void *)place;
}

void *malloc(size_t size)
{
    return memalign(16, size);
}

void free(void *block)
{
    if (!block)
        return;
    struct head *head = (struct head *)block - 1;
    if (head->cookie != COOKIE) {
        static const char words[] = "a block of another allocator\n";
        if (write(2, words, sizeof words - 1) > 0)
            _exit(98);
        _exit(97);
    }
}

void *calloc(size_t count, size_t size)
{
    void *block = malloc(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *block, size_t size)
{
    void *made = malloc(size);
    if (block && made) {
        const size_t old = ((struct head *)block)[-1].size;
        memcpy(made, block, old < size ? old : size);
        free(block);
    }
    return made;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *block)
{
    return block ? ((struct head *)block)[-1].size : 0;
}

/* Whether the block is of this allocator. */
int hs_test_owns(const void *block)
{
    return ((const struct head *)block)[-1].cookie == COOKIE;
}
