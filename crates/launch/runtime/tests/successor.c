/* What the kernel keeps, or writes, for each process, in a program that looks at its process number. It prints lines that are the same
 * in every process, or its number. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void *own_number(void *given)
{
    *(int *)given = gettid();
    return NULL;
}

static volatile int on_other_stack;
static char other_stack[64 * 1024];

static void note_stack(int number)
{
    (void)number;
    char here;
    on_other_stack = &here > other_stack && &here < other_stack + sizeof other_stack;
}

static int stack_works(void)
{
    const stack_t other = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    const struct sigaction action = {.sa_handler = note_stack, .sa_flags = SA_ONSTACK};
    stack_t before;
    return sigaltstack(&other, &before) == 0 && before.ss_flags == SS_DISABLE && sigaction(SIGUSR1, &action, NULL) == 0 &&
           raise(SIGUSR1) == 0 && on_other_stack;
}

/* What the kernel keeps, or writes, for each process; after the program has looked at its number. */
static void kernel(void)
{
    const int number = getpid();
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int thread = 0, death = -1;
    void *robust = NULL;
    size_t robust_size = 0;
    pthread_t other;
    struct timespec spent = {0}, limit = {0, 500000000};
    const struct rseq *area = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
    pthread_mutex_lock(&mutex);
    prctl(PR_GET_PDEATHSIG, &death, 0, 0, 0);
    syscall(SYS_get_robust_list, 0, &robust, &robust_size);
    const int joined = pthread_create(&other, NULL, own_number, &thread) == 0 && pthread_join(other, NULL) == 0;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    printf("main %d owner %d robust %zu %d death %d thread %d %d\n", gettid() == number, mutex.__data.__owner == number, robust_size,
           robust && *(void **)robust == robust, death, joined, thread > 0 && thread != number);
    printf("area %d %d stack %d exists %d little %d group %d\n", !__rseq_size || (int)area->cpu_id >= 0,
           !__rseq_size || area->cpu_id < 4096, stack_works(), kill(number, 0),
           spent.tv_sec == 0 && spent.tv_nsec < limit.tv_nsec, getpgid(number) == getpgrp());
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "kernel") == 0)
        kernel();
    else if (strcmp(argv[1], "process") == 0)
        printf("%d\n", getpid());
    else if (strcmp(argv[1], "thread") == 0)
        printf("%d\n", (int)syscall(SYS_gettid));
    else
        puts("nothing");
    return 0;
}
