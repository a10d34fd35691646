/* Memory: static data, heap, stack, mappings, and what must fault. */
#include "act.h"
#include <stddef.h>
#include <time.h>
#include <malloc.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/shm.h>

#undef FAMILY
#define FAMILY "memory"

#define PAGE 4096ul

static int data_counter = 3;
static char bss_block[100000];
static __thread int tls_counter = 5;
static __thread char tls_block[3000];
static char own_page[4 * PAGE] __attribute__((aligned(4096))) = {1};
static char flagged_page[4 * PAGE] __attribute__((aligned(4096)));
static const char *const constant_table[] = {"a", "b"};

MIXED(data_count)
{
    say("%d", data_counter++);
}

MIXED(tls_count)
{
    say("%d any %d", tls_counter++, any_set(tls_block, sizeof tls_block));
    memset(tls_block, 1, sizeof tls_block);
}

MIXED(bss_fill)
{
    say("any %d", any_set(bss_block, sizeof bss_block));
    memset(bss_block, 7, sizeof bss_block);
}

DISTURB(data_page_write)
{
    memset(own_page + PAGE, 9, PAGE);
    say("written");
}

OBSERVE(data_page_show)
{
    say("%d %d %d", own_page[0], own_page[PAGE], any_set(own_page + PAGE, 3 * PAGE));
}

OBSERVE(data_page_probe)
{
    SAY2("write %ld %ld", probe_write(own_page + 2 * PAGE), probe_write(own_page + 3 * PAGE));
}

DISTURB(data_page_protect)
{
    say_result("mprotect", mprotect(own_page + 2 * PAGE, PAGE, PROT_READ));
}

DISTURB(data_page_protect_by_call)
{
    say_result("mprotect", RAW(SYS_mprotect, own_page + 3 * PAGE, PAGE, PROT_NONE));
}

DISTURB(data_page_replace)
{
    void *at = mmap(own_page + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    say("over %d", at == own_page + PAGE);
}

DISTURB(data_page_share)
{
    void *at = mmap(own_page + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    say("over %d", at == own_page + PAGE);
}

DISTURB(data_page_discard)
{
    say_result("discard", madvise(own_page, PAGE, MADV_DONTNEED));
    say("first %d", own_page[0]);
}

DISTURB(text_unprotect)
{
    uintptr_t at = (uintptr_t)act_text_unprotect & ~(PAGE - 1);
    say_result("mprotect", mprotect((void *)at, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
}

OBSERVE(text_probe)
{
    SAY2("write %ld read %ld", probe_write((void *)(uintptr_t)act_text_probe), probe_read((void *)(uintptr_t)act_text_probe));
}

OBSERVE(constant_probe)
{
    say("write %d", probe_write((void *)(uintptr_t)constant_table));
}

DISTURB(heap_fill)
{
    for (int i = 0; i < 200; i++)
        memset(malloc(1000 + 16 * (size_t)i), i + 1, 1000);
    say("filled");
}

DISTURB(heap_churn)
{
    char *blocks[300];
    for (int i = 0; i < 300; i++)
        memset(blocks[i] = malloc(24 + 40 * (size_t)(i % 37)), 255, 24);
    for (int i = 0; i < 300; i += 2)
        free(blocks[i]);
    say("churned");
}

DISTURB(heap_large)
{
    for (int i = 1; i < 8; i++) {
        char *block = malloc(300000 * (size_t)i);
        memset(block, i, 300000 * (size_t)i);
        if (i % 2)
            free(block);
    }
    say("large");
}

DISTURB(heap_grow)
{
    for (int i = 0; i < 60; i++)
        memset(malloc(100000), 255, 100000);
    say("grown");
}

OBSERVE(heap_fresh)
{
    char *block = malloc(300000), *middle = malloc(60000), *cleared = calloc(1, 20000);
    SAY3("mapped %ld zeroed %ld usable %ld", any_set(block, 300000), any_set(cleared, 20000), malloc_usable_size(middle) - 60000);
    free(block), free(middle), free(cleared);
}

OBSERVE(heap_top_content)
{
    char *block = malloc(120000);
    say("any %d", any_set(block + 64, 119000));
    free(block);
}

OBSERVE(heap_figures)
{
    struct mallinfo2 info = mallinfo2();
    say("arena %zu used %zu top %zu mapped %zu", info.arena, info.uordblks, info.keepcost, info.hblks);
}

OBSERVE(heap_order)
{
    char *a = malloc(40), *b = malloc(40), *c = malloc(5000);
    say("apart %ld %ld", (long)(b - a), (long)(c - b));
    free(b), free(a);
    char *again = malloc(40);
    say("again %ld", (long)(again - a));
    free(c);
}

static void overrun(void)
{
    char *end = sbrk(0);
    end[PAGE] = 1;
}

OBSERVE(heap_past_break)
{
    char *end = sbrk(0);
    SAY3("at %ld page %ld far %ld", probe_read(end), probe_call(overrun), probe_write(end + 64 * PAGE));
}

OBSERVE(heap_past_break_far)
{
    char *end = sbrk(0);
    SAY2("megabyte %ld twenty %ld", probe_write(end + (1 << 20)), probe_write(end + (20 << 20)));
}

MIXED(break_moved)
{
    char *was = sbrk(64 * 1024);
    say("any %d", any_set(was, 64 * 1024));
    memset(was, 1, 64 * 1024);
    SAY2("back %ld fault %ld", sbrk(-64 * 1024) != (void *)-1, probe_read(was + 40 * 1024));
}

MIXED(break_by_call)
{
    sbrk(0);
    char *was = (char *)RAW(SYS_brk, 0), *now = (char *)RAW(SYS_brk, was + 32 * 1024);
    say("same as libc's %d moved %ld", was == (char *)sbrk(0), (long)(now - was));
    if (now > was)
        memset(was, 2, 16 * 1024);
}

MIXED(heap_trimmed)
{
    free(malloc(100000));
    say_result("trim", malloc_trim(0));
}

MIXED(heap_options)
{
    SAY2("%ld %ld", mallopt(M_MMAP_THRESHOLD, 1 << 16), mallopt(M_PERTURB, 0x55));
    char *block = malloc(500);
    say("perturbed %d", (unsigned char)block[400]);
}

static __attribute__((noinline)) int deep(int depth)
{
    volatile char frame[4096];
    memset((char *)frame, depth | 1, sizeof frame);
    return depth ? deep(depth - 1) + frame[17] : 0;
}

DISTURB(stack_dirty)
{
    say("deep %d", deep(300) != 1);
}

OBSERVE(stack_at_first)
{
    say("%s", stack_is_used ? "used" : "unused");
}

OBSERVE(stack_below)
{
    const volatile char *here = __builtin_frame_address(0);
    SAY2("any %ld %ld", any_set(here - (128 << 10), 32 << 10), any_set(here - (900 << 10), 300 << 10));
}

/* In which of so many words below this frame something is left, once all were filled. */
#define BELOW 96
static __attribute__((noinline)) void fill_below(void)
{
    volatile uint64_t room[8 * BELOW];
    for (size_t i = 0; i < CHECK_SIZE(room); i++)
        room[i] = 0x5a5a5a5a5a5a5a5aul;
}

static __attribute__((noinline)) void say_below(const char *after)
{
    volatile uint64_t room[8 * BELOW];
    char found[CHECK_SIZE(room) / 8 + 1];
    size_t used = 0;
    /* The two functions' frames differ, so what lies at either end may not have been filled. */
    for (size_t i = BELOW; i < CHECK_SIZE(room) - BELOW; i += 8, used++) {
        int changed = 0;
        for (size_t word = i; word < i + 8; word++)
            changed |= room[word] != 0x5a5a5a5a5a5a5a5aul;
        found[used] = changed ? '1' : '0';
    }
    found[used] = 0;
    say("%s %s", after, found);
}

/* Once before, as ld.so leaves other things there when it binds a function. */
#define AFTER(call)      \
    do {                 \
        call;            \
        fill_below();    \
        call;            \
        say_below(#call); \
    } while (0)

/* A function that is called after these may read what it has not written. */
OBSERVE(stack_after_calls)
{
    struct stat about;
    sigset_t mask;
    AFTER((void)access("/absent", R_OK));
    AFTER(fstat(1, &about));
    AFTER(lseek(1, 0, SEEK_CUR));
    AFTER(sigprocmask(SIG_SETMASK, NULL, &mask));
    AFTER(sigaltstack(NULL, NULL));
}

OBSERVE(stack_after_functions)
{
    struct timespec now;
    AFTER(time(NULL));
    AFTER(clock_gettime(CLOCK_REALTIME, &now));
    AFTER(getenv("ABSENT"));
}

/* The kernel's cells of this thread that only it writes: its area of restartable sequences, from the flags on. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
MIXED(rseq_area)
{
    volatile unsigned char *const area = &__rseq_offset ? (unsigned char *)__builtin_thread_pointer() + __rseq_offset : NULL;
    if (!area)
        return;
    SAY2("area %d %d", area[16], area[31]);
    area[16] = area[31] = 1;
}

/* What the kernel knows of a page far below the stack, and whether it lets something be mapped there. */
OBSERVE(stack_end)
{
    char *page = (char *)(((uintptr_t)__builtin_frame_address(0) - (1000 << 10)) & -PAGE);
    say_result("msync", msync(page, PAGE, MS_ASYNC));
    say_result("drop", madvise(page, PAGE, MADV_DONTNEED));
    char *map = mmap(page, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say("there %d", map == page);
    munmap(map, PAGE);
}

static volatile int reached;

static __attribute__((noinline)) void descend(void)
{
    volatile char frame[1 << 16];
    frame[0] = frame[65535] = 1;
    if (reached++ < 80)
        descend();
    frame[1] = 1;
}

MIXED(stack_grow)
{
    reached = 0;
    descend();
    say("reached %d", reached);
}

MIXED(map_private)
{
    char *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say("any %d", any_set(map, 1 << 20));
    memset(map, 5, 1 << 20);
}

MIXED(map_unmapped_faults)
{
    char *map = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(map, 5, 1 << 18);
    SAY3("unmap %ld read %ld write %ld", munmap(map, 1 << 18), probe_read(map + 5000), probe_write(map));
}

MIXED(map_protected)
{
    char *map = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SAY3("protect %ld write %ld read %ld", mprotect(map, 4096, PROT_READ), probe_write(map), probe_read(map));
    SAY2("none %ld read %ld", mprotect(map, 4096, PROT_NONE), probe_read(map));
}

MIXED(map_moved)
{
    char *map = mmap(NULL, 1 << 17, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(map, 3, 1 << 17);
    char *moved = mremap(map, 1 << 17, 1 << 21, MREMAP_MAYMOVE);
    say("first %d rest %d", moved[0], any_set(moved + (1 << 17), (1 << 21) - (1 << 17)));
}

MIXED(map_holes)
{
    char *map = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(map + 4 * PAGE, PAGE);
    SAY2("hole %ld beside %ld", probe_read(map + 4 * PAGE), probe_read(map + 5 * PAGE));
}

MIXED(map_fixed_far)
{
    void *want = (void *)0x10000000000;
    char *map = mmap(want, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    say("there %d any %d", map == want, map == want ? any_set(map, PAGE) : -1);
    if (map == want)
        memset(map, 1, PAGE);
}

MIXED(map_fixed_by_call)
{
    void *want = (void *)0x11000000000;
    long got = RAW(SYS_mmap, want, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                   0);
    say("there %d", got == (long)want);
}

MIXED(map_file_shared)
{
    int fd = open("mapped", O_CREAT | O_RDWR, 0644);
    int failed = ftruncate(fd, 8192);
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    strcpy(map, "through the mapping");
    SAY3("truncate %ld sync %ld past %ld", failed, msync(map, 8192, MS_SYNC), probe_read(map + 4096));
    SAY2("shrunk %ld read %ld", ftruncate(fd, 100), probe_read(map + 4096));
}

MIXED(map_shared_anonymous)
{
    char *map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        map[0] = 5;
        _exit(0);
    }
    say_child(child);
    say("from child %d", map[0]);
}

DISTURB(map_sealed)
{
    char *map = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sealed = RAW(462, map, PAGE, 0);
    say("unmap after seal %d", (sealed == 0) == (munmap(map, PAGE) != 0));
}

/* What of the advice shows in the entry of /proc/self/smaps that has the address. */
static void say_flags(const char *text, uintptr_t of)
{
    static const char *const wanted[] = {" dc", " dd", " wf", " mg", " hg", " nh", " lo", " sr", " rr", " sl"};
    char flags[256] = "";
    unsigned long from = 0, to = 0;
    for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL) {
        sscanf(line, "%lx-%lx ", &from, &to);
        if (of < from || of >= to || strncmp(line, "VmFlags:", 8) != 0)
            continue;
        for (size_t i = 0; i < CHECK_SIZE(wanted); i++) {
            const char *found = strstr(line, wanted[i]), *end = strchr(line, '\n');
            if (found && end && found < end)
                strcat(flags, wanted[i]);
        }
        return say("flags%s", flags);
    }
    say("no entry");
}

/* Relocated by the loader, and read-only since. */
static const char *const relocated[1024] __attribute__((aligned(4096))) = {[0 ... 1023] = "text"};

DISTURB(constant_drop)
{
    say_result("drop", madvise((void *)relocated, sizeof relocated, MADV_DONTNEED));
}

DISTURB(constant_page_out)
{
    say_result("out", madvise((void *)relocated, sizeof relocated, MADV_PAGEOUT));
    say_result("free", madvise((void *)relocated, sizeof relocated, MADV_FREE));
}

OBSERVE(constant_show)
{
    const char *const volatile *text = relocated;
    say("%d", text[500] && *text[500] == 't');
}

OBSERVE(advice_show)
{
    static char text[400000];
    if (slurp("/proc/self/smaps", text, sizeof text) < 0)
        return say("no smaps");
    say_flags(text, (uintptr_t)flagged_page);
    say_flags(text, (uintptr_t)flagged_page + PAGE);
}

DISTURB(advice_dontfork)
{
    say_result("dontfork", madvise(flagged_page, PAGE, MADV_DONTFORK));
}

DISTURB(advice_wipeonfork)
{
    say_result("wipe", madvise(flagged_page + PAGE, PAGE, MADV_WIPEONFORK));
}

DISTURB(advice_by_call)
{
    say_result("dontfork", RAW(SYS_madvise, flagged_page, PAGE, MADV_DONTFORK));
    say_result("wipe", RAW(SYS_madvise, flagged_page + PAGE, PAGE, MADV_WIPEONFORK));
}

DISTURB(advice_dontdump)
{
    say_result("dontdump", madvise(flagged_page, PAGE, MADV_DONTDUMP));
    say_result("huge", madvise(flagged_page + PAGE, PAGE, MADV_NOHUGEPAGE));
}

static void read_flagged(void)
{
    (void)*(volatile char *)flagged_page;
}

OBSERVE(advice_forked)
{
    flagged_page[PAGE] = 7;
    pid_t child = fork();
    if (child == 0)
        _exit(10 * probe_call(read_flagged) + *(volatile char *)(flagged_page + PAGE));
    say_child(child);
    flagged_page[PAGE] = 0;
}

DISTURB(lock_page)
{
    say_result("mlock", mlock(own_page, PAGE));
}

DISTURB(lock_page_by_call)
{
    say_result("mlock2", RAW(SYS_mlock2, own_page, PAGE, 1));
}

DISTURB(lock_future)
{
    say_result("mlockall", mlockall(MCL_FUTURE));
}

OBSERVE(lock_show)
{
    say_status((const char *const[]){"VmLck", NULL});
}

MIXED(shm_attached)
{
    int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    char *at = shmat(id, NULL, 0);
    SAY2("remove %ld any %ld", shmctl(id, IPC_RMID, NULL), at == (void *)-1 ? -1 : any_set(at, PAGE));
}

MIXED(shm_by_call)
{
    int id = (int)RAW(SYS_shmget, IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    long at = RAW(SYS_shmat, id, 0, 0);
    RAW(SYS_shmctl, id, IPC_RMID, 0);
    say("attached %d", at > 0);
}

MIXED(memory_by_proc)
{
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC), value = 44;
    ssize_t sent = pwrite(fd, &value, sizeof value, (off_t)(uintptr_t)&data_counter);
    say("sent %zd counter %d", sent, data_counter);
    close(fd);
}

/* What is written through /proc/self/mem goes past protection, and so into what nobody looks at. */
DISTURB(memory_constant_by_proc)
{
    static const volatile int constant_number = 17;
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC), value = 18;
    say("was %d", constant_number);
    ssize_t sent = pwrite(fd, &value, sizeof value, (off_t)(uintptr_t)&constant_number);
    say("sent %zd now %d", sent, constant_number);
    close(fd);
}

MIXED(memory_by_call)
{
    int value = 50;
    struct iovec from = {&value, sizeof value}, to = {&data_counter, sizeof data_counter};
    say_result("writev", RAW(SYS_process_vm_writev, getpid(), &from, 1, &to, 1, 0));
}

DISTURB(memory_named)
{
    say_result("name", RAW(SYS_prctl, 0x53564d41, 0, flagged_page + 2 * PAGE, PAGE, "fuzz"));
}

/* Places that are taken, as hints: by memory of this run, by what it has given back, and beside it. LLVM's JIT gives such hints. */
OBSERVE(map_hints_taken)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *mine = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    munmap(mine + 4 * PAGE, PAGE);
    for (int i = 0; i < 8; i++) {
        char *made = mmap(mine + i * PAGE + i, (i % 3 + 1) * PAGE - i, PROT_READ | PROT_WRITE, flags, -1, 0);
        say("hint %d there %d zero %d", i, made == mine + i * PAGE, !any_set(made, PAGE));
        memset(made, 1, PAGE);
    }
    char *large = mmap(mine, 3ul << 20, PROT_NONE, flags, -1, 0);
    say("large there %d low %d", large == mine, (uintptr_t)large >> 32 == 0);
    munmap(mine, 8 * PAGE);
    say_result("exclusive", RAW(SYS_mmap, mine + PAGE, PAGE, PROT_READ, flags | MAP_FIXED_NOREPLACE, -1, 0) == (long)(mine + PAGE));
    say_result("again", RAW(SYS_mmap, mine, 2 * PAGE, PROT_READ, flags | MAP_FIXED_NOREPLACE, -1, 0));
}

/* Two blocks, which the kernel may join or not. */
OBSERVE(map_blocks_remapped)
{
    const size_t size = 256ul << 10;
    const int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *upper = mmap(NULL, size, access, flags, -1, 0);
    memset(upper, 1, size);
    munmap(upper, size);
    mmap(NULL, size / 2, PROT_READ, flags, -1, 0);
    upper = mmap(NULL, size, access, flags, -1, 0);
    char *lower = mmap(NULL, size, access, flags, -1, 0);
    memset(lower, 1, size);
    /* Whether they are neighbours may depend on the stack of a thread that is about to end. */
    const int are_apart = lower + size != upper;
    say("moved %d", are_apart || mremap(lower, 2 * size, 4 * size, MREMAP_MAYMOVE) != MAP_FAILED);
}

/* Behind an uneven break, up to the end of its page. */
MIXED(break_uneven)
{
    char *const before = sbrk(0), *const page = (char *)(((uintptr_t)before + PAGE) & -PAGE);
    if (sbrk(page - before + 100) != before)
        return;
    char *const end = page + PAGE;
    say("set %d", any_set(page, PAGE));
    memset(page, 1, (size_t)(end - page));
    sbrk(before - page - 100);
}

/* Which mappings the kernel has joined. */
OBSERVE(map_blocks_collapsed)
{
    const size_t size = 1ul << 20;
    const int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *blocks[4];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4; i++)
            memset(blocks[i] = mmap(NULL, size, access, flags, -1, 0), 1, size);
        for (int i = 0; round == 0 && i < 4; i++)
            munmap(blocks[i], size);
    }
    char *const large = (char *)(((uintptr_t)blocks[3] + (2ul << 20) - 1) & -(2ul << 20));
    if (blocks[3] + 3 * size == blocks[0])
        say_result("collapse", madvise(large, 2ul << 20, 25 /* MADV_COLLAPSE */));
}

/* The kernel reads the lower half of a number of buffers. */
OBSERVE(buffers_by_half)
{
    const struct iovec part = {(void *)0x1d4a00000000, 1};
    int ends[2];
    if (pipe(ends) != 0)
        return;
    say_result("write", RAW(SYS_writev, ends[1], &part, 1 | 1l << 32));
    close(ends[0]);
    close(ends[1]);
}

/* Addresses that a tool may want because they are far from everything. */
OBSERVE(map_at_far_places)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *const wanted = (void *)0x100000000000;
    void *hinted = mmap(wanted, 16ul << 40, PROT_NONE, flags, -1, 0);
    void *fixed = mmap((void *)0x1d0000000000, 1ul << 40, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
    say("hint %d fixed %d", hinted == wanted, fixed == (void *)0x1d0000000000 ? 0 : errno);
}

/* The kernel does not grow the break right up to another mapping. */
OBSERVE(break_to_a_guard)
{
    char *const end = (char *)(((uintptr_t)sbrk(0) + PAGE - 1) & -PAGE) + 64 * PAGE;
    void *guard = mmap(end, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    say("guard %d grown %d", guard == end, guard == end ? brk(end) == 0 : -1);
}

/* Where nothing is, the kernel reads nothing. */
OBSERVE(far_places_read_by_the_kernel)
{
    int ends[2], readable = 0;
    if (pipe(ends) != 0)
        return;
    for (uintptr_t at = 0x1d0000000000; at < 0x1e0000000000; at += 1ul << 32)
        readable += write(ends[1], (const void *)at, 1) == 1;
    say("readable %d", readable);
    close(ends[0]);
    close(ends[1]);
}
