/* What a system call leaves, and where it is made: by functions of libc's, and by instructions of the tool's own. Each way prints what it
 * sees. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
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

/* Makes a call with this stack pointer. Another rbx than it came with is an answer, too. */
static long call_at(uintptr_t stack, long number, long a, long b, long c, long d)
{
    long answer, kept;
    register long fourth __asm__("r10") = d, fifth __asm__("r8") = 0;
    __asm__ volatile("mov %%rsp, %%r12\n\tmov $0x4711, %%ebx\n\tmov %[stack], %%rsp\n\tsyscall\n\t"
                     "mov %%r12, %%rsp\n\tmov %%rbx, %[kept]"
                     : "=a"(answer), [kept] "=m"(kept)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), [stack] "r"(stack)
                     : "rbx", "r12", "rcx", "r11", "memory");
    return kept == 0x4711 ? answer : kept;
}

static long ask_about(uintptr_t page, uintptr_t stack, const char *by)
{
    if (strcmp(by, "msync") == 0)
        return call_at(stack, SYS_msync, (long)page, 4096, MS_ASYNC, 0);
    if (strcmp(by, "madvise") == 0)
        return call_at(stack, SYS_madvise, (long)page, 4096, MADV_NORMAL, 0);
    return call_at(stack, SYS_futex, (long)page, FUTEX_WAKE, 1, 0);
}

/* Whether the stack has grown below the page that was touched last, or above the stack pointer where nothing was touched. The calls find
 * no page there and make none. */
static void grown(const char *by, const char *where)
{
    char here;
    const uintptr_t page = ((uintptr_t)&here - 0x80000) & -4096ul;
    if (strcmp(where, "above") == 0) {
        printf("%ld\n", ask_about(page, page - 0x4000, by));
        return;
    }
    *(volatile char *)(page + 64) = 0;
    if (strcmp(where, "later") == 0)
        call_at(page + 64, SYS_getppid, 0, 0, 0, 0);
    printf("%ld\n", ask_about(page - 4096, strcmp(where, "later") == 0 ? page + 0x10000 : page + 64, by));
}

/* A message whose parts lie below the stack pointer of the call that sends it. */
static void message(void)
{
    enum { BYTES = 64, BELOW = 0x200, FAR = 0x14000 };
    char got[BYTES] = "";
    const uintptr_t stack = ((uintptr_t)got - FAR - 0x4000) & -64ul;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return;
    char *const text = (char *)stack - BELOW;
    struct iovec part = {text, BYTES};
    const struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    memset(text, 'x', BYTES);
    long sent = call_at(stack, SYS_sendmsg, ends[0], (long)&header, 0, 0);
    ssize_t size = recv(ends[1], got, sizeof got, 0);
    printf("%ld %zd %.64s\n", sent, size, got);
    /* One that begins further below, and reaches up to the stack pointer. */
    static char all[FAR];
    memset((char *)stack - FAR, 'y', FAR);
    sent = call_at(stack, SYS_write, ends[0], (long)stack - FAR, FAR, 0);
    size = recv(ends[1], all, sizeof all, MSG_WAITALL);
    for (int i = 0; i < FAR; i++)
        if (all[i] != 'y') {
            puts("changed");
            break;
        }
    printf("%ld %zd\n", sent, size);
}

static volatile unsigned long flags_there;

/* Notes the flags first, and then skips the instruction that is none. */
__attribute__((naked)) static void on_none(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    __asm__("pushfq\n\tpop %rax\n\tmov %rax, flags_there(%rip)\n\taddq $2, 168(%rdx)\n\tret");
}

/* The flags of arithmetic at the start of a handler, for each state of these when the signal came. */
static void flags(void)
{
    static const unsigned long bits[] = {0x1, 0x4, 0x10, 0x40, 0x80, 0x800}, all = 0x8d5;
    const struct sigaction action = {.sa_sigaction = on_none, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    for (int state = 0; state < 64; state++) {
        unsigned long before = 0x202;
        for (int i = 0; i < 6; i++)
            before |= state >> i & 1 ? bits[i] : 0;
        __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpush %0\n\tpopfq\n\tud2\n\tlea 128(%%rsp), %%rsp" : : "r"(before) : "cc", "memory");
        printf("%lx\n", flags_there & all);
    }
}

/* An answer of the gate's own below the stack pointer, wherever its frames keep a register. */
static void answered(void)
{
    static char room[0x8000] __attribute__((aligned(64)));
    const uintptr_t stack = (uintptr_t)room + 0x6000;
    for (long below = RED_ZONE + 8; below < 0x1000; below += 8) {
        const long answer = call_at(stack, SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)stack - below, 8);
        if (answer != 0)
            printf("%ld: %lx\n", below, answer);
    }
}

static sigjmp_buf before;
static uintptr_t handlers_stack;

static void on_fault(int number)
{
    (void)number;
    handlers_stack = (uintptr_t)__builtin_frame_address(0);
    siglongjmp(before, 1);
}

/* How many bytes are another below a signal stack whose size is that of a fault's frame. */
static void full(void)
{
    enum { BELOW = 256, SIZE = 0x8000 };
    static char room[0x10000] __attribute__((aligned(4096)));
    const struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER};
    stack_t stack = {.ss_sp = room + SIZE, .ss_size = SIZE};
    volatile int changed = 0;
    sigaction(SIGSEGV, &action, NULL);
    for (volatile int round = 0; round < 2; round++) {
        sigaltstack(&stack, NULL);
        if (sigsetjmp(before, 0) == 0)
            *(volatile int *)NULL;
        /* The handler itself has some bytes. */
        if (round == 0) {
            stack.ss_sp = (void *)(handlers_stack - 64);
            stack.ss_size = (size_t)(room + 2 * SIZE - (char *)stack.ss_sp);
            memset((char *)stack.ss_sp - BELOW, 0x5a, BELOW);
        }
    }
    for (int i = 1; i <= BELOW; i++)
        if (((char *)stack.ss_sp)[-i] != 0x5a)
            changed = changed + 1;
    printf("changed %d\n", changed);
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
    else if (strcmp(how, "grown") == 0 && argc > 3)
        grown(argv[2], argv[3]);
    else if (strcmp(how, "message") == 0)
        message();
    else if (strcmp(how, "flags") == 0)
        flags();
    else if (strcmp(how, "answered") == 0)
        answered();
    else if (strcmp(how, "full") == 0)
        full();
    else
        return 2;
    return 0;
}
