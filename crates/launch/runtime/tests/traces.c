/* What a tool can see of the process that it runs in: who sent its signals, who has its locks, what lies behind its memory, and what was
 * left below its stack, and what earlier runs have done to its memory. Each way prints a line. */
#define _GNU_SOURCE
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/random.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int sender;

static void note_sender(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    sender = info->si_pid;
}

static int of_peer(void)
{
    int ends[2];
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 &&
                   getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
               ? peer.pid
               : -1;
}

static int of_handler(int number)
{
    const struct sigaction action = {.sa_sigaction = note_sender, .sa_flags = SA_SIGINFO};
    sigaction(number, &action, NULL);
    if (number == SIGPIPE) {
        int ends[2];
        if (pipe(ends) == 0 && close(ends[0]) == 0 && write(ends[1], "x", 1) < 0)
            return sender;
        return -1;
    }
    raise(number);
    return sender;
}

static int of_wait(void)
{
    sigset_t set;
    siginfo_t info = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    return sigwaitinfo(&set, &info) == SIGUSR1 ? info.si_pid : -1;
}

static int of_lock(void)
{
    const int one = open("locked", O_RDWR | O_CREAT, 0600), other = open("locked", O_RDWR);
    struct flock lock = {.l_type = F_WRLCK}, asked = {.l_type = F_WRLCK};
    return fcntl(one, F_SETLK, &lock) == 0 && fcntl(other, F_OFD_GETLK, &asked) == 0 ? asked.l_pid : -1;
}

static int of_netlink(void)
{
    const int fd = socket(AF_NETLINK, SOCK_RAW, 0);
    struct sockaddr_nl name = {.nl_family = AF_NETLINK};
    socklen_t size = sizeof name;
    if (bind(fd, (struct sockaddr *)&name, sizeof name) != 0 || getsockname(fd, (struct sockaddr *)&name, &size) != 0)
        return -1;
    return (int)name.nl_pid;
}

/* Whether the kernel can write there; it may not fault. */
static int can_write(char *at)
{
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1)
        return -1;
    const int could = read(ends[0], at, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return could;
}

/* A letter for each page behind a block that libc maps. Behind the first ones, which are the loader's, none can be written. */
static void behind(void)
{
    char *block = malloc(300000);
    char *end = (char *)(((uintptr_t)block + 300000 + 4095) & -4096ul);
    for (int page = 3; page < 60; page++)
        putchar(can_write(end + page * 4096) ? 'w' : '-');
    putchar('\n');
}

static __attribute__((noinline)) int any_left(void)
{
    volatile char left[64];
    int found = 0;
    for (size_t i = 0; i < sizeof left; i++)
        found |= left[i];
    return found != 0;
}

static __attribute__((noinline)) int left_at(size_t depth)
{
    volatile char *room = __builtin_alloca(depth);
    __asm__ volatile("" ::"r"(room));
    return any_left();
}

/* In which depths something is left, before anything else was done. */
static void below(void)
{
    static const size_t depths[] = {64, 400, 800, 1000, 1200, 1800, 2200, 2600, 3000, 3500, 4000};
    char found[sizeof depths / sizeof *depths + 1] = "";
    for (size_t i = sizeof depths / sizeof *depths; i-- > 0;)
        found[i] = left_at(depths[i]) ? '1' : '0';
    puts(found);
}

#define ROOM 16384
/* Of the room, libc's functions may use these bytes below their caller. */
#define USED 1024
#define FILLED 0x5a

static __attribute__((noinline)) void fill_room(void)
{
    char room[ROOM];
    memset(room, FILLED, sizeof room);
    __asm__ volatile("" ::"r"(room) : "memory");
}

static __attribute__((noinline)) int changed_in_room(void)
{
    volatile char room[ROOM];
    int changed = 0;
    for (size_t i = 0; i < sizeof room - USED; i++)
        changed += room[i] != FILLED;
    return changed;
}

/* How much of what was left on the stack is gone after system calls. */
static void after_calls(void)
{
    struct stat about;
    char byte;
    sigset_t mask;
    stack_t stack;
    char *const page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fill_room();
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)!read(fd, &byte, 1);
    (void)!write(fd, &byte, 1);
    fstat(fd, &about);
    lseek(fd, 0, SEEK_SET);
    fcntl(fd, F_GETFL);
    close(fd);
    access("/absent", R_OK);
    unlink("/absent");
    rename("/absent", "/absent");
    (void)!readlink("/absent", &byte, 1);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigaltstack(NULL, &stack);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    munmap(page, 4096);
    printf("%d\n", changed_in_room());
}

/* In which words below the stack something is left by functions of libc's, of which the runtime interposes some. */
static void after_functions(void)
{
    static unsigned char found[5][512];
    char directory[512];
    struct timespec now;
    unsigned char byte;
    for (int which = 0; which < 5; which++) {
        volatile unsigned char *const below = (unsigned char *)__builtin_frame_address(0) - 3 * sizeof found[0];
        for (size_t i = 0; i < sizeof found[0]; i++)
            below[i] = FILLED;
        switch (which) {
        case 0: time(NULL); break;
        case 1: clock_gettime(CLOCK_REALTIME, &now); break;
        case 2: (void)!getcwd(directory, sizeof directory); break;
        case 3: (void)!getrandom(&byte, 1, 0); break;
        case 4: getenv("ABSENT"); break;
        }
        for (size_t i = 0; i < sizeof found[0]; i++)
            found[which][i] = below[i] != FILLED;
    }
    for (int which = 0; which < 5; which++, putchar(' '))
        for (size_t i = 0; i < sizeof found[0]; i += 8)
            putchar(memchr(&found[which][i], 1, 8) ? '1' : '0');
}

#if defined(__x86_64__)
static volatile long long told_fault[3];
static sigjmp_buf fault_ends;

static void leave_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    siglongjmp(fault_ends, 1);
}

static void note_fault(int number, siginfo_t *info, void *context)
{
    const greg_t *const registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)number, (void)info;
    told_fault[0] = registers[REG_TRAPNO];
    told_fault[1] = registers[REG_ERR];
    told_fault[2] = registers[REG_CR2];
}

/* The last fault of a process, which handlers of any signal are told. It may have one of its own. */
static void of_fault(int faults)
{
    sigaction(SIGUSR1, &(struct sigaction){.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO}, NULL);
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = leave_fault, .sa_flags = SA_SIGINFO}, NULL);
    if (faults && !sigsetjmp(fault_ends, 1))
        *(volatile char *)64 = 1;
    raise(SIGUSR1);
    printf("%lld %lld %lld\n", told_fault[0], told_fault[1], told_fault[2]);
}
#endif

extern const ptrdiff_t __rseq_offset __attribute__((weak));

/* What the kernel writes for this thread, and leaves alone otherwise: its area of restartable sequences from the flags on. */
static void of_cells(int writes)
{
    volatile unsigned char *const area = &__rseq_offset ? (unsigned char *)__builtin_thread_pointer() + __rseq_offset : NULL;
    printf("%d %d\n", area ? area[16] : 0, area ? area[31] : 0);
    if (area && writes)
        area[16] = area[31] = 1;
}

/* Writes beyond a buffer of its own, up to main's arrays and further, or below these arrays. */
static void overrun(char **argv, int below)
{
    volatile char buffer[64];
    volatile char *const from = below ? (char *)argv - 256 : buffer, *const to = below ? (char *)argv - 64 : buffer + 4096;
    for (volatile char *at = from; at < to; at++)
        *at = 1;
    _exit(0);
}

/* The random bytes that the kernel gives each process. */
static void of_random(void)
{
    const unsigned char *bytes = (const unsigned char *)getauxval(AT_RANDOM);
    for (int i = 0; i < 16; i++)
        printf("%02x", bytes[i]);
}

static __attribute__((noinline)) int deep(int pages)
{
    volatile char frame[4096];
    memset((char *)frame, 1, sizeof frame);
    return pages ? deep(pages - 1) + frame[7] : frame[5];
}

/* CPU time that the process has taken, in nanoseconds. */
static void of_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    printf("%lld\n", now.tv_sec * 1000000000ll + now.tv_nsec);
}

static void *after_process(void *distance)
{
    *(int *)distance = gettid() - getpid();
    return NULL;
}

/* How long after the process, in numbers, a thread was made. */
static void of_thread(void)
{
    pthread_t thread;
    int distance = 0;
    if (pthread_create(&thread, NULL, after_process, &distance) == 0)
        pthread_join(thread, NULL);
    printf("%d\n", distance);
}

static int error_of(int result)
{
    return result ? errno : 0;
}

/* What is known of a page far below the stack, and whether something can be mapped there. */
static void under(void)
{
    char *const page = (char *)(((uintptr_t)__builtin_frame_address(0) - (3 << 20)) & -4096ul);
    const int told = error_of(msync(page, 4096, MS_ASYNC)), dropped = error_of(madvise(page, 4096, MADV_DONTNEED));
    char *hinted = mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int is_there = hinted == page;
    munmap(hinted, 4096);
    char *fixed = mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    printf("%d %d %d %d\n", told, dropped, is_there, fixed == page);
}

/* Whether as much of the stack is mapped as the kernel maps at least, but for the environment and two random pages. */
static void around(void)
{
    char *const page = (char *)(((uintptr_t)__builtin_frame_address(0) - (112 << 10)) & -4096ul);
    printf("%d\n", error_of(msync(page, 4096, MS_ASYNC)));
}

/* Read-only memory that is as it is through what was done before main: filled by a constructor, and relocated. */
static int place;
static void *const relocated[1024] __attribute__((aligned(4096))) = {[0 ... 1023] = &place};
static int *filled;

__attribute__((constructor)) static void fill(void)
{
    filled = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 1024; i++)
        filled[i] = i;
    mprotect(filled, 4096, PROT_READ);
}

static void show_constant(void)
{
    void *const volatile *pointers = relocated;
    volatile int *numbers = filled;
    printf("%d %d\n", pointers[500] == &place, numbers[7]);
}

static void advise(const char *which)
{
    static const int advice[] = {MADV_DONTNEED, MADV_FREE, MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT, MADV_WIPEONFORK, MADV_REMOVE};
    madvise(filled, 4096, advice[which[0] - '0']);
    madvise((void *)relocated, sizeof relocated, advice[which[0] - '0']);
    show_constant();
}

/* Where the arguments and the environment are, against main's frame, and what lies before them. */
static void show_place(int argc, char **argv)
{
    const char local = 0;
    const uintptr_t here = (uintptr_t)&local;
    printf("%d %d %d %d\n", ((const long *)argv)[-1] == argc, (uintptr_t)argv > here, (uintptr_t)environ > here,
           (uintptr_t)argv[0] > here);
}

/* What lies behind the arguments. */
static void look_behind(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        for (const char *at = argv[i] + strlen(argv[i]) + 1, *end = at + 24; at < end; at++)
            putchar(*at ? *at : '|');
    putchar('\n');
}

static volatile int told_flags = -1;
static volatile size_t told_size;

static void note_stack(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    told_flags = ((ucontext_t *)context)->uc_stack.ss_flags;
    told_size = ((ucontext_t *)context)->uc_stack.ss_size;
}

/* What a handler is told that runs before main looks at its arguments, and what the process has after it. */
static void show_stack(void)
{
    stack_t now = {0};
    sigaltstack(NULL, &now);
    printf("%d %zu, %d %zu\n", told_flags, told_size, now.ss_flags, now.ss_size);
}

/* Drops the pages below its stack's end by an instruction of its own: nothing of the process's own is there. */
static long drop_below(void)
{
    enum { PAGE = 4096, PAGES = 16 };
    volatile char *const low = alloca(2 * PAGES * PAGE);
    low[PAGES * PAGE] = 1;
    const uintptr_t from = ((uintptr_t)__builtin_frame_address(0) - 3 * PAGES * PAGE) & -(uintptr_t)PAGE;
    long result = SYS_madvise;
#if defined(__x86_64__)
    __asm__ volatile("mov %%rsp, %%rbx\n\tlea 65536(%%rdi), %%rsp\n\tadd $256, %%rsp\n\tsyscall\n\tmov %%rbx, %%rsp"
                     : "+a"(result)
                     : "D"(from), "S"((long)PAGES * PAGE), "d"((long)MADV_DONTNEED)
                     : "rbx", "rcx", "r11", "memory");
#else
    result = madvise((void *)from, PAGES * PAGE, MADV_DONTNEED);
#endif
    return result;
}

#if defined(__x86_64__)
/* How many vector registers lose their upper half in a system call of the tool's own, wherever the stack is within 64 bytes. */
static int lost_vectors(void)
{
    int lost = 0;
    if (!__builtin_cpu_supports("avx"))
        return 0;
    for (long below = 256; below < 256 + 64; below += 8) {
        long number = SYS_getuid;
        unsigned upper;
        __asm__ volatile("mov %%rsp, %%rbx\n\tand $-64, %%rsp\n\tsub %2, %%rsp\n\t"
                         "vxorps %%ymm7, %%ymm7, %%ymm7\n\tvcmpeqps %%ymm7, %%ymm7, %%ymm7\n\tsyscall\n\t"
                         "vmovmskps %%ymm7, %1\n\tvzeroupper\n\tmov %%rbx, %%rsp"
                         : "+a"(number), "=r"(upper)
                         : "r"(below)
                         : "rbx", "rcx", "r11", "xmm7", "memory", "cc");
        lost += upper != 0xff;
    }
    return lost;
}
#else
static int lost_vectors(void)
{
    return 0;
}
#endif

int main(int argc, char **argv)
{
    if (argc == 4) {
        struct sigaction action = {.sa_sigaction = note_stack, .sa_flags = SA_SIGINFO | SA_NODEFER};
        sigfillset(&action.sa_mask);
        sigaction(SIGTRAP, &action, NULL);
        raise(SIGTRAP);
    }
    if (argc < 2)
        return 2;
    const char *how = argv[1];
    if (strcmp(how, "behind") == 0)
        behind();
    else if (strcmp(how, "below") == 0)
        below();
    else if (strcmp(how, "dropped") == 0)
        printf("dropped %ld\n", drop_below());
    else if (strcmp(how, "vectors") == 0)
        printf("lost %d\n", lost_vectors());
    else if (strcmp(how, "calls") == 0)
        after_calls();
    else if (strcmp(how, "functions") == 0)
        after_functions();
#if defined(__x86_64__)
    else if (strcmp(how, "fault") == 0)
        of_fault(argc > 2);
#endif
    else if (strcmp(how, "cells") == 0)
        of_cells(argc > 2);
    else if (strcmp(how, "over") == 0)
        overrun(argv, argc > 2);
    else if (strcmp(how, "clock") == 0)
        of_clock(argc > 2 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID);
    else if (strcmp(how, "thread") == 0)
        of_thread();
    else if (strcmp(how, "random") == 0)
        of_random();
    else if (strcmp(how, "deep") == 0)
        printf("%d\n", deep(1000) != 0);
    else if (strcmp(how, "under") == 0)
        under();
    else if (strcmp(how, "around") == 0)
        around();
    else if (strcmp(how, "advise") == 0 && argc > 2)
        advise(argv[2]);
    else if (strcmp(how, "constant") == 0)
        show_constant();
    else if (strcmp(how, "place") == 0)
        show_place(argc, argv);
    else if (strcmp(how, "last") == 0)
        look_behind(argc, argv);
    else if (strcmp(how, "stack") == 0)
        show_stack();
    else if (strcmp(how, "peer") == 0)
        printf("%d\n", of_peer());
    else if (strcmp(how, "handler") == 0)
        printf("%d\n", of_handler(SIGUSR1));
    else if (strcmp(how, "pipe") == 0)
        printf("%d\n", of_handler(SIGPIPE));
    else if (strcmp(how, "wait") == 0)
        printf("%d\n", of_wait());
    else if (strcmp(how, "lock") == 0)
        printf("%d\n", of_lock());
    else if (strcmp(how, "netlink") == 0)
        printf("%d\n", of_netlink());
    else
        return 2;
    return 0;
}
