/* What shows the gate, or the process behind it, to a tool: an executed program inherits from the process, a descriptor is the runner's,
 * a register is left by the kernel. Each way prints what it sees. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define RESERVED 62
#define CLONE_FILE 0x40049409ul
#define CLONE_PART 0x4020940dul

static void show(const char *what, long result)
{
    printf("%s %ld %s\n", what, result < 0 ? -1L : result, result < 0 ? strerror(errno) : "");
}

/* What a program inherits by exec. */
static int inherited(void)
{
    int death = -1;
    sigset_t mask;
    prctl(PR_GET_PDEATHSIG, &death);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("death %d blocked %d slack %d subreaper", death, sigismember(&mask, SIGSYS), prctl(PR_GET_TIMERSLACK));
    int subreaper = -1, tsc = -1;
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    prctl(PR_GET_TSC, &tsc);
    printf(" %d tsc %d privileges %d pages %d", subreaper, tsc, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
           prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    printf(" reserved %d time %s\n", fcntl(RESERVED, F_GETFD), clock() < CLOCKS_PER_SEC / 20 ? "little" : "much");
    return 0;
}

static int execute(char **argv, int fails_first)
{
    if (fails_first)
        show("absent", execv("/absent", argv));
    argv[1] = "inherited";
    argv[2] = NULL;
    execv("/proc/self/exe", argv);
    return 9;
}

static void in_handler(int number)
{
    char *argv[] = {"gated", "inherited", NULL};
    (void)number;
    execv("/proc/self/exe", argv);
}

/* The handler blocks SIGSYS, and so does what it executes. */
static int execute_in_handler(void)
{
    struct sigaction action = {.sa_handler = in_handler};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    return 9;
}

static void in_arguments(void)
{
    char text[64];
    int ends[2];
    struct stat now;
    const int own = open("/dev/null", O_RDWR), epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    if (pipe(ends) != 0 || write(ends[1], "hello", 5) != 5)
        return;
    show("openat", openat(RESERVED, "x", O_RDONLY));
    show("readlinkat", readlinkat(RESERVED, "x", text, sizeof text));
    show("mkdirat", mkdirat(RESERVED, "x", 0700));
    show("linkat", linkat(AT_FDCWD, "in", RESERVED, "x", 0));
    show("renameat", renameat(AT_FDCWD, "in", RESERVED, "x"));
    show("renameat2", renameat2(AT_FDCWD, "in", RESERVED, "x", 0));
    show("symlinkat", symlinkat("x", RESERVED, "x"));
    show("unlinkat", unlinkat(RESERVED, "x", 0));
    show("fstatat", fstatat(RESERVED, "x", &now, 0));
    show("utimensat", utimensat(RESERVED, "x", NULL, 0));
    show("mmap", (long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, RESERVED, 0));
    show("tee", tee(ends[0], RESERVED, 5, 0));
    show("splice", splice(ends[0], NULL, RESERVED, NULL, 5, 0));
    show("sendfile", sendfile(own, RESERVED, NULL, 5));
    show("copy", copy_file_range(own, NULL, RESERVED, NULL, 5, 0));
    show("clone", ioctl(own, CLONE_FILE, RESERVED));
    show("part", ioctl(own, CLONE_PART, (long long[]){RESERVED, 0, 0, 0}));
    show("epoll", epoll_ctl(epoll, EPOLL_CTL_ADD, RESERVED, &event));
    show("execveat", syscall(SYS_execveat, RESERVED, "x", NULL, NULL, 0));
    show("anonymous", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, RESERVED, 0) == MAP_FAILED ? -1 : 0);
    show("none", syscall(SYS_getpgid, RESERVED) == RESERVED ? 1 : 0);
}

static void in_memory(void)
{
    struct pollfd list[20];
    fd_set set;
    for (int i = 0; i < 20; i++)
        list[i] = (struct pollfd){.fd = i == 18 ? RESERVED : -1, .events = POLLIN};
    show("poll", poll(list, 20, -1));
    show("bit", list[18].revents == POLLNVAL && list[18].fd == RESERVED);
    show("ppoll", ppoll(list, 20, NULL, NULL));
    FD_ZERO(&set);
    FD_SET(RESERVED, &set);
    show("select", select(RESERVED + 1, &set, NULL, NULL, NULL));
    show("pselect", pselect(RESERVED + 1, NULL, &set, NULL, NULL, NULL));
}

static void by_name(void)
{
    static const char *const names[] = {"/proc/self/fd/62", "/dev/fd/62", "/proc/thread-self/fd/62", "/proc/self/fdinfo/62"};
    char text[64];
    struct stat now;
    for (int i = 0; i < 4; i++) {
        show(names[i], open(names[i], O_RDONLY));
        show("path", open(names[i], O_PATH));
        show("directory", open(names[i], O_RDONLY | O_DIRECTORY));
        show("link", readlink(names[i], text, sizeof text));
        show("stat", stat(names[i], &now));
        show("mode", chmod(names[i], 0600));
        show("length", truncate(names[i], 0));
        show("attribute", getxattr(names[i], "user.x", text, sizeof text));
        show("attributes", listxattr(names[i], text, sizeof text));
        show("times", utimensat(AT_FDCWD, names[i], NULL, 0));
        show("remove", unlink(names[i]));
        show("make", mkdir(names[i], 0700));
        show("rename", rename("in", names[i]));
        show("execute", execl(names[i], names[i], (char *)NULL));
    }
}

#ifdef __x86_64__
/* Makes system calls by an instruction of its own. */
static int registers(void)
{
    long wrong = 0, flags = 0;
    for (int i = 0; i < 20000; i++) {
        long result = SYS_getuid, at, back, before;
        __asm__ volatile("pushf\n\tpop %3\n\tlea 1f(%%rip), %2\n\tsyscall\n1:\n\tmov %%rcx, %1\n\txor %%r11, %3"
                         : "+a"(result), "=&r"(at), "=&r"(back), "=&r"(before)
                         :
                         : "rcx", "r11", "memory", "cc");
        wrong += at != back;
        flags |= before;
    }
    printf("wrong %ld flags %lx\n", wrong, flags & 0xcd5);
    return 0;
}
#else
static int registers(void)
{
    puts("other");
    return 0;
}
#endif

static int filter(void)
{
    static struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {1, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? -1 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Waits for what the runner's descriptor has to tell, if there is one. */
static int reads(void *unused)
{
    char byte;
    (void)unused;
    return read(RESERVED, &byte, 1) == -1 && errno == EBADF ? 0 : 1;
}

static volatile int is_over;

static void *reads_on(void *unused)
{
    long wrong = 0;
    while (!is_over)
        wrong += reads(unused);
    return (void *)wrong;
}

static void filtered(void)
{
    show("filter", filter());
    show("write", write(RESERVED, "x", 1));
    show("read", reads(NULL));
}

/* Other threads read while the gate is taken away. */
static void filtered_among_threads(void)
{
    pthread_t threads[2];
    void *wrong = NULL;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, reads_on, NULL);
    show("filter", filter());
    is_over = 1;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &wrong);
        show("wrong", (long)wrong);
    }
}

/* The child takes its parent's gate away: they share memory, and not descriptors. */
static void filtered_by_child(void)
{
    int status = -1;
    const pid_t child = vfork();
    if (child == 0)
        _exit(filter() == 0 ? 0 : 1);
    show("child", waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -1);
    show("read", reads(NULL));
}

/* No function of libc's has made the child, which has no gate. */
static void cloned(void)
{
    static char stack[65536] __attribute__((aligned(16)));
    int status = -1;
    const pid_t child = clone(reads, stack + sizeof stack, SIGCHLD, NULL);
    show("child", waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -1);
}

/* A file of the tool's own has the number. */
static void own(void)
{
    const int file = open("/dev/null", O_WRONLY);
    show("given", dup2(file, RESERVED));
    show("write", write(RESERVED, "x", 1));
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        _exit(write(RESERVED, "x", 1) == 1 ? 0 : 1);
    show("child", waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -1);
    show("close", close(RESERVED));
    show("read", reads(NULL));
}

/* The kernel writes its answer over the name. */
static void over_name(void)
{
    char name[4096] = "/proc/self/fd/62";
    const long result = readlink(name, name, sizeof name);
    printf("link %d\n", result > 0);
    strcpy(name, "/proc/self/fd/62");
    show("statfs", syscall(SYS_statfs, name, name));
    strcpy(name, "/proc/self/fd/62");
    show("stat", syscall(SYS_newfstatat, AT_FDCWD, name, name + 4, AT_EMPTY_PATH));
}

/* What the kernel can read, and process_vm_readv cannot: on this processor what can be written can be read as well. */
static void unreadable(void)
{
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } *const action = mmap(NULL, 4096, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int status = -1;
    action->handler = SIG_IGN;
    show("action", syscall(SYS_rt_sigaction, SIGSYS, action, NULL, 8));
    memset(action, 0, 128);
    *(uint64_t *)((char *)action + 32) = SIGCHLD;
    const long child = syscall(SYS_clone3, action, 64);
    if (child == 0)
        _exit(7);
    show("child", waitpid((pid_t)child, &status, 0) == child ? WEXITSTATUS(status) : -1);
}

static void has_no_room(int number)
{
    printf("no room, %d\n", number == SIGSEGV);
    fflush(stdout);
    _exit(0);
}

/* Makes a system call by an instruction of its own where the stack has no room for a signal's frame. The handler has a stack of its own. */
static void *calls_on_last_bytes(void *stack)
{
    enum { ROOM = 1000 };
    stack_t other = {.ss_sp = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), .ss_size = 65536};
    sigaltstack(&other, NULL);
    long result = SYS_getppid;
    __asm__ volatile("mov %%rsp, %%rbx\n\tmov %1, %%rsp\n\tsyscall\n\tmov %%rbx, %%rsp"
                     : "+a"(result)
                     : "r"((char *)stack + ROOM)
                     : "rbx", "rcx", "r11", "memory");
    return NULL;
}

static void cramped(const char *informed)
{
    pthread_attr_t attributes;
    pthread_t thread;
    char *const stack = mmap(NULL, 65536 + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack + 4096, 65536, PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &(struct sigaction){.sa_handler = has_no_room, .sa_flags = SA_ONSTACK | (informed ? SA_SIGINFO : 0)}, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack + 4096, 65536);
    if (pthread_create(&thread, &attributes, calls_on_last_bytes, stack + 4096) == 0)
        pthread_join(thread, NULL);
    printf("had room\n");
}

static volatile int steps;

static void step(int number)
{
    (void)number;
    steps++;
}

/* Traps after each instruction, also within libc's system call. */
static void stepping(void)
{
    char byte;
    signal(SIGTRAP, step);
    __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "cc", "memory");
    const long result = read(0, &byte, 0);
    __asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "cc", "memory");
    show("read", result);
    show("stepped", steps > 0);
}

/* Takes access to a page from before main away, and gives it back; or unmaps or replaces the page. */
static void own_page(const char *what)
{
    static char memory[3 * 4096] = {1};
    char *const page = (char *)(((uintptr_t)memory + 4095) & -4096ul);
    if (strcmp(what, "writable") != 0)
        show("readable", mprotect(page, 4096, PROT_READ));
    show("writable", mprotect(page, 4096, PROT_READ | PROT_WRITE));
    if (strcmp(what, "unmapped") == 0)
        show("unmapped", munmap(page, 4096));
    if (strcmp(what, "replaced") == 0)
        show("replaced", mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page);
}

/* Changes memory of before main, or asks what depends on how the kernel has joined mappings. */
static void change(const char *what)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    static const char constants[2 * 4096] = {1};
    static char memory[2 * 4096] = {1};
    char *const constant = (char *)(((uintptr_t)constants + 4095) & -4096ul);
    char *const page = (char *)(((uintptr_t)memory + 4095) & -4096ul);
    if (strcmp(what, "guarded") == 0)
        show("guarded", madvise(page, 4096, 102));
    else if (strcmp(what, "dropped") == 0)
        show("dropped", madvise(constant, 4096, MADV_DONTNEED));
    else if (strcmp(what, "collapsed") == 0)
        show("unknown", madvise(mmap(NULL, 4096, PROT_READ, flags, -1, 0), 4096, 1000));
    else if (strcmp(what, "moved") == 0) {
        char *const mine = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
        show("moved", mremap(mine, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page);
    } else {
        char *const heap = (char *)(((uintptr_t)sbrk(64 * 4096) + 4095) & -4096ul);
        show("executable", mprotect(heap, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
    }
}

/* From below all mappings up to a place below the program, where a fresh process has none. */
static void wide(void)
{
    char *const low = (char *)0x100000;
    const size_t size = 0x3000ul << 32;
    show("dropped", madvise(low, size, MADV_DONTNEED) == -1 && errno == ENOMEM);
    show("unmapped", munmap(low, size));
}

/* Arguments of which the kernel reads a part only, or that it refuses. */
static void halves(void)
{
    const uint64_t all = ~0ull;
    const struct {
        const uint64_t *mask;
        size_t size;
    } both = {&all, 4};
    const struct timespec none = {0, 0};
    const int fd = open("/dev/null", O_WRONLY), events = epoll_create1(0);
    const struct iovec part = {(void *)0x1d4a00000000, 1};
    struct epoll_event event;
    show("waits", syscall(SYS_ppoll, NULL, 0, &none, &all, 4));
    show("selects", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &none, &both));
    show("is told", syscall(SYS_epoll_pwait, events, &event, 1, 0, &all, 4));
    show("writes", syscall(SYS_writev, fd, &part, 1 | 1l << 32));
}

/* Asks for a place that is taken: in part by what this run has mapped, or, "before", by a page from before main. */
static void hint(const char *what)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    static char memory[2 * 4096] = {1};
    char *const before = (char *)(((uintptr_t)memory + 4095) & -4096ul);
    char *const mine = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    char *const wanted = strcmp(what, "before") == 0 ? before : mine + 4096 + 1;
    char *const made = mmap(wanted, 2 * 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    show("there", made - wanted > -4096 && made - wanted < 4096);
    show("mapped", made != MAP_FAILED);
    show("exclusive", mmap(mine, 4096, PROT_READ, flags | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED);
    if (strcmp(what, "unmapped") != 0)
        return;
    munmap(mine, 4 * 4096);
    show("there now", mmap(mine, 4096, PROT_READ, flags, -1, 0) == mine);
}

/* The kernel moves a range of two mappings only if it has joined them. It does so with fresh ones, not with one that has kept pages. */
static void two_blocks(void)
{
    enum { SIZE = 256 << 10 };
    const int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *upper = mmap(NULL, SIZE, access, flags, -1, 0);
    memset(upper, 1, SIZE);
    munmap(upper, SIZE);
    mmap(NULL, SIZE / 2, PROT_READ, flags, -1, 0);
    upper = mmap(NULL, SIZE, access, flags, -1, 0);
    char *const lower = mmap(NULL, SIZE, access, flags, -1, 0);
    memset(lower, 1, SIZE);
    show("adjacent", lower + SIZE == upper);
    show("moved", mremap(lower, 2 * SIZE, 4 * SIZE, MREMAP_MAYMOVE) != MAP_FAILED);
}

/* Maps all that is free between heap and libraries, after the heap has shrunk. */
static void gap(void)
{
    enum { GROWN = 8 << 20 };
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    const uintptr_t heap = (uintptr_t)sbrk(0);
    sbrk((intptr_t)(8192 - (heap & 4095)));
    char *const end = sbrk(GROWN);
    memset(end, 1, GROWN);
    sbrk(-GROWN);
    char *const lowest = mmap(NULL, GROWN, PROT_NONE, flags, -1, 0);
    char *const all = mmap(NULL, (size_t)(lowest - end), PROT_NONE, flags, -1, 0);
    show("from the heap on", all == end);
    show("accessible", mprotect(all, 4096, PROT_READ | PROT_WRITE) == 0);
    *all = 42;
    show("there", mmap(all, 4096, PROT_READ, flags, -1, 0) == all);
    show("heap grown", sbrk(4096) != (void *)-1);
    show("kept", *all);
}

/* So many files that one gets the number. */
static void many(void)
{
    for (int i = 0; i < 70; i++)
        show("open", open("/dev/null", O_RDONLY));
}

static void *read_links(void *more)
{
    char text[4096], path[64];
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(path, text, sizeof text - 1);
    show("descriptor", length);
    printf("%.*s\n", length < 0 ? 0 : (int)length, text);
    show("own program", readlink("/proc/self/exe", text, sizeof text) > 0);
    show("none", readlink("/proc/self/fd/50", text, sizeof text));
    if (more)
        show("more", readlink(more, text, sizeof text) > 0);
    return NULL;
}

/* As a compiler does that builds a module in a thread. */
static void links_in_thread(char *more)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, read_links, more) == 0)
        pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(how, "inherited") == 0)
        return inherited();
    if (strcmp(how, "exec") == 0)
        return execute(argv, 0);
    if (strcmp(how, "exec-later") == 0)
        return execute(argv, 1);
    if (strcmp(how, "exec-in-handler") == 0)
        return execute_in_handler();
    if (strcmp(how, "registers") == 0)
        return registers();
    if (strcmp(how, "arguments") == 0)
        in_arguments();
    else if (strcmp(how, "memory") == 0)
        in_memory();
    else if (strcmp(how, "filtered") == 0)
        filtered();
    else if (strcmp(how, "filtered-among-threads") == 0)
        filtered_among_threads();
    else if (strcmp(how, "filtered-by-child") == 0)
        filtered_by_child();
    else if (strcmp(how, "cloned") == 0)
        cloned();
    else if (strcmp(how, "own") == 0)
        own();
    else if (strcmp(how, "many") == 0)
        many();
    else if (strcmp(how, "links") == 0)
        links_in_thread(argv[2]);
    else if (strcmp(how, "name") == 0)
        by_name();
    else if (strcmp(how, "over-name") == 0)
        over_name();
    else if (strcmp(how, "unreadable") == 0)
        unreadable();
    else if (strcmp(how, "cramped") == 0)
        cramped(argv[2]);
    else if (strcmp(how, "stepping") == 0)
        stepping();
    else if (strcmp(how, "page") == 0)
        own_page(argv[2]);
    else if (strcmp(how, "hint") == 0)
        hint(argv[2]);
    else if (strcmp(how, "refused") == 0)
        show("refused", mmap((void *)0x10000000000, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, -1, 0) == MAP_FAILED);
    else if (strcmp(how, "change") == 0)
        change(argv[2]);
    else if (strcmp(how, "wide") == 0)
        wide();
    else if (strcmp(how, "halves") == 0)
        halves();
    else if (strcmp(how, "blocks") == 0)
        two_blocks();
    else if (strcmp(how, "gap") == 0)
        gap();
    else
        return strcmp(how, "nothing") == 0 ? 0 : 2;
    return 0;
}
