/* Prints whatever can tell a copied process from a fresh one, or ends in the way its first argument names.
 *
 * Addresses and process numbers are printed as relations only, since they differ between any two processes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

extern char **environ;
static __thread int local = 7;
static int constructed;

static volatile sig_atomic_t signals_taken;

static void take(int number)
{
    (void)number;
    signals_taken++;
}

static void registered_before_main(void)
{
    puts("atexit of a constructor");
}

/* What a constructor may do is kept: handlers, ignored signals, what runs at the end. */
__attribute__((constructor)) static void construct(void)
{
    constructed = 1;
    signal(SIGUSR2, take);
    signal(SIGURG, SIG_IGN);
    atexit(registered_before_main);
}

__attribute__((destructor)) static void destruct(void)
{
    puts("destructor");
}

static void dump(const char *path)
{
    char text[65536];
    int fd = open(path, O_RDONLY);
    ssize_t length = read(fd, text, sizeof text);
    close(fd);
    printf("%s:", path);
    for (ssize_t i = 0; i < length; i++)
        putchar(text[i] ? text[i] : '|');
    putchar('\n');
}

static void print_arguments(int argc, char **argv, char **envp)
{
    printf("errno %d constructed %d local %d\n", errno, constructed, local);
    for (int i = 0; i <= argc; i++)
        printf("argv[%d]=%s\n", i, argv[i] ? argv[i] : "(end)");
    for (char **var = envp; *var; var++)
        printf("env %s\n", *var);
    printf("environ is envp %d, behind argv %d\n", environ == envp, envp == argv + argc + 1);
    printf("names %s %s\n", program_invocation_name, program_invocation_short_name);
    printf("getenv A=%s LD_PRELOAD=%s\n", getenv("A"), getenv("LD_PRELOAD"));
    printf("execfn %s secure %lu uid %lu page %lu\n", (char *)getauxval(AT_EXECFN), getauxval(AT_SECURE),
           getauxval(AT_UID), getauxval(AT_PAGESZ));
    dump("/proc/self/cmdline");
    dump("/proc/self/environ");
    dump("/proc/self/comm");
    dump("/proc/self/limits");
}

static void print_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat info;
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || fstat(fd, &info) != 0)
            continue;
        printf("fd %d type %o flags %x mode %x tty %d\n", fd, info.st_mode & S_IFMT, fcntl(fd, F_GETFD),
               fcntl(fd, F_GETFL), isatty(fd));
    }
    closedir(dir);
    int lowest = dup(0);
    printf("lowest free %d\n", lowest);
    close(lowest);
}

static void print_signals(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[512];
    /* SigQ counts the signals queued for all processes of the user. */
    while (fgets(line, sizeof line, status))
        if ((!strncmp(line, "Sig", 3) && line[3] != 'Q') || !strncmp(line, "Shd", 3) || !strncmp(line, "Threads", 7) ||
            !strncmp(line, "Umask", 5) || !strncmp(line, "Cap", 3) || !strncmp(line, "TracerPid", 9) ||
            !strncmp(line, "NoNewPrivs", 10) || !strncmp(line, "Cpus_allowed", 12) || !strncmp(line, "Seccomp", 7))
            fputs(line, stdout);
    fclose(status);
    for (int number = 1; number < 65; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            printf("signal %d %s\n", number, action.sa_handler == SIG_IGN ? "ignored" : "handled");
    }
    stack_t stack;
    sigaltstack(NULL, &stack);
    struct itimerval timer;
    getitimer(ITIMER_REAL, &timer);
    printf("altstack %d timer %ld children %d\n", stack.ss_flags, (long)timer.it_value.tv_sec,
           (int)waitpid(-1, NULL, WNOHANG));
}

static void print_place(void)
{
    char cwd[4096];
    printf("cwd %s\n", getcwd(cwd, sizeof cwd));
    printf("tid is pid %d, leader of group %d, of session %d\n", gettid() == getpid(), getpgrp() == getpid(),
           getsid(0) == getpid());
    ssize_t length = readlink("/proc/self/exe", cwd, sizeof cwd - 1);
    printf("exe %.*s\n", (int)length, cwd);
    printf("locale %s, set %s\n", setlocale(LC_ALL, NULL), setlocale(LC_ALL, ""));
    int *address = NULL;
    size_t size = 0;
    void *head = NULL;
    prctl(PR_GET_TID_ADDRESS, &address);
    syscall(SYS_get_robust_list, 0, &head, &size);
    printf("tid cell %d robust %zu registered %d nice %d\n", address && *address == gettid(), size, head != NULL,
           getpriority(PRIO_PROCESS, 0));
    void *frames[32];
    printf("frames %d\n", backtrace(frames, 32));
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    printf("cpus %d personality %x dumpable %d\n", CPU_COUNT(&cpus), personality(0xffffffff),
           prctl(PR_GET_DUMPABLE));
    unsigned char *fresh = malloc(5000);
    printf("fresh memory %d\n", fresh[4000]);
    free(fresh);
}

static void *thread(void *value)
{
    local++;
    return (char *)value + local;
}

static void print_abilities(void)
{
    pthread_t other;
    void *result;
    pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    pthread_mutex_lock(&mutex);
    printf("relock %d\n", pthread_mutex_lock(&mutex));
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, &result);
    printf("thread %ld main %d\n", (long)result, local);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(getppid() > 0 ? 9 : 1);
    int status;
    waitpid(child, &status, 0);
    printf("fork %d\n", WEXITSTATUS(status));
    raise(SIGUSR2);
    printf("handled %d\n", signals_taken);
    setenv("NEW", "value", 1);
    unsetenv("A");
    printf("setenv %s %s\n", getenv("NEW"), getenv("A"));
    fflush(stdout);
    system("echo shell sees NEW=$NEW A=$A LD_PRELOAD=$LD_PRELOAD");
    printf("stdio %zu %zu\n", (size_t)BUFSIZ, (size_t)(stdout->_IO_buf_end - stdout->_IO_buf_base));
}

/* Timers of both kinds, until each has fired three times. */
static int count_timers(void)
{
    signal(SIGALRM, take);
    signal(SIGVTALRM, take);
    struct itimerval soon = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &soon, NULL);
    while (signals_taken < 3)
        pause();
    setitimer(ITIMER_REAL, &never, NULL);
    setitimer(ITIMER_VIRTUAL, &soon, NULL);
    while (signals_taken < 6)
        ;
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    return 6;
}

static int use_plugin(void)
{
    void *library = dlopen("libm.so.6", RTLD_NOW);
    double (*root)(double) = library ? (double (*)(double))dlsym(library, "sqrt") : NULL;
    return root ? (int)root(49) : 1;
}

static int count_variables(int argc, char **argv, char **envp)
{
    size_t variables = 0, bytes = 0;
    for (; envp[variables]; variables++)
        bytes += strlen(envp[variables]) + 1;
    for (int i = 1; i < argc; i++)
        bytes += strlen(argv[i]) + 1;
    printf("%d arguments, %zu variables, %zu bytes, last %.9s\n", argc, variables, bytes, argv[argc - 1]);
    return argv[argc] != NULL || getenv("LAST") == NULL;
}

static void first_registered(void)
{
    puts("atexit 1");
}

static void second_registered(void)
{
    puts("atexit 2");
}

static int overflow(volatile int depth)
{
    volatile char space[4096];
    space[0] = (char)depth;
    return overflow(depth + 1) + space[0];
}

static void read_input(void)
{
    char line[256];
    while (fgets(line, sizeof line, stdin))
        printf("in: %s", line);
}

int main(int argc, char **argv, char **envp)
{
    const char *what = argc > 1 ? argv[1] : "print";
    if (!strcmp(what, "exit"))
        return atoi(argv[2]);
    if (!strcmp(what, "_exit"))
        _exit(atoi(argv[2]));
    if (!strcmp(what, "raise"))
        raise(atoi(argv[2]));
    if (!strcmp(what, "abort"))
        abort();
    if (!strcmp(what, "overflow"))
        return overflow(0);
    if (!strcmp(what, "exec")) {
        argv[1] = "print";
        execv("/proc/self/exe", argv);
        return 127;
    }
    if (!strcmp(what, "alarm")) {
        ualarm(50000, 0);
        pause();
    }
    if (!strcmp(what, "error")) {
        dlopen("/nonexistent.so", RTLD_NOW);
        fprintf(stderr, "%s: %s\n", program_invocation_name, dlerror());
        return 3;
    }
    if (!strcmp(what, "timer"))
        return count_timers();
    if (!strcmp(what, "plugin"))
        return use_plugin();
    if (!strcmp(what, "count"))
        return count_variables(argc, argv, envp);
    if (!strcmp(what, "sleep"))
        pause();
    int at_start = errno;
    atexit(first_registered);
    atexit(second_registered);
    errno = at_start;
    print_arguments(argc, argv, envp);
    print_descriptors();
    print_signals();
    print_place();
    print_abilities();
    read_input();
    fprintf(stderr, "on stderr\n");
    return 0;
}
