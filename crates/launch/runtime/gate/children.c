/* Children that leave nothing behind in their parent: a driver of compilers can be reset although it has had some.
 *
 * Nothing follows a child, and it may know its parent by number. So a worker with children is used again only where all is known of them:
 *  - It is a job of a build, with one thread, and made each child by posix_spawn of the client, or by vfork.
 *  - In a child of posix_spawn only libc's own code runs until its exec.
 *  - A child of vfork shares this memory until its exec, and its system calls come to the gate as well. The short list below has those that
 *    change nothing but the child. Any other call makes the child foreign, and lets it out of the gate.
 *  - The child has executed hotstart's client (nested.c). The server knows how many clients of this process it has served, each by a job
 *    of its own. If one was not, a program has run as our child, and the server ends this process (crates/launch/src/served.rs).
 *  - No child is left, whether it runs or waits to be reaped.
 *
 * Of reaped children the kernel keeps their times and usage in the parent: usage.c subtracts them.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "runtime.h"

#if HS_RESETS

/* Written by a vfork's child as well, while its parent waits in the call. */
static struct {
    uint32_t count;   /* children of this run that have become the client */
    int is_open;      /* a vfork whose child is not counted yet */
    int is_client;    /* that child has executed the client */
    int is_foreign;   /* of a child of this run not all is known */
    int had_children; /* runs before this one */
    int hides;        /* the child that is made now would have another SIGSYS than the tool believes */
    enum { SPAWNS_NOT, SPAWNS, HAS_SPAWNED } spawn; /* in a posix_spawn of the client */
} children;
/* A vfork's child runs in this memory. */
__attribute__((used)) static int child_runs;
/* Where the call that makes it returns. */
__attribute__((used)) static uintptr_t branch_back;

/* A process is made in a way that cannot be followed. */
void hs_children_note_foreign(void)
{
    children.is_foreign = 1;
}

extern const char hs_children_after[];
/* Makes a vfork, with the registers that it had where it came from. The child has all of its calls come to the gate. It runs on the
 * parent's stack; what it leaves there lies below the parent's frames. The comparison is the one that a patched site may have lost. */
__attribute__((naked)) void hs_children_branch(void)
{
    __asm__("syscall\n\t.globl hs_children_after\n\t.hidden hs_children_after\nhs_children_after:\n\t"
            "test %rax, %rax\n\tjz 1f\n\tmovl $0, child_runs(%rip)\n"
            "2:\tcmp $-4096, %rax\n\tjmp *branch_back(%rip)\n"
            "1:\tmovl $1, child_runs(%rip)\n\tlea -128(%rsp), %rsp\n\t"
            "push %rbx\n\tpush %r9\n\tpush %r8\n\tpush %r10\n\tpush %rdx\n\tpush %rsi\n\tpush %rdi\n\tpush %rax\n\t"
            "mov %rsp, %rbx\n\tand $-16, %rsp\n\tcld\n\tcall hs_children_begun\n\tmov %rbx, %rsp\n\t"
            "pop %rax\n\tpop %rdi\n\tpop %rsi\n\tpop %rdx\n\tpop %r10\n\tpop %r8\n\tpop %r9\n\tpop %rbx\n\t"
            "lea 128(%rsp), %rsp\n\tjmp 2b");
}

/* A child is not followed if the tool blocks or ignores SIGSYS: the gate's calls could not come. It gets the mask and action that the tool
 * believes to have, as its next program inherits them. */
__attribute__((used)) static void hs_children_begun(void)
{
    if (children.hides) {
        hs_gate_show_action();
        hs_signals_hand_over(NULL);
    } else if (hs_gate_follow(1) != 0)
        hs_children_note_foreign();
}

/* A signal came when this thread was at `at`, behind the call of hs_children_branch: returns where libc would be if it had just made the
 * call, else 0. A child that a handler may keep is not followed. */
uintptr_t hs_children_returned(uintptr_t at, long result)
{
    const unsigned char *call = (const unsigned char *)branch_back - 2;
    if (at != (uintptr_t)hs_children_after || call[0] != 0x0f || call[1] != 0x05)
        return 0;
    if (result == 0)
        hs_children_note_foreign();
    child_runs = 0;
    return branch_back;
}

static void close_last(void)
{
    if (children.is_open && children.is_client)
        children.count++;
    else if (children.is_open)
        hs_children_note_foreign();
    children.is_open = 0;
    children.is_client = 0;
}

/* Whether a child that is made now can be followed. */
static int can_follow(void)
{
    close_last();
    if (child_runs || !hs_nested_is_build() || hs_call_seen() & (HS_SEEN_THREADS | HS_SEEN_UNKNOWN))
        hs_children_note_foreign();
    return !children.is_foreign;
}

/* A posix_spawn of the client begins. */
void hs_children_spawn_begins(void)
{
    children.spawn = can_follow() ? SPAWNS : SPAWNS_NOT;
}

/* Its result. */
void hs_children_spawn_ended(int error)
{
    if (children.spawn == HAS_SPAWNED && !error)
        children.count++;
    else if (children.spawn == HAS_SPAWNED)
        hs_children_note_foreign();
    children.spawn = SPAWNS_NOT;
}

/* A child with a stack of its own; returns whether that posix_spawn makes it. */
int hs_children_spawn(void)
{
    if (children.spawn == SPAWNS_NOT)
        return 0;
    children.spawn = HAS_SPAWNED;
    return 1;
}

/* A vfork that returns at `back`. Returns whether hs_children_branch is to make it. */
int hs_children_vfork(uintptr_t back, int hides)
{
    const int follows = can_follow() && !hides;
    children.hides = hides;
    children.is_open = follows;
    if (hides)
        hs_children_note_foreign();
    if (follows || hides)
        branch_back = back;
    return follows || hides;
}

/* Calls that change nothing but the child, or nothing at all. calls.c looks at paths, as it does for the parent. */
static int changes_child_only(const struct hs_system_call *call)
{
    switch (call->number) {
    case SYS_close:
    case SYS_read:
    case SYS_dup2:
    case SYS_dup3:
    case SYS_stat:
    case SYS_lstat:
    case SYS_fstat:
    case SYS_newfstatat:
    case SYS_access:
    case SYS_faccessat2:
    case SYS_getrlimit: return 1;
    case SYS_open: return !(call->b & (O_ACCMODE | O_CREAT | O_TRUNC));
    case SYS_openat: return !(call->c & (O_ACCMODE | O_CREAT | O_TRUNC));
    case SYS_fcntl:
        return call->b == F_GETFD || call->b == F_SETFD || call->b == F_GETFL || call->b == F_DUPFD || call->b == F_DUPFD_CLOEXEC;
    case SYS_prlimit64: return call->a == 0 && call->c == 0;
    default: return 0;
    }
}

/* A system call of this run: if a vfork's child makes it, notes whether it is known. */
void hs_children_look(const struct hs_system_call *call)
{
    if (!child_runs || children.is_foreign)
        return;
    if (!children.is_client && call->number == SYS_execve && hs_nested_is_client((const char *)call->a)) {
        children.is_client = 1;
        return;
    }
    if (!children.is_client && changes_child_only(call))
        return;
    /* Here ends also a child whose exec of the client has failed. One that blocks SIGSYS would end by its next call. */
    hs_children_note_foreign();
    hs_gate_follow(0);
}

/* As a run ends. */
void hs_children_end(void)
{
    close_last();
}

/* Whether all children of this run were followed, and none is left. */
int hs_children_are_gone(void)
{
    close_last();
    return !children.is_foreign && hs_nested_is_build() &&
           HS_SYS(SYS_waitid, P_ALL, 0, 0, WEXITED | WNOHANG | WNOWAIT | __WALL, 0) == -ECHILD;
}

/* How many of them have become the client. Asked after that. */
uint32_t hs_children_count(void)
{
    return children.count;
}

/* Whether earlier runs had children. */
int hs_children_came_before(void)
{
    return children.had_children;
}

/* Before each run. */
void hs_children_begin(void)
{
    children.had_children |= children.count != 0;
    children.count = 0;
    children.is_foreign = children.is_open = children.is_client = children.hides = 0;
    children.spawn = SPAWNS_NOT;
    child_runs = 0;
}

#else

void hs_children_spawn_begins(void)
{
}

void hs_children_spawn_ended(int error)
{
    (void)error;
}

#endif
