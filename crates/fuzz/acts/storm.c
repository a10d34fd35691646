/* Several threads call the kernel all the time, while one does what concerns every call of the process. */
#include "act.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#undef FAMILY
#define FAMILY "storm"

#define THREADS 2

/* Rounds that the threads go on for after what happened. */
#define ROUNDS_AFTER 20

static volatile int storm_over, storm_wrong, storm_started, storm_rounds;
static int storm_file;

/* Each way to call, with an answer that is known. */
static void *call_always(void *argument)
{
    const long user = RAW(SYS_getuid), length = (long)(intptr_t)argument;
    const pid_t process = getpid();
    char text[8] = "storm";
    __atomic_fetch_add(&storm_started, 1, __ATOMIC_SEQ_CST);
    while (!storm_over) {
        int wrong = RAW(SYS_getuid) != user || getuid() != (uid_t)user;
        wrong |= write(storm_file, text, (size_t)length) != length;
        wrong |= RAW(SYS_write, storm_file, text, length) != length;
        wrong |= syscall(SYS_getpid) != process || getpid() != process;
        wrong |= RAW(SYS_close, -1) != -EBADF;
        if (wrong)
            storm_wrong = 1;
        __atomic_fetch_add(&storm_rounds, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static int storm_begin(pthread_t *threads)
{
    storm_over = storm_wrong = storm_started = storm_rounds = 0;
    storm_file = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, call_always, (void *)(intptr_t)(i + 1)) != 0)
            return 0;
    while (storm_started < THREADS)
        sched_yield();
    return 1;
}

static void storm_end(const pthread_t *threads)
{
    int joined = 0;
    const int enough = storm_rounds + ROUNDS_AFTER;
    while (storm_rounds < enough)
        sched_yield();
    storm_over = 1;
    for (int i = 0; i < THREADS; i++)
        joined += pthread_join(threads[i], NULL) == 0;
    close(storm_file);
    say("joined %d wrong %d", joined, storm_wrong);
}

/* `during` runs while the threads call. */
static void storm(void (*during)(void))
{
    pthread_t threads[THREADS];
    if (!storm_begin(threads))
        return say("no threads");
    during();
    storm_end(threads);
}

static void storm_reads_status(void)
{
    char text[4096];
    say("read %d", slurp("/proc/self/status", text, sizeof text) > 100);
}

MIXED(storm_status)
{
    storm(storm_reads_status);
}

static void storm_reads_stat(void)
{
    char text[1024];
    say("read %d", slurp("/proc/self/stat", text, sizeof text) > 10 && atoi(text) == getpid());
}

MIXED(storm_stat)
{
    storm(storm_reads_stat);
}

static struct sock_filter filter_code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 33),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static struct sock_fprog filter_program = {CHECK_SIZE(filter_code), filter_code};

static void install_here(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    say_result("filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter_program));
    say_result("priority", RAW(SYS_getpriority, 0, 0));
}

MIXED(storm_filter)
{
    storm(install_here);
}

static void install_everywhere(void)
{
    RAW(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
    say_result("filter", RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter_program));
    say_result("priority", RAW(SYS_getpriority, 0, 0));
}

MIXED(storm_filter_for_all)
{
    storm(install_everywhere);
}

static void fork_often(void)
{
    int right = 0;
    for (int i = 0; i < 5; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            _exit(getuid() == (uid_t)RAW(SYS_getuid) ? 7 : 8);
        right += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7;
    }
    say("children %d", right);
}

MIXED(storm_fork)
{
    storm(fork_often);
}

static void change_action(void)
{
    int right = 0;
    for (int i = 0; i < 20; i++) {
        right += signal(SIGSYS, SIG_IGN) != SIG_ERR;
        right += signal(SIGSYS, SIG_DFL) == SIG_IGN;
    }
    say("right %d", right);
}

MIXED(storm_actions)
{
    storm(change_action);
}

static void break_moves(void)
{
    int right = 0;
    for (int i = 0; i < 20; i++) {
        char *was = sbrk(65536);
        right += was != (void *)-1 && !any_set(was, 65536);
        memset(was, 1, 65536);
        right += sbrk(-65536) != (void *)-1;
    }
    say("right %d", right);
}

MIXED(storm_break)
{
    storm(break_moves);
}

static void call_unknown(void)
{
    say_result("number 5000", syscall(5000));
    say_result("priority", RAW(SYS_setpriority, 0, 0, 0));
    say_result("limit", RAW(SYS_sched_rr_get_interval, -1, 0));
}

MIXED(storm_unknown)
{
    storm(call_unknown);
}

END(storm_exit)
{
    pthread_t threads[THREADS];
    if (storm_begin(threads))
        exit(41);
}

END(storm_exit_at_once)
{
    pthread_t threads[THREADS];
    if (storm_begin(threads))
        RAW(SYS_exit_group, 42);
}

END(storm_executes)
{
    pthread_t threads[THREADS];
    char *arguments[] = {"acts", "data_count", "sigsys_show", "end_return_code", NULL};
    if (storm_begin(threads))
        execv(own_path, arguments);
}

END(storm_aborts)
{
    pthread_t threads[THREADS];
    if (storm_begin(threads))
        abort();
}

static void *executes(void *argument)
{
    char *arguments[] = {"acts", "data_count", "thread_count", "end_return_code", NULL};
    execv(own_path, arguments);
    return argument;
}

END(storm_executes_in_thread)
{
    pthread_t threads[THREADS], other;
    if (storm_begin(threads) && pthread_create(&other, NULL, executes, NULL) == 0)
        pthread_join(other, NULL);
}
