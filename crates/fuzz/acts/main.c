/* Runs the acts that the arguments name, in their order. `--list` prints all there are. */
#include "act.h"
#include <setjmp.h>
#include <stdarg.h>

/* The linker makes these, unless a finding has no act at all. */
extern const struct act *const __start_acts[] __attribute__((weak)), *const __stop_acts[] __attribute__((weak));

int own_argc;
char **own_argv;
const char *own_path;
const char *current_act = "start";

void say(const char *format, ...)
{
    char line[2048];
    va_list more;
    int used = snprintf(line, sizeof line, "%s: ", current_act);
    va_start(more, format);
    int length = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, more);
    va_end(more);
    used += length < (int)sizeof line - used - 2 ? length : (int)sizeof line - used - 2;
    line[used++] = '\n';
    raw(SYS_write, 1, (long)line, used, 0, 0, 0);
}

void say_result(const char *what, long result)
{
    if (result < 0)
        say("%s failed %d", what, result == -1 ? errno : (int)-result);
    else
        say("%s %ld", what, result);
}

long raw(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    long result = syscall(number, a, b, c, d, e, f);
    return result == -1 ? -errno : result;
#endif
}

static sigjmp_buf after_fault;
static volatile int fault_code;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
#if defined(__x86_64__)
    /* With alignment checked, the way out would fault again. */
    __asm__ volatile("pushfq\n\tandl $~0x40000, (%%rsp)\n\tpopfq" : : : "memory", "cc");
#endif
    fault_code = info->si_code + (number == SIGBUS ? 100 : number == SIGILL ? 200 : 0);
    siglongjmp(after_fault, 1);
}

static const volatile char *probed;

static void do_read(void)
{
    (void)*probed;
}

static void do_write(void)
{
    *(volatile char *)probed = 1;
}

int probe_call(void (*function)(void))
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER}, old[3];
    for (int i = 0; i < 3; i++)
        sigaction(numbers[i], &action, &old[i]);
    fault_code = 0;
    if (!sigsetjmp(after_fault, 1))
        function();
    for (int i = 0; i < 3; i++)
        sigaction(numbers[i], &old[i], NULL);
    return fault_code;
}

int probe_read(const volatile void *at)
{
    probed = at;
    return probe_call(do_read);
}

int probe_write(volatile void *at)
{
    probed = at;
    return probe_call(do_write);
}

int slurp(const char *path, char *into, int room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), used = 0;
    ssize_t got;
    *into = 0;
    if (fd < 0)
        return -errno;
    while (used < room - 1 && (got = read(fd, into + used, (size_t)(room - 1 - used))) > 0)
        used += (int)got;
    into[used] = 0;
    close(fd);
    return used;
}

int spill(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    ssize_t sent = write(fd, text, strlen(text));
    int failed = errno;
    close(fd);
    return sent < 0 ? -failed : 0;
}

int is_new(const char *file, unsigned long value)
{
    char path[64], text[4096], line[32];
    snprintf(path, sizeof path, "../notes/%s", file);
    snprintf(line, sizeof line, "%lx\n", value);
    if (slurp(path, text, sizeof text) < 0)
        *text = 0;
    int there = strstr(text, line) != NULL;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, line, strlen(line)) > 0)
        close(fd);
    return !there;
}

void say_status(const char *const *words)
{
    char text[8192];
    if (slurp("/proc/self/status", text, sizeof text) < 0)
        say("no status");
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        for (const char *const *word = words; *word; word++)
            if (!strncmp(line, *word, strlen(*word)))
                say("%s", line);
}

void say_child(pid_t child)
{
    int status = 0;
    pid_t got = child > 0 ? waitpid(child, &status, __WALL) : -1;
    if (got != child || child <= 0)
        say("no child %d", errno);
    else
        say("child %s %d", WIFEXITED(status) ? "exited" : "killed",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int any_set(const volatile void *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const volatile unsigned char *)from)[i])
            return 1;
    return 0;
}

static const char *const ROLES[] = {"disturbs", "observes", "both", "ends", "rare", "before"};

static const struct act *find(const char *name)
{
    for (const struct act *const *at = __start_acts; at < __stop_acts; at++)
        if (!strcmp((*at)->name, name))
            return *at;
    return NULL;
}

static int list(void)
{
    for (const struct act *const *at = __start_acts; at < __stop_acts; at++)
        printf("%s %s %s\n", (*at)->name, (*at)->family, ROLES[(*at)->role]);
    return 0;
}

/* What ran before main tells what it saw, whatever else is asked for. */
static void report_before(void)
{
    for (const struct act *const *at = __start_acts; at < __stop_acts; at++)
        if ((*at)->role == BEFORE) {
            current_act = (*at)->name;
            (*at)->run();
        }
}

/* What main does before it looks at its arguments. */
extern void (*const __start_begins[])(void) __attribute__((weak)), (*const __stop_begins[])(void) __attribute__((weak));

__attribute__((used)) static int run_acts(int argc, char **argv)
{
    static char path[4096];
    for (void (*const *begin)(void) = __start_begins; begin < __stop_begins; begin++)
        (*begin)();
    if (argc == 2 && !strcmp(argv[1], "--list"))
        return list();
    own_argc = argc;
    own_argv = argv;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    own_path = length > 0 ? path : argv[0];
    report_before();
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-"))
            continue;
        const struct act *act = find(argv[i]);
        if (!act)
            return 125;
        current_act = act->name;
        act->run();
    }
    return 0;
}

char stack_is_used __attribute__((used));
uintptr_t registers_at_main[REGISTERS_AT_MAIN] __attribute__((used));
unsigned short flags_at_main __attribute__((used));

#if defined(__x86_64__)
/* Looks at the registers and the stack before anything of the program's own has run there. ld.so reaches down some 5.7 KB in a cold
 * process: from 6.5 KiB to 32 KiB below main's frame nothing is left. */
__attribute__((naked)) int main(int argc __attribute__((unused)), char **argv __attribute__((unused)))
{
    __asm__("lahf\n\tseto %al\n\tmov %ax, flags_at_main(%rip)\n\tlea registers_at_main(%rip), %rax\n\t"
            "mov %rbx, (%rax)\n\tmov %rbp, 8(%rax)\n\tmov %r12, 16(%rax)\n\tmov %r13, 24(%rax)\n\tmov %r14, 32(%rax)\n\t"
            "mov %r15, 40(%rax)\n\tmov %rcx, 48(%rax)\n\tmov %r8, 56(%rax)\n\tmov %r9, 64(%rax)\n\tmov %r10, 72(%rax)\n\t"
            "mov %r11, 80(%rax)\n\t"
            "mov %rdi, %r8\n\tlea -32768(%rsp), %rdi\n\tmov $3264, %ecx\n\txor %eax, %eax\n\trepe scasq\n\t"
            "setne stack_is_used(%rip)\n\tmov %r8, %rdi\n\tjmp run_acts");
}
#else
int main(int argc, char **argv)
{
    return run_acts(argc, argv);
}
#endif
