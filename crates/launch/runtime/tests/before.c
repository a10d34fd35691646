/* A program whose constructor does one thing, chosen by -DLOOK=name, and whose main prints what came of it. FILE_PATH is a
 * file that it may read.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "kernels_function.h"

#ifndef FILE_PATH
#define FILE_PATH "/absent"
#endif

extern char **environ;
static char text[512];
static long number;
static int kept, numbered;
static int *allocated;
static char **arguments;

static inline void nothing(int argc, char **argv) { (void)argc, (void)argv; }

static void read_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[length < 0 ? 0 : length] = 0;
    if (fd >= 0)
        close(fd);
}

static inline void config(int argc, char **argv) { nothing(argc, argv); read_file(FILE_PATH); }
static inline void relative(int argc, char **argv) { nothing(argc, argv); read_file("in"); }
static inline void random_device(int argc, char **argv) { nothing(argc, argv); read_file("/dev/urandom"); }
static inline void status(int argc, char **argv) { nothing(argc, argv); read_file("/proc/self/stat"); }
static inline void indirect(int argc, char **argv) { nothing(argc, argv); read_file("/etc/../proc/self/stat"); }
static inline void exists(int argc, char **argv) { nothing(argc, argv); number = access(FILE_PATH, F_OK); }
static inline void link_text(int argc, char **argv)
{
    nothing(argc, argv);
    ssize_t length = readlink(FILE_PATH, text, sizeof text - 1);
    text[length < 0 ? 0 : length] = 0;
}
static inline void error(int argc, char **argv)
{
    nothing(argc, argv);
    number = access(FILE_PATH "/below", F_OK) == 0 ? 0 : errno;
    errno = 0;
}
static inline void error_of_open(int argc, char **argv)
{
    nothing(argc, argv);
    int fd = open(FILE_PATH "/below/it", O_RDONLY | O_CLOEXEC);
    number = fd < 0 ? errno : 0;
    errno = 0;
}
static inline void unread(int argc, char **argv)
{
    nothing(argc, argv);
    struct stat of = {0};
    number = stat(FILE_PATH, &of) == 0 && of.st_mtime >= of.st_atime;
}
static inline void own_path(int argc, char **argv)
{
    nothing(argc, argv);
    ssize_t length = readlink("/proc/self/exe", text, sizeof text - 1);
    text[length < 0 ? 0 : length] = 0;
}
static inline void times_of_the_kernel(int argc, char **argv)
{
    nothing(argc, argv);
    struct stat of = {0};
    number = stat("/proc/filesystems", &of) == 0 ? of.st_mtime : 0;
}
static inline void permission(int argc, char **argv) { nothing(argc, argv); number = access(FILE_PATH, X_OK); }
static inline void random_bytes(int argc, char **argv)
{
    nothing(argc, argv);
    syscall(SYS_getrandom, &number, sizeof number, 0);
}
static inline void random_byte(int argc, char **argv)
{
    char probe;
    nothing(argc, argv);
    number = syscall(SYS_getrandom, &probe, 1, 0);
}
static inline void kept_byte(int argc, char **argv)
{
    nothing(argc, argv);
    syscall(SYS_getrandom, text, 1, 0);
}
#ifdef __x86_64__
static inline void random_instruction(int argc, char **argv)
{
    nothing(argc, argv);
    __asm__ volatile("rdrand %0" : "=r"(number));
}
static inline void counter(int argc, char **argv)
{
    nothing(argc, argv);
    number = (long)__builtin_ia32_rdtsc();
}
static inline void old_call(int argc, char **argv)
{
    nothing(argc, argv);
    __asm__ volatile("int $0x80" : "=a"(number) : "a"(20) : "memory");
}
#elif defined(__aarch64__)
static inline void random_instruction(int argc, char **argv)
{
    nothing(argc, argv);
    __asm__ volatile("mrs %0, s3_3_c2_c4_0" : "=r"(number) : : "cc"); /* RNDR */
}
static inline void counter(int argc, char **argv)
{
    nothing(argc, argv);
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(number));
}
#endif
static inline void timespec(int argc, char **argv)
{
    struct timespec now;
    nothing(argc, argv);
    timespec_get(&now, TIME_UTC);
    number = now.tv_nsec;
}
static inline void used_time(int argc, char **argv) { nothing(argc, argv); number = clock(); }
static inline void process(int argc, char **argv)
{
    nothing(argc, argv);
    number = syscall(SYS_getpid);
    numbered = 1;
}
static inline void thread_number(int argc, char **argv)
{
    nothing(argc, argv);
    number = syscall(SYS_gettid);
    numbered = 1;
}
static inline void group(int argc, char **argv) { nothing(argc, argv); number = getpgrp(); }
static inline void mask(int argc, char **argv)
{
    nothing(argc, argv);
    number = umask(0);
    umask((mode_t)number);
}
static inline void limit(int argc, char **argv)
{
    struct rlimit files;
    nothing(argc, argv);
    getrlimit(RLIMIT_NOFILE, &files);
    number = (long)files.rlim_cur;
}
static inline void processors(int argc, char **argv)
{
    cpu_set_t set;
    nothing(argc, argv);
    sched_getaffinity(0, sizeof set, &set);
    number = CPU_COUNT(&set);
}
static inline void processor(int argc, char **argv) { nothing(argc, argv); number = sched_getcpu(); }
static inline void terminal(int argc, char **argv) { nothing(argc, argv); number = isatty(2); }
/* Far enough down the stack that nothing of it is left in the frame of main's caller, parts of which libc does not write. */
static __attribute__((noinline)) long ask_deep_down(int depth)
{
    volatile char room[256];
    struct stat seen;
    room[depth] = 1;
    if (depth > 0)
        return ask_deep_down(depth - 1) + room[depth] - 1;
    return fstat(2, &seen) == 0 ? (long)(seen.st_mode & S_IFMT) : -1;
}
static inline void stream(int argc, char **argv)
{
    nothing(argc, argv);
    number = ask_deep_down(3) * 4 + (lseek(2, 0, SEEK_CUR) == -1 ? 1 : 0);
}
static inline void stream_mode(int argc, char **argv)
{
    struct stat seen;
    nothing(argc, argv);
    number = fstat(2, &seen) == 0 && (seen.st_mode & S_IWGRP) != 0;
}
static inline void stream_empty(int argc, char **argv)
{
    struct stat seen;
    nothing(argc, argv);
    number = fstat(2, &seen) == 0 && seen.st_size == 0;
}
static inline void stream_age(int argc, char **argv)
{
    struct stat seen;
    nothing(argc, argv);
    number = fstat(2, &seen) == 0 && seen.st_mtime > 1000000000;
}
static inline void stream_device(int argc, char **argv)
{
    struct stat seen;
    nothing(argc, argv);
    number = fstat(2, &seen) == 0 && (seen.st_dev >> 8) != 0;
}
static inline void stream_times(int argc, char **argv)
{
    struct stat seen;
    nothing(argc, argv);
    number = fstat(2, &seen) == 0 && seen.st_ctime > seen.st_mtime;
}
static inline void stream_read(int argc, char **argv)
{
    struct stat seen;
    nothing(argc, argv);
    number = fstat(2, &seen) == 0 && seen.st_atime > seen.st_mtime;
}
static inline void stream_and_file(int argc, char **argv)
{
    struct stat seen, other;
    nothing(argc, argv);
    number = fstat(2, &seen) == 0 && stat("/etc/passwd", &other) == 0 && seen.st_ino == other.st_ino;
}
/* As GnuTLS asks for its settings. A file that is missing can be no stream. */
static inline void stream_and_nothing(int argc, char **argv)
{
    struct stat seen, other;
    nothing(argc, argv);
    number = fstat(2, &seen) == 0 && stat("/etc/no-such-file-of-hotstarts", &other) == -1;
}
static inline void streams(int argc, char **argv)
{
    struct stat out, error;
    nothing(argc, argv);
    number = fstat(1, &out) == 0 && fstat(2, &error) == 0 && out.st_ino == error.st_ino;
}
static inline void input(int argc, char **argv)
{
    nothing(argc, argv);
    number = read(0, text, 1);
}
static inline void directory(int argc, char **argv)
{
    nothing(argc, argv);
    free(realpath(".", NULL));
}
static inline void variables(int argc, char **argv)
{
    nothing(argc, argv);
    for (char **var = environ; *var; var++)
        number |= strcmp(*var, "MODE=1") == 0;
}
static inline void variable_of_libc(int argc, char **argv)
{
    nothing(argc, argv);
    char *(*hidden)(const char *) = (char *(*)(const char *))getenv;
    char *value = hidden("MODE");
    snprintf(text, sizeof text, "%s", value ? value : "none");
}
static inline void argument(int argc, char **argv) { number = argc > 1 && strcmp(argv[1], "one") == 0; }
static inline void count(int argc, char **argv) { nothing(argc, argv); kept = argc; }
static inline void count_twice(int argc, char **argv) { nothing(argc, argv); kept = argc; number = argc; }
static inline void count_others(int argc, char **argv) { nothing(argc, argv); number = argc - 1; }
static inline void count_some(int argc, char **argv) { nothing(argc, argv); number = argc > 16 ? argc : 16; }
static inline void count_most(int argc, char **argv) { nothing(argc, argv); number = argc < 99 ? argc : 99; }
static inline void count_equal(int argc, char **argv) { nothing(argc, argv); number = argc == 3; }
/* What is in the kernel or in registers only. */
static inline void count_signal(int argc, char **argv)
{
    nothing(argc, argv);
    signal(argc > 16 ? SIGUSR1 : SIGUSR2, SIG_IGN);
}
static inline void count_mask(int argc, char **argv)
{
    nothing(argc, argv);
    const sigset_t set = {{1ul << (argc > 16 ? SIGUSR1 : SIGUSR2)}};
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 8);
}
#if defined(__x86_64__)
static inline void count_rounding(int argc, char **argv)
{
    nothing(argc, argv);
    const unsigned modes = argc > 16 ? 0x1f80 : 0x9fc0;
    __asm__ volatile("ldmxcsr %0" ::"m"(modes));
}
static inline void count_x87(int argc, char **argv)
{
    nothing(argc, argv);
    const unsigned short modes = argc > 16 ? 0x37f : 0x27f;
    __asm__ volatile("fldcw %0" ::"m"(modes));
}
#endif
static inline void count_file(int argc, char **argv)
{
    nothing(argc, argv);
    number = argc == 3 && access(FILE_PATH, F_OK) == 0;
}
static inline void count_away(int argc, char **argv)
{
    nothing(argc, argv);
    allocated = malloc(sizeof *allocated);
    *allocated = argc;
}
static inline void list(int argc, char **argv) { kept = argc; arguments = argv; }
static inline void log_line(int argc, char **argv)
{
    nothing(argc, argv);
    int fd = open(FILE_PATH, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    number = write(fd, "started\n", 8);
    close(fd);
}
static inline void make_directory(int argc, char **argv) { nothing(argc, argv); number = mkdir(FILE_PATH, 0700); }
static inline void child(int argc, char **argv)
{
    nothing(argc, argv);
    pid_t started = fork();
    if (started == 0)
        _exit(0);
    waitpid(started, NULL, 0);
}
static inline void own_signal(int argc, char **argv)
{
    nothing(argc, argv);
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
}
static int owner(void)
{
    pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    pthread_mutex_lock(&lock);
    const int found = lock.__data.__owner;
    pthread_mutex_unlock(&lock);
    return found;
}
/* Of the process's number, which libc has put into the lock, the upper bits; and what is the same of its complement. */
static inline void lock_owner(int argc, char **argv) { nothing(argc, argv); number = owner() >> 8; }
static inline void lock_code(int argc, char **argv) { nothing(argc, argv); number = (owner() ^ owner() >> 1) & 0x1fffff; }
static inline void random_code(int argc, char **argv)
{
    const unsigned char *const bytes = (const unsigned char *)getauxval(AT_RANDOM);
    nothing(argc, argv);
    number = bytes[0] ^ bytes[1];
}
static inline void fault(int argc, char **argv)
{
    nothing(argc, argv);
    __builtin_trap();
}
static inline void count_for_libc(int argc, char **argv) { nothing(argc, argv); optind = argc; }
static inline void write_argument(int argc, char **argv) { nothing(argc, argv); argv[0] = text; }
static inline void write_variable(int argc, char **argv)
{
    nothing(argc, argv);
    char *value = getenv("PATH");
    if (value)
        strtok(value, ":");
}
/* In a table of libc's, which is read-only before and after. */
static inline void libc_table(int argc, char **argv)
{
    unsigned short *const word = (unsigned short *)(uintptr_t)*__ctype_b_loc() + 250;
    void *const page = (void *)((uintptr_t)word & -4096ul);
    nothing(argc, argv);
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0)
        exit(1);
    *word = (unsigned short)(argc * 3);
    mprotect(page, 4096, PROT_READ);
}
/* In a page that the kernel may take away at any time, and that counts as never written until it does. */
static inline void free_page(int argc, char **argv)
{
    long *const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    nothing(argc, argv);
    *page = argc * 3;
    madvise(page, 4096, MADV_FREE);
    mprotect(page, 4096, PROT_READ);
}
/* As jemalloc asks whether the kernel knows the advice. */
static inline void probed_page(int argc, char **argv)
{
    char *const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    nothing(argc, argv);
    number = madvise(page, 4096, MADV_FREE);
    munmap(page, 4096);
}
static inline void moved_page(int argc, char **argv)
{
    char *const page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    nothing(argc, argv);
    number = madvise(page, 4096, MADV_FREE);
    munmap(mremap(page, 4096, 8192, MREMAP_MAYMOVE) == page ? page + 4096 : page, 4096);
}
static inline void odd_variable(int argc, char **argv) { nothing(argc, argv); number = getenv("MODE=1") != NULL; }
static inline void own_name(int argc, char **argv) { nothing(argc, argv); program_invocation_short_name = text; }
static inline void through_proc(int argc, char **argv)
{
    nothing(argc, argv);
    number = access("/usr/../proc/self/cwd/in", F_OK);
}
static inline void call_with_argument(int argc, char **argv)
{
    sigset_t now;
    if (argc > 1 && syscall(SYS_rt_sigprocmask, SIG_SETMASK, argv[1], NULL, 8) == 0)
        number = sigprocmask(SIG_SETMASK, NULL, &now) == 0 && sigismember(&now, SIGINT);
}
/* Keeps an argument's address only, where libc or a thread has its data. */
static __thread char *volatile threads_own;
static inline void thread_argument(int argc, char **argv) { threads_own = argc > 1 ? argv[1] : NULL; }
static char *volatile second;
static inline void second_argument(int argc, char **argv) { second = argc > 1 ? argv[1] : NULL; }
static void at_exit(int status, void *argument)
{
    if (argument)
        printf("%d %s\n", status, (const char *)argument);
}
static inline void exit_argument(int argc, char **argv) { on_exit(at_exit, argc > 1 ? argv[1] : NULL); }
static inline void many_files(int argc, char **argv)
{
    int files[300], count = 0;
    nothing(argc, argv);
    while (count < 300 && (files[count] = open("/", O_RDONLY)) >= 0)
        count++;
    number = count;
    while (count > 0)
        close(files[--count]);
}
static inline void open_pages(int argc, char **argv)
{
    nothing(argc, argv);
    const char *name = (const char *)getauxval(AT_EXECFN);
    number = mprotect((void *)((uintptr_t)name & -4096), 4096, PROT_READ | PROT_WRITE);
}
/* Lets the kernel excuse any address, or tell the process's number, as if for the loader. */
static inline void foreign_area(int argc, char **argv)
{
    nothing(argc, argv);
    number = syscall(SYS_rseq, NULL, 0xffffffffu, 0, 0) == -1 && argc > 3;
}
static inline void foreign_number(int argc, char **argv)
{
    static int cell;
    nothing(argc, argv);
    number = syscall(SYS_set_tid_address, &cell) >> 9;
}
static inline void long_arguments(int argc, char **argv)
{
    nothing(argc, argv);
    number = environ[0] - argv[0] > 8191;
}
static inline void packed_argument(int argc, char **argv)
{
    static struct __attribute__((packed)) {
        char byte;
        char *argument;
    } keeps;
    keeps.argument = argv[argc > 1];
    number = keeps.byte;
}
static inline void tagged_argument(int argc, char **argv)
{
    static volatile uintptr_t keeps;
    keeps = 0xfff8ul << 48 | (uintptr_t)argv[argc > 1];
    number = keeps == 0;
}
static inline void relative_list(int argc, char **argv)
{
    static volatile intptr_t keeps;
    nothing(argc, argv);
    keeps = (intptr_t)argv - (intptr_t)&keeps;
    number = keeps == 0;
}
static int address_of_part;
static volatile uintptr_t upper, number_and_upper;
/* Bytes among others that a constructor keeps of an address, as where an object is copied with its gaps. */
static volatile struct __attribute__((packed)) {
    char before[2];
    uint16_t half;
    uint16_t quarter;
    char behind[2];
} part;
static inline void list_part(int argc, char **argv)
{
    nothing(argc, argv);
    part.half = (uint16_t)(uintptr_t)argv;
    part.quarter = (uint16_t)((uintptr_t)argv >> 16);
    part.behind[0] = 1;
    address_of_part = 1;
}
static inline void list_end(int argc, char **argv)
{
    nothing(argc, argv);
    part.half = (uint16_t)(uintptr_t)(argv + 1);
    address_of_part = 2;
}
/* In a frame that is gone. What is at the same place later cannot be compared: main's frame may lie otherwise. */
static inline void frame_part(int argc, char **argv)
{
    nothing(argc, argv);
    part.half = (uint16_t)(uintptr_t)__builtin_frame_address(0);
}
static inline void variables_part(int argc, char **argv)
{
    nothing(argc, argv);
    char **at = argv;
    while (*at)
        at++;
    part.half = (uint16_t)(uintptr_t)(at + 1);
}
static inline void auxiliary_part(int argc, char **argv)
{
    nothing(argc, argv);
    char **at = argv;
    for (int ends = 0; ends < 2; at++)
        ends += !*at;
    part.half = (uint16_t)(uintptr_t)(at - 2);
}
static inline void distance_part(int argc, char **argv)
{
    nothing(argc, argv);
    part.half = (uint16_t)(getauxval(AT_EXECFN) - (uintptr_t)argv);
}
static inline void number_part(int argc, char **argv)
{
    nothing(argc, argv);
    part.half = (uint16_t)((uintptr_t)argv + (unsigned)argc);
}
/* Parts that are the same in all stacks near each other. */
static inline void list_shifted(int argc, char **argv) { nothing(argc, argv); upper = (uintptr_t)argv >> 16; }
static inline void argument_shifted(int argc, char **argv) { nothing(argc, argv); upper = (uintptr_t)argv[argc > 1] >> 20; }
static inline void argument_upper(int argc, char **argv)
{
    nothing(argc, argv);
    number_and_upper = ((uintptr_t)argv[argc > 1] & -0x10000ul) | 32;
}
/* A number over the lower bytes of what lay there. */
static inline void list_upper(int argc, char **argv)
{
    nothing(argc, argv);
    number_and_upper = ((uintptr_t)argv & -0x10000ul) | 32;
    address_of_part = 3;
}
/* Depends on the number of arguments as well: only the first observation run has a hundred or more, and one of the others. */
static inline void number_upper(int argc, char **argv)
{
    nothing(argc, argv);
    number_and_upper = (((uintptr_t)argv & -0x10000ul) - (argc < 100 ? 0x10000 : 0)) | 32;
}
static inline void variables_upper(int argc, char **argv)
{
    nothing(argc, argv);
    number_and_upper = (((uintptr_t)environ + 0x8000) & -0x10000ul) | 32;
}
/* All but the lowest byte, which is a number. */
static inline void list_over(int argc, char **argv)
{
    nothing(argc, argv);
    number_and_upper = ((uintptr_t)argv & -0x100ul) | 1;
    address_of_part = 3;
}
static inline void list_low(int argc, char **argv) { nothing(argc, argv); upper = (uintptr_t)argv & 0xfff; }
static inline void list_aligned(int argc, char **argv)
{
    nothing(argc, argv);
    upper = (uintptr_t)argv % 64;
    address_of_part = 5;
}
static inline void auxiliary_vector(int argc, char **argv)
{
    nothing(argc, argv);
    char **at = argv;
    for (int ends = 0; ends < 2; at++)
        ends += !*at;
    upper = (uintptr_t)at;
}
/* Far above the list, with which its place moves. */
static inline void list_beyond(int argc, char **argv)
{
    nothing(argc, argv);
    const uint32_t beyond = (uint32_t)(uintptr_t)argv + 0x100000;
    part.half = (uint16_t)beyond;
    part.quarter = (uint16_t)(beyond >> 16);
    address_of_part = 6;
}
/* The upper half alone. */
static inline void list_half(int argc, char **argv)
{
    nothing(argc, argv);
    upper = (uintptr_t)argv >> 32;
    address_of_part = 4;
}
/* In libc's record of the thread, and beside their number in its table of exit functions, as libc itself keeps them. */
static inline void list_in_key(int argc, char **argv)
{
    pthread_key_t key;
    nothing(argc, argv);
    number = pthread_key_create(&key, NULL) == 0 && pthread_setspecific(key, argv) == 0;
}
static void ignore(void *unused) { (void)unused; }
static inline void list_and_number_at_exit(int argc, char **argv)
{
    extern int __cxa_atexit(void (*)(void *), void *, void *);
    nothing(argc, argv);
    number = __cxa_atexit(ignore, argv, (void *)(long)argc);
}
/* The kernel keeps the address. */
static inline void robust_list(int argc, char **argv)
{
    nothing(argc, argv);
    number = syscall(SYS_set_robust_list, argv, 24);
}
static inline void sealed_argument(int argc, char **argv)
{
    char **page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = argv[argc > 1];
    mprotect(page, 4096, PROT_READ);
}
static void nothing_at_exit(int status, void *argument) { (void)status, (void)argument; }
static inline void list_at_exit(int argc, char **argv)
{
    nothing(argc, argv);
    on_exit(nothing_at_exit, argv);
}
static inline void name_for_logs(int argc, char **argv)
{
    nothing(argc, argv);
    openlog(argv[0], 0, LOG_USER);
}
static inline void last_variable(int argc, char **argv)
{
    static struct __attribute__((packed)) {
        char byte;
        char *variable;
    } keeps;
    nothing(argc, argv);
    for (char **at = environ; *at; at++)
        keeps.variable = *at;
    number = keeps.byte;
}
static inline void locked_page(int argc, char **argv)
{
    nothing(argc, argv);
    number = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0) == MAP_FAILED;
}
static inline void eighty_files(int argc, char **argv)
{
    int fds[80];
    nothing(argc, argv);
    for (int i = 0; i < 80; i++)
        fds[i] = open("/dev/null", O_RDONLY);
    number = fds[79];
    for (int i = 0; i < 80; i++)
        close(fds[i]);
}
static inline void wiped_random(int argc, char **argv)
{
    nothing(argc, argv);
    memset((void *)getauxval(AT_RANDOM), 0, 16);
}
/* As a hook does that is put into the code of a function of libc's. */
static inline void patched_libc(int argc, char **argv)
{
    unsigned char *const code = (unsigned char *)(uintptr_t)lrand48;
    unsigned char *const page = (unsigned char *)((uintptr_t)code & -4096ul);
    nothing(argc, argv);
    mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    *code ^= 1;
    mprotect(page, 8192, PROT_READ | PROT_EXEC);
}
/* As libc draws the key of its allocator. */
static inline void own_key(int argc, char **argv)
{
    nothing(argc, argv);
    number = syscall(SYS_getrandom, &optarg, 8, GRND_NONBLOCK) != 8;
    optarg = NULL;
}
static inline void large_input(int argc, char **argv)
{
    struct stat seen;
    nothing(argc, argv);
    number = fstat(0, &seen) == 0 && seen.st_size > 3;
}
/* Asks the clock in the kernel's own library without libc. */
static inline void kernels_time(int argc, char **argv)
{
    typedef int clock_function(clockid_t, struct timespec *);
    clock_function *const clock = (clock_function *)kernels_function("clock_gettime");
    struct timespec now = {0};
    nothing(argc, argv);
    if (clock)
        clock(CLOCK_MONOTONIC, &now);
    number = now.tv_nsec;
}
static inline void kernels_library(int argc, char **argv) { nothing(argc, argv); number = getauxval(AT_SYSINFO_EHDR) != 0; }
/* Asks for the runtime's connection, and for its file. */
static inline void connection(int argc, char **argv)
{
    int kind = 0;
    socklen_t size = sizeof kind;
    nothing(argc, argv);
    number = getsockopt(62, SOL_SOCKET, SO_TYPE, &kind, &size) == 0;
}
static inline void runtimes_file(int argc, char **argv) { nothing(argc, argv); number = access("/proc/self/fd/63", F_OK) == 0; }
static inline void unknown(int argc, char **argv) { nothing(argc, argv); number = getpriority(PRIO_PROCESS, 0); }
static inline void computes(int argc, char **argv)
{
    nothing(argc, argv);
    char *memory = malloc(100);
    snprintf(text, sizeof text, "%d", memory != NULL);
    free(memory);
}

__attribute__((constructor)) static void look(int argc, char **argv, char **envp)
{
    (void)envp;
    LOOK(argc, argv);
}

int main(int argc, char **argv)
{
    if (arguments && argc > 2) {
        char *first = argv[1];
        argv[1] = argv[2];
        argv[2] = first;
    }
    printf("%ld %s %d %d %d\n", number, text, numbered && number == getpid(), kept, allocated && *allocated == argc);
    if (address_of_part == 1)
        printf("part %d\n", part.half == (uint16_t)(uintptr_t)argv && part.quarter == (uint16_t)((uintptr_t)argv >> 16));
    if (address_of_part == 2) {
        char **kept = (char **)(((uintptr_t)&argc & ~0xfffful) | part.half);
        kept += kept < (char **)&argc ? 0x10000 / sizeof *kept : 0;
        printf("part %d %s\n", kept == argv + 1, *kept ? *kept : "none");
    }
    if (address_of_part == 3)
        printf("upper %d\n", number_and_upper >> 16 == (uintptr_t)argv >> 16);
    if (address_of_part == 5)
        printf("aligned %d\n", upper == (uintptr_t)argv % 64);
    if (address_of_part == 6)
        printf("beyond %d\n", (uint32_t)part.quarter << 16 == ((uint32_t)(uintptr_t)argv + 0x100000 - part.half));
    for (int i = 0; address_of_part == 4 && i < argc; i++)
        printf("upper %d %d\n", upper == (uintptr_t)argv >> 32, upper == (uintptr_t)argv[i] >> 32);
    printf("%d %s %s\n", optind, argv[0], program_invocation_short_name);
    for (int i = 0; arguments && i < kept; i++)
        printf("%s%c", arguments[i], arguments == argv || arguments[i] ? '\n' : '?');
    return errno == ENOSYS;
}
