/* What is left for main: threads, descriptors, signals, memory, the end. See before.h. */
#include "before.h"
#include <sys/rseq.h>
#include <ucontext.h>

#ifdef WITH_before_thread
static void *wait_before(void *argument)
{
    (void)argument;
    for (;;)
        pause();
    return NULL;
}
CONSTRUCT(start_thread)
{
    UNUSED;
    pthread_t thread;
    pthread_create(&thread, NULL, wait_before, NULL);
}
TELL(before_thread)
{
    say_status((const char *const[]){"Threads", NULL});
}
#endif

#ifdef WITH_before_thread_joined
static __thread int joined_local = 3;
static void *set_local(void *argument)
{
    (void)argument;
    return (void *)(intptr_t)++joined_local;
}
CONSTRUCT(join_thread)
{
    UNUSED;
    pthread_t thread;
    if (pthread_create(&thread, NULL, set_local, NULL) == 0)
        pthread_join(thread, NULL);
}
TELL(before_thread_joined)
{
    say("%d", joined_local);
}
#endif

#ifdef WITH_before_child
static int child_status = -1;
CONSTRUCT(run_child)
{
    UNUSED;
    pid_t child = fork();
    if (child == 0)
        _exit(4);
    waitpid(child, &child_status, 0);
}
TELL(before_child)
{
    say("%d", WEXITSTATUS(child_status));
}
#endif

#ifdef WITH_before_descriptor
static int opened;
CONSTRUCT(open_descriptor)
{
    UNUSED;
    opened = open("/dev/null", O_RDONLY);
}
TELL(before_descriptor)
{
    say("%d", opened);
}
#endif

#ifdef WITH_before_descriptor_lowest
static int lowest;
CONSTRUCT(find_lowest)
{
    UNUSED;
    lowest = dup(0);
    close(lowest);
}
TELL(before_descriptor_lowest)
{
    say("%d", lowest);
}
#endif

#ifdef WITH_before_descriptors_there
static int third, seventh;
CONSTRUCT(look_at_descriptors)
{
    UNUSED;
    third = fcntl(3, F_GETFD), seventh = fcntl(7, F_GETFD);
}
TELL(before_descriptors_there)
{
    say("%d %d", third, seventh);
}
#endif

#ifdef WITH_before_signal_action
static volatile int constructed_calls;
static void on_constructed(int number)
{
    constructed_calls += number;
}
CONSTRUCT(set_action)
{
    UNUSED;
    signal(SIGUSR1, on_constructed);
}
TELL(before_signal_action)
{
    raise(SIGUSR1);
    say("%d", constructed_calls);
}
#endif

#ifdef WITH_before_signal_mask
CONSTRUCT(set_mask)
{
    UNUSED;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
}
TELL(before_signal_mask)
{
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    say("%d", sigismember(&now, SIGUSR2));
}
#endif

#ifdef WITH_before_timer
CONSTRUCT(set_timer)
{
    UNUSED;
    alarm(900);
}
TELL(before_timer)
{
    say("%d", alarm(0) > 800);
}
#endif

#ifdef WITH_before_memory
static char *constructed_block;
CONSTRUCT(fill_memory)
{
    UNUSED;
    constructed_block = malloc(200000);
    memset(constructed_block, 4, 200000);
    free(malloc(5000));
}
TELL(before_memory)
{
    say("%d", constructed_block[100]);
    memset(constructed_block, 5, 200000);
}
#endif

#ifdef WITH_before_memory_shared
static char *shared_block;
CONSTRUCT(share_memory)
{
    UNUSED;
    shared_block = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}
TELL(before_memory_shared)
{
    say("%d", shared_block[0]++);
}
#endif

#ifdef WITH_before_memory_locked
CONSTRUCT(lock_memory)
{
    UNUSED;
    static char page[8192];
    mlock(page, sizeof page);
}
TELL(before_memory_locked)
{
    char text[4096];
    slurp("/proc/self/status", text, sizeof text);
    const char *line = strstr(text, "VmLck:");
    say("%d", line && atoi(line + 6) > 0);
}
#endif

#ifdef WITH_before_ending
static void say_ending(void)
{
    say("ending");
}
CONSTRUCT(register_ending)
{
    UNUSED;
    atexit(say_ending);
}
TELL(before_ending)
{
    say("registered");
}
__attribute__((destructor)) static void destruct(void)
{
    say("destructed");
}
#endif

#ifdef WITH_before_exit
CONSTRUCT(exit_early)
{
    UNUSED;
    if (access("config", F_OK) == 0)
        exit(41);
}
TELL(before_exit)
{
    say("not ended");
}
#endif

#ifdef WITH_before_read_only
static int *filled_before;
CONSTRUCT(fill_page)
{
    UNUSED;
    filled_before = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    filled_before[7] = 7;
    mprotect(filled_before, 4096, PROT_READ);
}
TELL(before_read_only)
{
    volatile int *numbers = filled_before;
    say("%d", numbers[7]);
    madvise(filled_before, 4096, MADV_DONTNEED);
}
#endif

#ifdef WITH_before_arguments_lock
/* In main, but before it looks at its request. libc keeps the thread's number in a lock. */
static pthread_mutex_t held = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
BEGIN(hold)
{
    pthread_mutex_lock(&held);
}
TELL(before_arguments_lock)
{
    say_result("again", -pthread_mutex_trylock(&held));
}
#endif

#ifdef WITH_before_arguments_environment
/* The same: main has taken another environment. */
extern char **environ;
static char *own_environment[] = {"HS_OWN=own", NULL};
static const char *own_value;
BEGIN(take_environment)
{
    char **const given = environ;
    environ = own_environment;
    own_value = getenv("HS_OWN");
    environ = given;
}
TELL(before_arguments_environment)
{
    say("%s", own_value ? own_value : "(unset)");
}
#endif

#ifdef WITH_before_arguments_handler
/* The same: what a handler is told, and what the process has after it. */
static volatile int handler_flags = -1;
static volatile size_t handler_size;
static void note_handler_stack(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    handler_flags = ((ucontext_t *)context)->uc_stack.ss_flags;
    handler_size = ((ucontext_t *)context)->uc_stack.ss_size;
}
BEGIN(be_handled)
{
    struct sigaction action = {.sa_sigaction = note_handler_stack, .sa_flags = SA_SIGINFO | SA_NODEFER}, old;
    sigfillset(&action.sa_mask);
    sigaction(SIGTRAP, &action, &old);
    trap_here();
    sigaction(SIGTRAP, &old, NULL);
}
TELL(before_arguments_handler)
{
    stack_t now = {0};
    sigaltstack(NULL, &now);
    say("%d %zu, then %d %zu", handler_flags, handler_size, now.ss_flags, now.ss_size);
}
#endif

#ifdef WITH_before_arguments_stack
/* The same: a signal stack in a frame that has returned. Later frames lie in it, and the kernel says so. */
static int flags_on_stack = -1;
static __attribute__((noinline)) void leave_signal_stack(void)
{
    char room[64 * 1024];
    sigaltstack(&(stack_t){.ss_sp = room, .ss_size = sizeof room}, NULL);
    __asm__ volatile("" ::"r"(room) : "memory");
}
static __attribute__((noinline)) int ask_signal_stack(void)
{
    char room[4096];
    stack_t now = {0};
    __asm__ volatile("" ::"r"(room) : "memory");
    return sigaltstack(NULL, &now) == 0 ? now.ss_flags : -1;
}
BEGIN(register_own_stack)
{
    leave_signal_stack();
    flags_on_stack = ask_signal_stack();
}
TELL(before_arguments_stack)
{
    say("%d, now %d", flags_on_stack, ask_signal_stack());
}
#endif

#ifdef WITH_before_random_beside
/* The kernel's random bytes need not fill whole words. In main, but before it looks at its arguments, as the next two. */
BEGIN(write_beside_random)
{
    extern void *__libc_stack_end;
    unsigned char *const bytes = (unsigned char *)getauxval(AT_RANDOM);
    if (bytes)
        bytes[16] = (unsigned char)*(long *)__libc_stack_end;
}
TELL(before_random_beside)
{
    const unsigned char *const bytes = (const unsigned char *)getauxval(AT_RANDOM);
    say("%d", bytes && bytes[16] == own_argc);
}
#endif

#ifdef WITH_before_random_bit
static int random_bit;
static int bit_of_random(void)
{
    const unsigned char *const bytes = (const unsigned char *)getauxval(AT_RANDOM);
    return bytes ? bytes[3] >> 2 & 1 : 0;
}
BEGIN(keep_random_bit)
{
    random_bit = bit_of_random();
}
TELL(before_random_bit)
{
    say("%d", random_bit == bit_of_random());
}
#endif

#ifdef WITH_before_kernels_area
/* The kernel writes to this area, but not to its last bytes. */
static volatile unsigned char *last_of_area(void)
{
    return (volatile unsigned char *)__builtin_thread_pointer() + __rseq_offset + 31;
}
BEGIN(write_to_kernels_area)
{
    extern void *__libc_stack_end;
    if (__rseq_size)
        *last_of_area() = (unsigned char)*(long *)__libc_stack_end;
}
TELL(before_kernels_area)
{
    say("%d", !__rseq_size || *last_of_area() == own_argc);
}
#endif
