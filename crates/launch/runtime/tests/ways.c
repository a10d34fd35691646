/* What a system call leaves, and where it is made: by functions of libc's, and by instructions of the tool's own. Each way prints what it
 * sees. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define RED_ZONE 128

static unsigned long left_rcx, left_r11;

static void tell(const char *what)
{
    const unsigned long rcx = left_rcx, r11 = left_r11;
    Dl_info place;
    const int is_known = dladdr((void *)rcx, &place) != 0;
    printf("%s: in %s at %lx, flags %lx\n", what, is_known ? strrchr(place.dli_fname, '/') : "nothing",
           is_known ? rcx - (unsigned long)place.dli_fbase : 0, r11 > 0xffffff ? 0 : r11);
}

/* The flags are set before, as a function may come to its call with them. */
#define LEFT(call) \
    do { \
        __asm__ volatile("cmp %%rsp, %%rsp" ::: "cc"); \
        (void)!(call); \
        __asm__ volatile("mov %%rcx, %0\n\tmov %%r11, %1" : "=m"(left_rcx), "=m"(left_r11)); \
        tell(#call); \
    } while (0)

/* The first calls of some functions come by a signal. Elsewhere the loader binds a name at its first call: that, too, leaves registers. */
static void functions(void)
{
    static struct stat about;
    static char byte;
    for (int round = 0; round < 3; round++) {
        void *page = NULL;
        int file = -1;
        printf("%d\n", round);
        LEFT(getppid());
        LEFT(getuid());
        LEFT(umask(022));
        LEFT(page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        LEFT(mprotect(page, 4096, PROT_READ));
        LEFT(munmap(page, 4096));
        LEFT(stat("/", &about));
        LEFT(file = open("/dev/null", O_RDONLY));
        LEFT(read(file, &byte, 1));
        LEFT(lseek(file, 0, SEEK_CUR));
        LEFT(dup(file));
        LEFT(close(file));
        LEFT(close(file));
        LEFT(access("/absent", F_OK));
        LEFT(sched_yield());
    }
}

/* A signal stack right below the stack pointer of the call that asks for it. */
static void signal_stack(void)
{
    static stack_t wanted = {.ss_size = 0x8000}, old;
    static char room[0x20000] __attribute__((aligned(64)));
    wanted.ss_sp = room;
    __asm__ volatile("mov %%rsp, %%r12\n\tlea 0x100(%0), %%rsp\n\tsyscall\n\txor %%edi, %%edi\n\tmov %1, %%rsi\n\tmov %2, %%eax\n\t"
                     "syscall\n\tmov %%r12, %%rsp"
                     :
                     : "r"(room + 0x8000), "r"(&old), "i"(SYS_sigaltstack), "a"(SYS_sigaltstack), "D"(&wanted), "S"(0)
                     : "rcx", "r11", "r12", "memory");
    printf("flags %d size %zu\n", old.ss_flags, old.ss_size);
}

extern const char ways_site[];
static volatile sig_atomic_t came;
static volatile long distance, place, result;

static void on_alarm(int number, siginfo_t *info, void *data)
{
    const ucontext_t *context = data;
    const greg_t *registers = context->uc_mcontext.gregs;
    (void)number, (void)info;
    distance = registers[REG_RSP] - (long)data;
    place = registers[REG_RIP] - (long)ways_site + registers[REG_RCX] - (long)ways_site;
    result = registers[REG_RAX];
    came = 1;
}

/* Where the frame of a signal lies that interrupts a call. The kernel aligns it to 64 bytes. */
static void interrupted(void)
{
    const struct sigaction action = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO};
    const struct itimerval soon = {.it_value = {.tv_usec = 3000}};
    struct timespec span = {.tv_sec = 100};
    long answer;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    __asm__ volatile("mov %%rsp, %%r12\n\tand $-64, %%rsp\n\tsyscall\n\t.globl ways_site\nways_site:\n\tmov %%r12, %%rsp"
                     : "=a"(answer)
                     : "a"(SYS_nanosleep), "D"(&span), "S"(0l)
                     : "rcx", "r11", "r12", "memory");
    printf("came %d distance %ld place %ld result %ld answer %ld\n", came, distance, place, result, answer);
}

/* A call whose answer is laid below the stack pointer, and the red zone. */
static void into(void)
{
    enum { BYTES = 7000 };
    static char zero[BYTES];
    int ends[2];
    long answer = -1;
    if (pipe(ends) != 0 || write(ends[1], zero, BYTES) != BYTES)
        return;
    __asm__ volatile("lea -0x2000(%%rsp), %%rsi\n\tsyscall"
                     : "=a"(answer)
                     : "a"(SYS_read), "D"((long)ends[0]), "d"((long)BYTES)
                     : "rcx", "r11", "rsi", "memory");
    printf("read %ld\n", answer);
}

static char *volatile waiting_at;
static int pipe_ends[2];

static void *wait_for_byte(void *unused)
{
    char byte;
    long answer;
    (void)unused;
    __asm__ volatile("mov %%rsp, %1\n\tsyscall"
                     : "=a"(answer), "=m"(waiting_at)
                     : "a"(SYS_read), "D"((long)pipe_ends[0]), "S"(&byte), "d"(1l)
                     : "rcx", "r11", "memory");
    return (void *)answer;
}

/* Whether a thread sleeps: its state is told behind its name. */
static int sleeps(int thread)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    const int file = open(path, O_RDONLY);
    const ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    const char *behind = size > 0 ? strrchr(text, ')') : NULL;
    return behind && behind[2] == 'S';
}

static volatile int waiting_thread;

static void *tell_number(void *unused)
{
    waiting_thread = gettid();
    return wait_for_byte(unused);
}

/* Another thread overwrites what lies below the red zone of one that waits in a call. */
static void threads(void)
{
    pthread_t thread;
    void *answer;
    if (pipe(pipe_ends) != 0 || pthread_create(&thread, NULL, tell_number, NULL) != 0)
        return;
    while (!waiting_at || !sleeps(waiting_thread))
        sched_yield();
    memset(waiting_at - RED_ZONE - 8000, 0, 8000);
    if (write(pipe_ends[1], "x", 1) != 1)
        return;
    pthread_join(thread, &answer);
    printf("read %ld\n", (long)answer);
}

/* Whether the stack has grown below the page that was touched last. */
static void grown(void)
{
    long answer;
    __asm__ volatile("mov %%rsp, %%r12\n\tsub $0x200000, %%rsp\n\tand $-4096, %%rsp\n\tadd $64, %%rsp\n\tmovb $0, (%%rsp)\n\t"
                     "lea -64-4096(%%rsp), %%rdi\n\tsyscall\n\tmov %%r12, %%rsp"
                     : "=a"(answer)
                     : "a"(SYS_msync), "S"(4096l), "d"((long)MS_ASYNC)
                     : "rcx", "r11", "rdi", "r12", "memory");
    printf("msync %ld\n", answer);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "functions") == 0)
        functions();
    else if (strcmp(how, "signal-stack") == 0)
        signal_stack();
    else if (strcmp(how, "interrupted") == 0)
        interrupted();
    else if (strcmp(how, "into") == 0)
        into();
    else if (strcmp(how, "threads") == 0)
        threads();
    else if (strcmp(how, "grown") == 0)
        grown();
    else
        return 2;
    return 0;
}
