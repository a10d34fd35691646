/* Maps, changes and unmaps memory in an order that its first argument decides, looks at what it gets, and prints that: the
 * distances between mappings, whether what is fresh is zero, whether what is unmapped is gone. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
#define MOST 24

struct block {
    char *at;
    size_t pages;
    int writable;
};

static struct block blocks[MOST];
static size_t count;
static uint64_t state;
static char *origin;

static unsigned below(unsigned limit)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33) % limit;
}

static long distance(const char *at)
{
    return at == MAP_FAILED ? -1 : (long)(at - origin) / (long)PAGE;
}

static int is_zero(const char *at, size_t size)
{
    return *at == 0 && memcmp(at, at + 1, size - 1) == 0;
}

/* Some of it, or all. */
static void write_to(const struct block *block)
{
    if (below(3) == 0)
        for (size_t page = 0; page < block->pages; page += 1 + below(8))
            block->at[page * PAGE + below(PAGE)] = 1;
    else
        memset(block->at, 7, block->pages * PAGE);
}

static void is_gone(const char *at, size_t pages)
{
    unsigned char one;
    for (size_t page = 0; page < pages; page += pages > 1 ? pages - 1 : 1)
        printf(" %s", msync((void *)(at + page * PAGE), PAGE, MS_ASYNC) == 0 ? "there" : strerror(errno));
}

static size_t pages_to_map(void)
{
    static const size_t often[] = {20, 33, 79, 257};
    return below(2) ? often[below(4)] : 1 + below(300);
}

static int has_children, has_hints;

static void map(void)
{
    const size_t pages = pages_to_map();
    unsigned kind = below(12);
    if (kind == 2 && !has_hints)
        kind = 3;
    char *at;
    if (kind == 0) {
        int fd = open("/proc/self/exe", O_RDONLY);
        at = mmap(NULL, pages * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
        close(fd);
    } else if (kind == 1)
        at = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    else if (kind == 2) /* where runtime/reset/page_cache.c likes to keep things */
        at = mmap((void *)0x1d4b0f000000ul, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else
        at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (kind == 2) {
        printf("map at a hint %lu: %d %p\n", pages, is_zero(at, pages * PAGE), (void *)at);
        memset(at, 5, pages * PAGE);
        munmap(at, pages * PAGE);
        return;
    }
    printf("map %lu: %ld", pages, distance(at));
    if (kind > 2)
        printf(" zero %d", is_zero(at, pages * PAGE));
    printf("\n");
    blocks[count] = (struct block){at, pages, kind > 2};
    if (kind > 2)
        write_to(&blocks[count]);
    count++;
}

static void unmap(size_t which)
{
    struct block block = blocks[which];
    size_t from = 0, pages = block.pages;
    if (below(6) == 0 && pages > 2)
        pages -= 1 + below((unsigned)pages - 2), from = below((unsigned)(block.pages - pages) + 1);
    printf("unmap %ld+%lu of %lu: %d", distance(block.at), from, pages, munmap(block.at + from * PAGE, pages * PAGE));
    is_gone(block.at + from * PAGE, pages);
    printf("\n");
    if (from)
        blocks[which].pages = from;
    else if (pages < block.pages)
        blocks[which] = (struct block){block.at + pages * PAGE, block.pages - pages, block.writable};
    else
        blocks[which] = blocks[--count];
}

static void remap(size_t which)
{
    struct block *block = &blocks[which];
    const size_t pages = pages_to_map(), was = block->pages;
    char *at = mremap(block->at, was * PAGE, pages * PAGE, MREMAP_MAYMOVE);
    printf("remap %ld: %lu to %lu: %ld", distance(block->at), was, pages, distance(at));
    if (at != MAP_FAILED) {
        *block = (struct block){at, pages, block->writable};
        if (block->writable && pages > was)
            printf(" zero %d", is_zero(at + was * PAGE, (pages - was) * PAGE));
        if (block->writable)
            write_to(block);
    }
    printf("\n");
}

static void change(size_t which)
{
    static const int advice[] = {MADV_DONTFORK, MADV_DONTNEED, MADV_WIPEONFORK, MADV_DONTDUMP, MADV_FREE,
                                 MADV_PAGEOUT};
    struct block *block = &blocks[which];
    if (below(8) == 0)
        printf("advise by posix: %d\n", posix_madvise(block->at, (1 + below((unsigned)block->pages)) * PAGE, POSIX_MADV_RANDOM));
    else if (below(3) == 0) {
        int access = below(2) ? PROT_READ : PROT_READ | PROT_WRITE;
        printf("protect %ld: %d\n", distance(block->at), mprotect(block->at, block->pages * PAGE, access));
        block->writable = block->writable && access & PROT_WRITE;
    } else {
        const int given = advice[below(6)];
        printf("advise %ld %d: %d\n", distance(block->at), given, madvise(block->at, block->pages * PAGE, given));
        if (given == MADV_FREE)
            memset(block->at, 3, block->writable ? block->pages * PAGE : 0);
    }
}

/* What a child has of the memory that was mapped since it was last changed. */
static void child(void)
{
    if (!has_children)
        return;
    const size_t pages = pages_to_map();
    char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int status;
    memset(at, 9, pages * PAGE);
    fflush(stdout);
    pid_t process = fork();
    if (process == 0)
        _exit(at[0] + at[pages * PAGE - 1] == 18 && munmap(at, pages * PAGE) == 0 ? 11 : 12);
    waitpid(process, &status, 0);
    printf("child %ld: %x\n", distance(at), (unsigned)status);
    munmap(at, pages * PAGE);
}

static void allocate(void)
{
    const size_t size = pages_to_map() * PAGE;
    char *cleared = calloc(1, size), *grown = memset(malloc(size), 1, size);
    printf("calloc %d", is_zero(cleared, size));
    memset(cleared, 2, size);
    grown = realloc(grown, 3 * size);
    printf(" realloc %d %d\n", grown[0], grown[size - 1]);
    memset(grown, 4, 3 * size);
    free(cleared);
    if (below(4))
        free(grown);
}

/* Closes the holes between what is mapped already, so that distances do not depend on them. */
static void close_holes(void)
{
    char *lowest = (char *)UINTPTR_MAX;
    for (size_t pages = 512; pages; pages /= 8)
        for (;;) {
            char *at = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (at < lowest) {
                lowest = at;
                break;
            }
        }
    origin = lowest;
}

static char *block_of(size_t pages)
{
    return mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* One large block, as an allocator's. */
static int large(void)
{
    for (int i = 0; i < 3; i++) {
        char *at = block_of(512);
        printf("%d\n", is_zero(at, 512 * PAGE));
        memset(at, 1, 512 * PAGE);
        munmap(at, 512 * PAGE);
    }
    return 0;
}

/* What was unmapped is in a pipe still. */
static int lent(void)
{
    int ends[2];
    char text[8] = "";
    char *at = memset(block_of(64), 'x', 64 * PAGE);
    if (pipe(ends) != 0 || vmsplice(ends[1], &(struct iovec){at, 7}, 1, 0) != 7)
        return 1;
    munmap(at, 64 * PAGE);
    memset(block_of(64), 'y', 64 * PAGE);
    return read(ends[0], text, 7) == 7 ? printf("%s\n", text) : 2;
}

/* What was protected by a way that passes by libc's name. */
static int guarded(void)
{
    char *at = memset(block_of(64), 'x', 64 * PAGE);
    syscall(SYS_mprotect, at, 64 * PAGE, PROT_READ);
    munmap(at, 64 * PAGE);
    return *(char *)memset(block_of(64), 7, 64 * PAGE);
}

/* No more than it has now. */
static int limited(void)
{
    unsigned long pages = 0;
    for (int i = 0; i < 4; i++) {
        char *at = memset(block_of(512), 1, 512 * PAGE);
        FILE *file = fopen("/proc/self/statm", "r");
        if (!file || fscanf(file, "%lu", &pages) != 1)
            return 1;
        fclose(file);
        munmap(at, 512 * PAGE);
    }
    setrlimit(RLIMIT_AS, &(struct rlimit){pages * PAGE, RLIM_INFINITY});
    char *small = block_of(100), *rest = block_of(400);
    printf("%d %d\n", small != MAP_FAILED, rest != MAP_FAILED);
    return 0;
}

static void *maps_much(void *unused)
{
    for (int i = 0; i < 60; i++) {
        char *at = block_of(1500);
        if (!is_zero(at, 1500 * PAGE))
            exit(9);
        memset(at, 1, 1500 * PAGE);
        munmap(at, 1500 * PAGE);
    }
    return unused;
}

/* Threads, and children that one of them has at any time. */
static int threads(void)
{
    pthread_t ids[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&ids[i], NULL, maps_much, NULL);
    for (int i = 0; i < 5; i++) {
        int status;
        pid_t process = fork();
        if (process == 0) {
            for (int k = 0; k < 20; k++) {
                char *at = block_of(100);
                if (!is_zero(at, 100 * PAGE))
                    _exit(8);
                munmap(memset(at, 3, 100 * PAGE), 100 * PAGE);
            }
            _exit(7);
        }
        waitpid(process, &status, 0);
        printf("%x\n", (unsigned)status);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(ids[i], NULL);
    return 0;
}

static const struct {
    char letter;
    int (*run)(void);
} modes[] = {{'b', large}, {'l', lent}, {'g', guarded}, {'r', limited}, {'t', threads}};

int main(int argc, char **argv)
{
    char *end;
    state = strtoull(argc > 1 ? argv[1] : "0", &end, 10);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (*end == modes[i].letter)
            return modes[i].run();
    has_children = *end == 'c';
    has_hints = *end == 'h';
    below(2);
    close_holes();
    for (int step = 0; step < 120; step++) {
        const unsigned what = below(20);
        if (count == 0 || (what < 8 && count < MOST))
            map();
        else if (what < 13)
            unmap(below((unsigned)count));
        else if (what < 15)
            remap(below((unsigned)count));
        else if (what < 17)
            change(below((unsigned)count));
        else if (what < 18)
            child();
        else
            allocate();
    }
    return (int)count;
}
