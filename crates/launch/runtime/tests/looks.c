/* A tool that sets things up as a compiler does, and then looks at its arguments. Before that it does one thing more, or nothing
 * (EARLY): each is one that could go into a snapshot of that moment wrongly. It prints whatever may have. Built as a
 * program, or as program and library (LIBRARY, APART). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
enum { IS_INEXACT = 1 << 5 };
#endif

int look(int argc, const char *const *argv, const char *text);
extern void *__libc_stack_end;

#ifndef APART
int look(int argc, const char *const *argv, const char *text)
{
    /* As LLVM's do: pointers first, then strings. */
    const char **copies = malloc((size_t)(argc + 1) * sizeof *copies);
    for (int i = 0; i < argc; i++)
        copies[i] = argv[i];
    size_t length = 0;
    for (int i = 0; i < argc; i++)
        length += strlen(copies[i]);
    printf("look %d %s %zu\n", argc, text, length);
    for (int i = 0; i < argc; i++)
        printf("  %s\n", copies[i]);
    free(copies);
    return argc;
}
#endif

#ifndef LIBRARY
#ifndef EARLY
#define EARLY NOTHING
#endif
enum { NOTHING, UNSET, SET, ARGUMENT, FILES, DERIVED, OTHERS, WALKS, MAPS, SMALL_STACK, ODD, USAGE, COPIES, NAME, NAMED,
       WRITES_NAME, WRITES_POINTER, SETS, CLOCK, TICKS, FAULTS, ASKS, BLOCKS, OWN_LINE, CONSTANT, VALUES, SECONDS, PROCESSOR,
       ARRAY, WAKES, BEHIND, OVERWRITES, LAST, PROTECTS, FIRST, ABOVE, BETWEEN, LENGTHS, ALIGNED, HASHED, PACKED, INSIDE, FAR,
       MAPS_FILE, ENDS_RAW, EXECUTES, WRITES_AROUND, LEAVES, PLACE, TRAPS, RANDOM, DISTANCE, TRAPS_TWICE,
       NUMBER_THERE, ON_STACK, WORKS, RANGE, EXACT, PAGES, CHUNKS, INEXACT, PAGE_BIT, HIGH_PAGE_BIT, LAST_PAGE_BIT, PARITY, PADDED,
       /* A constructor has kept the list of arguments. */
       LIST, LIST_COPIES, LIST_NUMBER, LIST_WRITES, LIST_SWAPS, LIST_GROWS, LIST_BEHIND, LIST_LATER,
       /* It is found by libc's pointer. */
       END_WRITES, END_BEHIND,
       /* Beside what is each process's own. */
       BESIDE_RANDOM, BIT_OF_RANDOM, KERNELS_AREA, KERNELS_NUMBER };

/* What a constructor keeps besides: the list, or parts of its address. */
#ifndef KEEPS
#define KEEPS NO_LIST
#endif
enum { NO_LIST, WHOLE_LIST, PARTS_OF_LIST };

extern char **environ;
static int kept_argc, early_result;
static char *kept_block;
static char **kept_argv, **kept_list;
static struct {
    uint32_t before;
    uint16_t low, middle;
} parts;
static const char *kept_text = "none";
static volatile int *kept_number;
static int was_number;
static struct timespec kept_time;
static volatile unsigned long kept_ticks;
static char handler_stack[16384];
static sigjmp_buf back;
static char packed[8192];

static void handler(int signal)
{
    printf("signal %d\n", signal);
}

static void jump_back(int signal)
{
    siglongjmp(back, signal);
}

/* As a C++ program would: the first call of malloc asks for random bytes. */
__attribute__((constructor)) static void construct(void)
{
    void *volatile block = malloc(10);
    free(block);
}

__attribute__((constructor)) static void keep(int argc, char **argv)
{
    (void)argc;
    kept_list = (EARLY >= LIST && EARLY < END_WRITES) || KEEPS == WHOLE_LIST ? argv : NULL;
    if (KEEPS == PARTS_OF_LIST) {
        parts.middle = (uint16_t)((uintptr_t)argv >> 16);
        parts.low = (uint16_t)(uintptr_t)argv;
    }
}

static int has_parts_of(char **argv)
{
    return parts.middle == (uint16_t)((uintptr_t)argv >> 16) && parts.low == (uint16_t)(uintptr_t)argv;
}

static int bit_of_random(void)
{
    return ((const char *)getauxval(AT_RANDOM))[3] >> 2 & 1;
}

/* The kernel writes there, but not to the last bytes. */
static volatile char *last_of_area(void)
{
    return (volatile char *)__builtin_thread_pointer() + __rseq_offset + 31;
}

/* Where glibc keeps it on x86-64. To look for it would take a system call. */
static volatile int *number_of_thread(void)
{
    return (volatile int *)((volatile char *)__builtin_thread_pointer() + 0x2d0);
}

/* The word in which a tool finds the size of a page, behind the environment. */
static unsigned long *page_size(void)
{
    unsigned long *at = kept_list ? (unsigned long *)kept_list : (unsigned long *)__libc_stack_end + 1;
    for (int ends = 0; ends < 2; at++)
        ends += !*at;
    while (*at && *at != AT_PAGESZ)
        at += 2;
    return &at[1];
}

/* As it is after a change. */
static int own_line(char **argv)
{
    char text[4096];
    for (char **argument = argv; *argument; argument++)
        if (**argument)
            **argument = 'Y';
    const int fd = open("/proc/self/cmdline", O_RDONLY);
    const ssize_t length = read(fd, text, sizeof text);
    int sum = 0;
    for (ssize_t i = 0; i < length; i++)
        sum = sum * 31 + text[i];
    close(fd);
    return sum;
}

/* What a function finds that does not write before it reads, far below the frames of libc's functions. */
#define LEFT 8192
static __attribute__((noinline)) void leave(int value)
{
    char room[2 * LEFT];
    memset(room, value, sizeof room);
    __asm__ volatile("" ::"r"(room) : "memory");
}

static __attribute__((noinline)) int left(void)
{
    volatile char room[2 * LEFT];
    int sum = 0;
    for (size_t i = 0; i < LEFT; i++)
        sum += room[i];
    return sum;
}

/* A signal stack in a frame that returns: later frames lie in it, and the kernel says so. */
static __attribute__((noinline)) void leave_stack(void)
{
    char room[64 * 1024];
    sigaltstack(&(stack_t){.ss_sp = room, .ss_size = sizeof room}, NULL);
    __asm__ volatile("" ::"r"(room) : "memory");
}

static __attribute__((noinline)) int flags_of_stack(void)
{
    char room[4096];
    stack_t now;
    __asm__ volatile("" ::"r"(room) : "memory");
    return sigaltstack(NULL, &now) == 0 ? now.ss_flags : -1;
}

static void skip(int signal)
{
    early_result = signal;
}

/* One bit that is made of an address alone. */
static unsigned long one_bit(int argc, char **argv)
{
    const uintptr_t word = (uintptr_t)argv[argc > 1];
    char **last = environ;
    while (last[1])
        last++;
    switch (EARLY) {
    case PAGE_BIT: return word >> 12 & 1;
    case HIGH_PAGE_BIT: return word >> 19 & 1;
    case LAST_PAGE_BIT: return (uintptr_t)*last >> 14 & 1;
    default: return (unsigned long)__builtin_parity(word & 0xff);
    }
}

static void before(int argc, char **argv)
{
    static char other[] = "other";
    switch (EARLY) {
    case UNSET: kept_text = getenv("HS_EARLY"); break;
    case SET: kept_text = getenv("HS_ALWAYS"); break;
    case CONSTANT: kept_text = getenv("HS_CONSTANT"); break;
    case VALUES:
        for (char **variable = environ; *variable; variable++)
            for (char *at = *variable; *at; at++)
                early_result = early_result * 31 + *at;
        break;
    case ARGUMENT: early_result = argc > 1 ? argv[1][0] : 0; break;
    case FILES: early_result = access("/", R_OK); break;
    case DERIVED: early_result = argc * 2; break;
    case ODD: early_result = argc & 1; break;
    case USAGE:
        if (argc == 1)
            exit(3);
        break;
    case WALKS:
        for (char **variable = environ; *variable; variable++)
            early_result += strncmp(*variable, "HS_EARLY=", 9) == 0;
        break;
    case SMALL_STACK: early_result = sigaltstack(&(stack_t){.ss_sp = handler_stack, .ss_size = 64}, NULL); break;
    case MAPS: kept_text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); break;
    case COPIES:
        kept_argv = malloc((size_t)(argc + 1) * sizeof *kept_argv);
        memcpy(kept_argv, argv, (size_t)(argc + 1) * sizeof *kept_argv);
        break;
    case NAME: early_result = (int)strlen(argv[0]) + *program_invocation_short_name; break;
    case NAMED: early_result = getopt(argc, argv, "So"); break;
    case WRITES_NAME: argv[0][0] = 'X'; break;
    case WRITES_POINTER:
        if (argc > 1)
            argv[1] = other;
        break;
    case SETS: setenv("HS_SET", "by itself", 1); break;
    case CLOCK: clock_gettime(CLOCK_REALTIME, &kept_time); break;
    case SECONDS: {
        /* Past libc: seconds are equal in several runs. */
        void *kernel = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
        time_t (*seconds)(time_t *) = (time_t (*)(time_t *))dlsym(kernel, "__vdso_time");
        kept_time.tv_sec = seconds(NULL);
        break;
    }
#if defined(__x86_64__)
    case TICKS: kept_ticks = __builtin_ia32_rdtsc(); break;
#endif
    case FAULTS:
        sigaction(SIGSEGV, &(struct sigaction){.sa_handler = jump_back, .sa_flags = SA_NODEFER}, NULL);
        early_result = sigsetjmp(back, 0);
        if (!early_result)
            *(volatile int *)8 = 1;
        signal(SIGSEGV, SIG_DFL);
        break;
    case ASKS: kept_text = argc > 1 ? getenv(argv[1]) : "no name"; break;
    /* For some milliseconds: each product needs the one before. */
    case WORKS: {
        uint64_t product = (uint64_t)kept_argc;
        for (int i = 0; i < 8000000; i++)
            product = product * 6364136223846793005u + 1;
        early_result = product != 0;
        break;
    }
    case BLOCKS: sigprocmask(SIG_BLOCK, &(sigset_t){{1ul << (SIGUSR2 - 1)}}, NULL); break;
    case PROCESSOR: early_result = sched_getcpu() >= 0; break;
    /* Past libc and the kernel: the limit of a segment has the number of the processor. */
    case NUMBER_THERE: __asm__("lsl %1, %0" : "=r"(kept_ticks) : "r"(0x7bul)); break;
    case ON_STACK:
        leave_stack();
        early_result = flags_of_stack();
        break;
    case OWN_LINE: early_result = own_line(argv); break;
    /* The variables of the array that the kernel has made. */
    case ARRAY:
        for (char **variable = (char **)__libc_stack_end + 1 + argc + 1; *variable; variable++)
            early_result++;
        break;
    case WAKES:
        if (argc > 1)
            early_result = syscall(SYS_futex, (uintptr_t)argv[1] & -4ul, FUTEX_WAKE, 1, 0, 0, 0) == 0;
        break;
    /* By mistake, what lies behind a value: HS_ALWAYS. */
    case BEHIND:
        for (const char *value = getenv("HS_CONSTANT"), *at = value + strlen(value); at < value + strlen(value) + 18; at++)
            early_result = early_result * 31 + *at;
        break;
    /* The same behind the last variable. */
    case LAST: {
        char **last = environ;
        while (last[1])
            last++;
        kept_text = *last + strlen(*last) + 1;
        early_result = *kept_text;
        break;
    }
    /* What lies before the environment, and before the program's name. */
    case FIRST: early_result = environ[0][-2]; break;
    case ABOVE: early_result = argv[0][-1]; break;
    /* What can be made of addresses. */
    case BETWEEN: early_result = argc > 1 && argv[1] == argv[0] + strlen(argv[0]) + 1; break;
    case LENGTHS: early_result = argc > 2 ? (int)(argv[2] - argv[1]) : (int)(environ[0] - argv[0]); break;
    case RANGE: early_result = argc > 4 && argv[4] - argv[3] > 8 && argv[4] - argv[3] < 64; break;
    case EXACT: early_result = argc > 3 ? (argv[2] - argv[1] == 3) + 2 * (argv[3] - argv[2] == 1) : 0; break;
    case PAGES: kept_ticks = (uintptr_t)argv[argc > 1] >> 12; break;
    case CHUNKS: kept_ticks = (uintptr_t)environ[0] >> 20; break;
    case PAGE_BIT:
    case HIGH_PAGE_BIT:
    case LAST_PAGE_BIT:
    case PARITY: kept_ticks = one_bit(argc, argv); break;
    /* The kernel writes zeros between the flags and the size. */
    case PADDED: {
        stack_t stack;
        memset(&stack, 7, sizeof stack);
        sigaltstack(NULL, &stack);
        early_result = ((unsigned char *)&stack)[offsetof(stack_t, ss_flags) + sizeof stack.ss_flags];
        break;
    }
#if defined(__x86_64__)
    /* A flag of the vector unit, before a function that ends the watch. */
    case INEXACT: {
        volatile double third = 1;
        if (argc > 2 && argv[2] - argv[1] < 20)
            third /= 3;
        kept_time.tv_sec = time(NULL);
        early_result = (__builtin_ia32_stmxcsr() & IS_INEXACT) != 0;
        break;
    }
#endif
    case ALIGNED: early_result = argc > 1 ? ((uintptr_t)argv[1] % 16) == ((uintptr_t)argv[argc] % 16) : 0; break;
    case HASHED:
        kept_argv = calloc(64, sizeof *kept_argv);
        for (int i = 0; i < argc; i++)
            kept_argv[((uintptr_t)argv[i] >> 4 ^ (uintptr_t)argv[i] >> 9) % 64] = argv[i];
        break;
    case PACKED: memcpy(packed + 1, argv, (size_t)argc * sizeof *argv); break;
    case INSIDE:
        kept_argv = malloc((size_t)(argc + 1) * sizeof *kept_argv);
        for (int i = 0; i < argc; i++)
            kept_argv[i] = argv[i] + 0;
        kept_argv[0] = strrchr(argv[0], 'o');
        kept_argv[argc] = NULL;
        break;
    case FAR: early_result = (int)strlen(environ[0] + 100); break;
    /* The file is written when all but its place is known. */
    case MAPS_FILE: {
        const int file = open("/proc/self/cmdline", O_RDONLY);
        const char *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 0, 0);
        early_result = at == MAP_FAILED ? -errno : *at;
        close(file);
        break;
    }
    case LEAVES: leave(argc); break;
    case PLACE: early_result = (int)((uintptr_t)argv & 15); break;
    case TRAPS:
        signal(SIGTRAP, skip);
#if defined(__x86_64__)
        __asm__ volatile("int3");
#endif
        break;
#if defined(__x86_64__)
    /* libc's action has no SA_SIGINFO: the kernel writes no code then. */
    case TRAPS_TWICE:
        signal(SIGTRAP, skip);
        signal(SIGILL, jump_back);
        __asm__ volatile("int3");
        if (!sigsetjmp(back, 1))
            __asm__ volatile("ud2");
        break;
#endif
    case RANDOM: *(char *)getauxval(AT_RANDOM) = 'r'; break;
    case DISTANCE: early_result = (int)(getenv("HS_ALWAYS") - getenv("HS_CONSTANT")); break;
    case LIST: early_result = kept_list == argv; break;
    case LIST_COPIES:
        kept_argv = malloc((size_t)(argc + 1) * sizeof *kept_argv);
        memcpy(kept_argv, kept_list, (size_t)(argc + 1) * sizeof *kept_argv);
        break;
    case LIST_NUMBER: early_result = (int)((long *)kept_list)[-1] * 2 + (kept_list[argc] == NULL); break;
    case LIST_WRITES:
        if (argc > 1)
            kept_list[1] = other;
        break;
    case LIST_SWAPS:
        if (argc > 2) {
            char *const second = argv[2];
            argv[2] = kept_list[1];
            kept_list[1] = second;
        }
        break;
    case LIST_GROWS: kept_list[argc] = other; break;
    case LIST_BEHIND:
    case END_BEHIND: *page_size() += (unsigned long)argc; break;
    case END_WRITES:
        if (argc > 1)
            ((char **)__libc_stack_end)[2] = other;
        break;
    case BESIDE_RANDOM: ((char *)getauxval(AT_RANDOM))[16] = (char)('0' + argc); break;
    case BIT_OF_RANDOM: early_result = bit_of_random(); break;
    case KERNELS_AREA:
        if (__rseq_size)
            *last_of_area() = (char)('0' + argc);
        break;
    case KERNELS_NUMBER:
        kept_number = number_of_thread();
        was_number = *kept_number;
        *kept_number = 7000 + argc;
        break;
    /* In a fresh process this is about the stack. */
    case PROTECTS: early_result = mprotect((void *)((uintptr_t)environ[0] & -4096ul), 4096, PROT_READ | PROT_WRITE); break;
    }
}

/* Whether the clock was read after the input was written. */
static int is_later(void)
{
    struct stat input;
    if ((EARLY != CLOCK && EARLY != SECONDS) || fstat(0, &input) != 0)
        return -1;
    const struct timespec *written = &input.st_mtim;
    /* This clock is a tick behind the one that stamps files. */
    if (EARLY == SECONDS)
        return kept_time.tv_sec + 1 >= written->tv_sec;
    return kept_time.tv_sec > written->tv_sec ||
           (kept_time.tv_sec == written->tv_sec && kept_time.tv_nsec >= written->tv_nsec);
}

static void show(int argc, char **argv, int number)
{
    sigset_t mask;
    const int result = EARLY == BIT_OF_RANDOM ? 0 : early_result;
    printf("%d %d %d %d %s %d\n", argc, number, kept_argc, result, kept_text ? kept_text : "unset", is_later());
    if (EARLY == WORKS)
        printf("worked %d\n", clock() >= CLOCKS_PER_SEC / 333);
    for (int i = 0; EARLY == HASHED && i < argc; i++)
        printf("found %d\n", kept_argv[((uintptr_t)argv[i] >> 4 ^ (uintptr_t)argv[i] >> 9) % 64] != NULL);
    if (EARLY == PAGES)
        printf("page %d\n", kept_ticks == (uintptr_t)argv[argc > 1] >> 12);
    if (EARLY >= PAGE_BIT && EARLY <= PARITY)
        printf("bit %d\n", kept_ticks == one_bit(argc, argv));
    if (EARLY == CHUNKS)
        printf("chunk %d\n", kept_ticks == (uintptr_t)environ[0] >> 20);
    for (int i = 0; EARLY == PACKED && i < argc; i++) {
        char *argument;
        memcpy(&argument, packed + 1 + (size_t)i * sizeof argument, sizeof argument);
        printf("packed %s\n", argument);
    }
    for (int i = 0; EARLY != HASHED && kept_argv && i < argc; i++)
        printf("kept %s\n", kept_argv[i]);
    for (int i = 0; kept_list && i < argc; i++)
        printf("list %s %d\n", kept_list[i], kept_list[i] == argv[i]);
    if (KEEPS == PARTS_OF_LIST)
        printf("parts %d\n", has_parts_of(argv));
    if (EARLY == BESIDE_RANDOM)
        printf("beside %c\n", ((char *)getauxval(AT_RANDOM))[16]);
    if (EARLY == BIT_OF_RANDOM)
        printf("bit %d\n", early_result == bit_of_random());
    if (EARLY == KERNELS_AREA)
        printf("area %d\n", !__rseq_size || *last_of_area() == '0' + argc);
    if (EARLY == KERNELS_NUMBER)
        printf("number %d %d\n", *kept_number, was_number == getpid());
    if (EARLY == END_WRITES)
        printf("second %s\n", argc > 1 ? ((char **)__libc_stack_end)[2] : "none");
    if (EARLY == LIST_BEHIND || EARLY == END_BEHIND)
        printf("page size %lu\n", *page_size());
    if (kept_list)
        printf("list ends %d %d\n", EARLY == LIST_GROWS || kept_list[argc] == NULL, kept_list + argc + 1 == environ);
    for (char **variable = environ; *variable; variable++)
        puts(*variable);
    printf("name %s %s\n", program_invocation_name, program_invocation_short_name);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    printf("block %c %c %d\n", kept_block[0], kept_block[99999], sigismember(&mask, SIGUSR2));
}

/* Sends itself a signal, without its number. */
static void interrupt(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        exit(9);
    close(ends[0]);
    if (write(ends[1], "x", 1) == 1)
        exit(9);
    close(ends[1]);
}

int main(int argc, char **argv)
{
    const stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    volatile int number = argc;
    struct sigaction action, fault;
    int skipped = EARLY == OTHERS;
    kept_argc = argc;
    kept_block = malloc(100000);
    memset(kept_block, 'b', 100000);
    sigaltstack(&stack, NULL);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_ONSTACK}, NULL);
    sigaction(SIGSYS, &(struct sigaction){.sa_handler = handler}, NULL);
    sigaction(SIGSEGV, NULL, &fault);
    before(argc, argv);
    if (EARLY == LEAVES)
        early_result = left();
    int looked = look(argc - skipped, (const char *const *)argv + skipped, "tool");
    printf("%d %d\n", looked, fault.sa_handler == SIG_DFL);
    show(argc, argv, number);
    if (EARLY == RANDOM)
        printf("random %c\n", *(char *)getauxval(AT_RANDOM));
    interrupt();
    sigaction(SIGSYS, NULL, &action);
    printf("handler %d\n", action.sa_handler == handler);
    stack_t old;
    sigaltstack(NULL, &old);
    printf("stack %d %zu %d\n", old.ss_sp == stack.ss_sp, old.ss_size, old.ss_flags);
    /* What the next run must not see. */
    number = kept_argc = -1;
    memset(kept_block, 'x', 100000);
    kept_text = "late";
    early_result = 77;
    signal(SIGPIPE, SIG_IGN);
    free(kept_block);
    kept_block = malloc(900000);
    memset(kept_block, 'y', 900000);
    for (int i = 0; EARLY == OVERWRITES && i < argc; i++)
        memset(argv[i], 'z', strlen(argv[i]));
    for (int i = 0; EARLY == LIST_LATER && i < argc; i++)
        kept_list[i] = i % 2 ? NULL : program_invocation_name;
    /* From before the first one to behind the last one. */
    if (EARLY == WRITES_AROUND)
        memset(argv[0] - 20, 'z', strlen(argv[0]) + 60);
    if (EARLY == ENDS_RAW || EARLY == EXECUTES) {
        for (int i = 1; i < argc; i++)
            argv[i][strlen(argv[i])] = 'z';
        printf("joined %s\n", argv[argc > 1]);
        fflush(stdout);
        if (EARLY == EXECUTES)
            execl("/bin/echo", "echo", argv[argc > 1], (char *)NULL);
        syscall(SYS_exit_group, argc);
    }
    return argc;
}
#endif
