/* Leaves its process in every state that a worker must restore, or must not use again, as its first argument says, and
 * prints what it found when it began: the same in each run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static int counter = 3;
static char zeroes[100000];
static __thread int local = 5;
static char page[8192] __attribute__((aligned(4096)));
static int constructed;
static volatile int called;

static void on_call(int number)
{
    (void)number;
    called++;
}

__attribute__((constructor)) static void construct(void)
{
    char *block = malloc(5000);
    memset(block, 1, 5000);
    free(block);
    constructed++;
    sigaction(SIGRTMIN + 3, &(struct sigaction){.sa_handler = on_call, .sa_flags = SA_RESETHAND}, NULL);
}

static void at_end(void)
{
    counter += 100;
    printf("at exit %d\n", counter);
}

static long sum(const void *from, size_t size)
{
    long total = 0;
    for (size_t i = 0; i < size; i++)
        total += ((const unsigned char *)from)[i];
    return total;
}

static void on_signal(int number)
{
    (void)number;
}

static void found(void)
{
    struct sigaction action;
    stack_t stack;
    struct rlimit files;
    char name[16], *fresh = malloc(300000), *small = calloc(1, 20000);
    sigaction(SIGUSR1, NULL, &action);
    sigaltstack(NULL, &stack);
    getrlimit(RLIMIT_NOFILE, &files);
    prctl(PR_GET_NAME, name);
    mode_t mask = umask(0);
    int lowest = dup(0);
    printf("counter %d zeroes %ld local %d constructed %d fresh %ld small %ld handler %d stack %d files %ld name %s "
           "mask %o lowest %d X %s locale %s break %d\n",
           counter, sum(zeroes, sizeof zeroes), local, constructed, sum(fresh, 300000), sum(small, 20000),
           action.sa_handler != SIG_DFL, stack.ss_flags, (long)files.rlim_cur, name, (unsigned)mask, lowest,
           getenv("X") ? "set" : "unset", setlocale(LC_ALL, NULL), (int)((char *)sbrk(0) - (char *)small) > 0);
    close(lowest);
    free(small);
}

static void *thread(void *how)
{
    if (how)
        for (;;)
            pause();
    local++;
    return NULL;
}

static void *tells_number(void *unused)
{
    local += (int)syscall(SYS_gettid) > 0;
    return unused;
}

static volatile int gate_word, other_word;

/* Until all threads of the pool wait, as those of a linker do that has nothing left to do: those that do can be moved to wait
 * elsewhere. */
static void await_pool(void)
{
    for (long waiting = 0; waiting < 5;)
        waiting += syscall(SYS_futex, &gate_word, FUTEX_REQUEUE, 0, 5, &other_word);
}

/* A pool's thread: it waits, with memory of its own. */
static void *waits(void *unused)
{
    (void)unused;
    local++;
    memset(malloc(200000), 1, 200000);
    memset(malloc(100), 1, 100);
    syscall(SYS_futex, &gate_word, FUTEX_WAIT, 0, NULL);
    return NULL;
}

/* One that takes no signals. */
static void *deaf(void *unused)
{
    sigset_t set;
    sigfillset(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return waits(unused);
}

/* One that computes until main has ended, and then crashes. */
static void *crashes(void *unused)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    gate_word = 1;
    syscall(SYS_futex, &gate_word, FUTEX_WAKE, 1);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000l + now.tv_nsec - from.tv_nsec < 8000000);
    *(volatile int *)unused = 1;
    return unused;
}

static void *works(void *unused)
{
    (void)unused;
    for (;;)
        counter++;
}

static int deep(int depth)
{
    volatile char frame[4096];
    memset((char *)frame, depth, sizeof frame);
    return depth ? deep(depth - 1) + frame[17] : 0;
}

/* No header has it any more. */
void (*bsd_signal(int number, void (*handler)(int)))(int);

static void all(void)
{
    counter++;
    local++;
    memset(zeroes, 7, sizeof zeroes);
    setenv("X", "1", 1);
    setlocale(LC_ALL, "C.UTF-8");
    atexit(at_end);
    signal(SIGUSR1, on_signal);
    bsd_signal(SIGUSR2, on_signal);
    ssignal(SIGHUP, on_signal);
    sysv_signal(SIGTERM, on_signal);
    sigset(SIGINT, on_signal);
    sigignore(SIGQUIT);
    siginterrupt(SIGXCPU, 1);
    sigaction(SIGRTMAX, &(struct sigaction){.sa_handler = on_signal}, NULL);
    alarm(1000);
    alarm(0);
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    sigset_t set;
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct rlimit files = {64, 0};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &files);
    prctl(PR_SET_NAME, "another");
    umask(0123);
    if (chdir("/") != 0)
        exit(1);
    for (int i = 0; i < 20; i++)
        open("/dev/null", O_RDONLY);
    for (int i = 0; i < 50; i++)
        memset(malloc(1000000), i, 1000000); /* leaked, some of it by mmap */
    for (int i = 0; i < 2000; i++)
        memset(malloc(5000), i, 5000);
    char *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(map + 8192, 4096);
    map = mremap(map, 8192, 1 << 21, MREMAP_MAYMOVE);
    mprotect(map, 4096, PROT_NONE);
    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    printf("deep %d\n", deep(500) != 1);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
}

static void have_children(void)
{
    if (fork() == 0)
        exit(0); /* with its handlers and buffers, as a copy of this process would */
    while (wait(NULL) > 0)
        ;
    if (vfork() == 0)
        _exit(0);
    while (wait(NULL) > 0)
        ;
}

/* Sets what is restored by ways that go past the names of libc's functions. */
static void unnoticed(void)
{
    static unsigned short samples[100];
    struct rlimit core;
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *(*set_action)(int, void (*)(int)) = (void *(*)(int, void (*)(int)))dlsym(libc, "signal");
    int (*set_limit)(int, const struct rlimit *) = (int (*)(int, const struct rlimit *))dlsym(libc, "setrlimit");
    set_action(SIGUSR1, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &core);
    core.rlim_cur = 78;
    set_limit(RLIMIT_NOFILE, &core);
    profil(samples, sizeof samples, 0, 1);
    profil(NULL, 0, 0, 0);
}

static char other_stack[65536];

/* What a handler returns to says which signal stack is used from then on. */
static void set_stack(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    ((ucontext_t *)context)->uc_stack = (stack_t){.ss_sp = other_stack, .ss_size = sizeof other_stack};
}

static int locked(const char *file)
{
    int fd = open(file, O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ftruncate(fd, 4096) != 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
        exit(77);
    return fd;
}

/* Leaves a file open and locked by nothing but a mapping, and memory that takes a while to let go of. */
static void hold(const char *file)
{
    int fd = locked(file);
    const size_t size = 32 << 20;
    memset(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, size);
    mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
}

/* A child process may set limits, too. */
static void be_limited(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = 77;
    if (fork() == 0)
        _exit(prlimit(getppid(), RLIMIT_NOFILE, &files, NULL));
    while (wait(NULL) > 0)
        ;
}

static void leave(const char *how)
{
    pthread_t other;
    if (!strcmp(how, "thread"))
        pthread_create(&other, NULL, thread, "stays");
    else if (!strcmp(how, "pool") || !strcmp(how, "deaf") || !strcmp(how, "works")) {
        for (int i = 0; i < 5; i++)
            pthread_create(&other, NULL, *how == 'p' ? waits : *how == 'd' ? deaf : works, NULL);
        if (*how != 'w')
            await_pool();
    } else if (!strcmp(how, "crashes")) {
        pthread_create(&other, NULL, crashes, NULL);
        while (!__atomic_load_n(&gate_word, __ATOMIC_ACQUIRE))
            syscall(SYS_futex, &gate_word, FUTEX_WAIT, 0, NULL);
    } else if (!strcmp(how, "child") && fork() == 0) {
        /* In case its parent has ended before the next line. */
        alarm(30);
        /* It ends with this process, also if that is over already. */
        const pid_t parent = getppid();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent)
            pause();
        _exit(0);
    } else if (!strcmp(how, "timer")) {
        struct itimerval timer = {.it_value = {1000, 0}};
        setitimer(ITIMER_REAL, &timer, NULL);
    } else if (!strcmp(how, "pending")) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGUSR2);
    } else if (!strcmp(how, "library"))
        dlopen("libutil.so.1", RTLD_NOW) || dlopen("libm.so.6", RTLD_NOW);
    else if (!strcmp(how, "protect"))
        mprotect(page, 4096, PROT_READ);
    else if (!strcmp(how, "permit"))
        mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    else if (!strcmp(how, "over"))
        mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    else if (!strcmp(how, "mutex")) {
        pthread_mutexattr_t kind;
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
        pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
        pthread_mutex_t *held = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pthread_mutex_init(held, &kind);
        pthread_mutex_lock(held);
    } else if (!strcmp(how, "family"))
        have_children();
    else if (!strcmp(how, "limited"))
        be_limited();
    else if (!strcmp(how, "unnoticed"))
        unnoticed();
    else if (!strcmp(how, "resets")) {
        raise(SIGRTMIN + 3);
        printf("called %d\n", called);
    } else if (!strcmp(how, "stack")) {
        /* A signal that no process sends: a handler that is told who did ends the worker. */
        sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = set_stack, .sa_flags = SA_SIGINFO}, NULL);
        __asm__ volatile("int3");
    } else if (!strcmp(how, "late")) {
        /* Its other end's closing sends a signal. */
        int ends[2];
        signal(SIGIO, on_signal);
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || fcntl(ends[0], F_SETOWN, getpid()) != 0)
            exit(77);
        fcntl(ends[0], F_SETFL, O_ASYNC);
    } else if (!strncmp(how, "hold=", 5))
        hold(how + 5);
    else if (!strncmp(how, "unseen=", 7)) {
        void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        long (*call)(long, ...) = (long (*)(long, ...))dlsym(libc, "syscall");
        call(SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, locked(how + 7), 0);
    } else if (!strcmp(how, "shares"))
        /* A lock there would have this process for its owner. */
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(tmpfile()), 0);
    else if (!strcmp(how, "locks")) {
        /* Another process can ask who has it. */
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        fcntl(fileno(tmpfile()), F_SETLK, &lock);
    } else if (!strcmp(how, "listens"))
        listen(socket(AF_UNIX, SOCK_STREAM, 0), 1);
    else if (!strcmp(how, "asks"))
        getpgid(1);
    else if (!strcmp(how, "numbered")) {
        pthread_create(&other, NULL, tells_number, NULL);
        pthread_join(other, NULL);
    } else if (!strcmp(how, "lingers")) {
        const struct linger linger = {1, 1};
        setsockopt(socket(AF_INET, SOCK_STREAM, 0), SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    } else if (!strcmp(how, "user"))
        setfsuid(getuid());
    else if (!strcmp(how, "nice"))
        setpriority(PRIO_PROCESS, 0, 1);
    else if (!strcmp(how, "lends")) {
        int ends[2];
        if (pipe(ends) != 0 || vmsplice(ends[1], &(struct iovec){page, 100}, 1, 0) != 100)
            exit(99);
    } else if (!strcmp(how, "closes"))
        for (int fd = 3; fd < 100; fd++)
            close(fd);
    else if (!strcmp(how, "takes"))
        dup2(1, 62);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    found();
    if (!strcmp(how, "all"))
        all();
    leave(how);
    int code = argc > 2 ? atoi(argv[2]) : 0;
    const char *end = argc > 3 ? argv[3] : "";
    if (!strcmp(end, "_exit")) {
        fflush(stdout);
        _exit(code);
    }
    if (!strcmp(end, "quick_exit")) {
        fflush(stdout);
        quick_exit(code);
    }
    if (!strcmp(end, "exit"))
        exit(code);
    if (!strcmp(end, "kill")) {
        fflush(stdout);
        kill(getpid(), SIGKILL);
    }
    return code;
}
