/* Decides what happens to each system call that a run of main makes (gate.c).
 *
 * It is an allow-list. A call on it leaves nothing in the process but descriptors, which are closed after the run, and state that state.c
 * and mappings.c restore; and its answer is that of a fresh process. Any other call is made as well, but makes the run doubtful: the
 * worker is not used again, and the runner does not believe the run (HS_SEEN_UNKNOWN). A look at the process's number retires the worker
 * as well, since the next run would have the same one.
 *
 * table.c has the calls. signals.c follows signals, usage.c times and limits. The kernel reads a pointer of the tool's before this code
 * does: a bad one is the tool's error.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime.h"

#if HS_RESETS
#include <asm/prctl.h>

/* linux/fs.h and newer headers have them. */
#ifndef FUSE_SUPER_MAGIC /* Linux 5.16 */
#define FUSE_SUPER_MAGIC 0x65735546
#endif
#define COPY_ALL 0x40049409ul   /* FICLONE */
#define COPY_RANGE 0x4020940dul /* FICLONERANGE */
#define FLAGS_GET 0x80086601ul  /* FS_IOC_GETFLAGS */
/* asm/termbits.h, which does not go with termios.h, has them: glibc 2.43 asks so whether a descriptor is a terminal. */
#define TERMINAL_GET 0x802c542aul    /* TCGETS2 */
#define TERMINAL_SET 0x402c542bul    /* TCSETS2 */
#define TERMINAL_SET_W 0x402c542cul  /* TCSETSW2 */
#define TERMINAL_SET_F 0x402c542dul  /* TCSETSF2 */
/* linux/prctl.h has it since 5.11. */
#define SYSCALL_USER_DISPATCH 59
/* linux/sched.h has it since 5.5: CLONE_CLEAR_SIGHAND. */
#define CLEAR_HANDLERS 0x100000000ul
/* The part of a thread's stack that is known where libc does not tell its size. */
#define SHORT_STACK (128 * 1024ul)

/* Any thread may add to `seen` and `actions`, and none takes from them in a run. hs_call_begin sets the rest before each run. */
static struct {
    uint32_t seen;     /* enum hs_call_seen, in this run */
    uint64_t actions;  /* signals whose action may have been set since it was last taken: bit n-1 for signal n */
    int process;
    int sets_death_signal; /* the tool has set that signal itself */
    const void *first;     /* the first thread's pointer */
    volatile int ends;     /* main has ended: other threads make no more calls */
    long number;           /* of the call at hand, for the report */
} calls;

/* A patched site is asked without a signal. Calls that raise one stay where they are, so that a backtrace is that of a fresh process. */
int hs_call_may_be_patched(long number)
{
    switch (number) {
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_pidfd_send_signal:
    case SYS_rt_sigreturn:
        return 0;
    default:
        return number >= 0 && number < 0xffff;
    }
}

static void see(uint32_t what)
{
    __atomic_or_fetch(&calls.seen, what, __ATOMIC_RELAXED);
}

/* From here on the process is not used again, and nobody may speak to the runner in its name. */
void hs_call_mark(void)
{
    hs_worker_doubts(HS_RUN_CALLS);
    hs_worker_names_call(calls.number);
    see(HS_SEEN_UNKNOWN);
    hs_worker_disconnect();
}

/* A handler of the tool's may have been told who sent its signal. */
uint32_t hs_call_seen(void)
{
    return calls.seen | (hs_signals_came ? HS_SEEN_NUMBER : 0);
}

void hs_call_note_limit(void)
{
    see(HS_SEEN_LIMITS);
}

uint64_t hs_call_actions(void)
{
    const uint64_t was = calls.actions;
    calls.actions = 0;
    return was;
}

/* The action of a signal may be another now. */
void hs_call_note_action(long number)
{
    __atomic_or_fetch(&calls.actions, 1ull << (number - 1), __ATOMIC_RELAXED);
}

static enum hs_call_outcome unknown(void)
{
#ifndef HS_WITHOUT_UNKNOWN
    hs_call_mark();
#endif
    return HS_CALL_NATIVE;
}

/* A later run gets another number first. But if this one has that of a run before, it has a smaller one, further from those of its threads
 * and of earlier commands, than a process that begins now: it is not believed. */
void hs_call_see_number(void)
{
    see(HS_SEEN_NUMBER);
    if (hs_worker_has_old_number())
        hs_worker_doubts(HS_RUN_NUMBER);
}

static enum hs_call_outcome number_if(int is_shown)
{
    if (is_shown)
        hs_call_see_number();
    return HS_CALL_NATIVE;
}

static enum hs_call_outcome known_if(int harmless)
{
#ifdef HS_WITHOUT_ARGUMENTS
    return HS_CALL_NATIVE;
#endif
    return harmless ? HS_CALL_NATIVE : unknown();
}

/* A question about a process or thread, 0 for this one. Its own number is known, and what concerns another one is not: a zygote and a
 * worker have the addresses of this process. */
static enum hs_call_outcome ask_about(int process)
{
    if (process == 0)
        return HS_CALL_NATIVE;
    number_if(1);
    return known_if(HS_SYS(SYS_tgkill, HS_SYS(SYS_getpid), process, 0) == 0);
}

/* Whether capget's head names no process. */
static int is_about_itself(long head)
{
    struct __user_cap_header_struct known;
    return hs_signals_fetch(&known, head, sizeof known) && known.pid == 0;
}

/* Up to the runner's connection descriptors have the numbers that they would have without it. The next one may be that number: it is free
 * by then. */
void hs_call_note_descriptor(long fd)
{
    if (fd >= HS_CONTROL_FD - 1 || fd == -EMFILE)
        hs_call_mark();
}

static enum hs_call_outcome make_descriptor(struct hs_system_call *call)
{
    const long fd = hs_call_make(call);
    hs_call_note_descriptor(fd);
    return hs_call_done(call, fd);
}

static enum hs_call_outcome make_pair(struct hs_system_call *call, const int *pair)
{
    const long result = hs_call_make(call);
    hs_call_note_descriptor(result == 0 ? pair[0] : result);
    hs_call_note_descriptor(result == 0 ? pair[1] : result);
    return hs_call_done(call, result);
}

/* Whether a poll's list has the runner's connection. What cannot be read is the kernel's to refuse. */
static int polls_connection(const struct hs_system_call *call)
{
    struct pollfd some[16];
    for (unsigned at = 0; at < (unsigned)call->b; at += 16) {
        const unsigned here = (unsigned)call->b - at < 16 ? (unsigned)call->b - at : 16;
        if (!hs_signals_fetch(some, call->a + (long)(at * sizeof *some), here * sizeof *some))
            break;
        for (unsigned i = 0; i < here; i++)
            if (some[i].fd == HS_CONTROL_FD)
                return 1;
    }
    return 0;
}

/* Whether a select asks for the runner's connection, or for descriptors beyond the smallest table: the kernel ignores those beyond the
 * table of this process, which may be larger or smaller than that of a fresh one. */
static int selects_doubtful(const struct hs_system_call *call)
{
    enum { BITS = 64, SETS_WORDS = 16 };
    const long sets[] = {call->b, call->c, call->d};
    const int count = (int)call->a, words = count > 0 ? (count - 1) / BITS + 1 : 0;
    uint64_t set[SETS_WORDS];
    /* A set of FD_SETSIZE descriptors, 1024, has no more. */
    if (words > SETS_WORDS)
        return 1;
    for (int i = 0; count > HS_CONTROL_FD && i < 3; i++) {
        if (!sets[i] || !hs_signals_fetch(set, sets[i], (size_t)words * sizeof *set))
            continue;
        if (set[0] >> HS_CONTROL_FD & 1)
            return 1;
        for (int word = 1; word < words; word++)
            if (set[word])
                return 1;
    }
    return 0;
}

/* Closes the descriptors on both sides of the runner's connection. */
static enum hs_call_outcome close_range_of(struct hs_system_call *call)
{
    const unsigned from = (unsigned)call->a, to = (unsigned)call->b;
    if (from > to || from > HS_CONTROL_FD || to < HS_CONTROL_FD || !hs_worker_is_connected())
        return HS_CALL_NATIVE;
    if (call->c & ~CLOSE_RANGE_CLOEXEC)
        hs_call_mark();
    long result = 0;
    if (from < HS_CONTROL_FD)
        result = HS_SYS(SYS_close_range, from, HS_CONTROL_FD - 1, call->c);
    if (result == 0 && to > HS_CONTROL_FD)
        result = HS_SYS(SYS_close_range, HS_CONTROL_FD + 1, to, call->c);
    return hs_call_done(call, result);
}

static int fcntl_is_known(long command)
{
    switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
    case F_GETFD:
    case F_SETFD:
    case F_GETFL:
    case F_SETFL:
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
    case F_GETPIPE_SZ:
    case F_SETPIPE_SZ:
    case F_ADD_SEALS:
    case F_GET_SEALS:
        return 1;
    default:
        return 0;
    }
}

static int ioctl_is_known(unsigned long request)
{
    switch (request) {
    case TCGETS:
    case TCSETS:
    case TCSETSW:
    case TCSETSF:
    case TCGETA:
    case TERMINAL_GET:
    case TERMINAL_SET:
    case TERMINAL_SET_W:
    case TERMINAL_SET_F:
    case TIOCGWINSZ:
    case TIOCGPGRP:
    case FIONREAD:
    case FIONBIO:
    case FIOCLEX:
    case FIONCLEX:
    case COPY_ALL:
    case COPY_RANGE:
    case FLAGS_GET:
        return 1;
    default:
        return 0;
    }
}

/* Whether a range is to be copied from the runner's connection. */
static int copies_connection(const struct hs_system_call *call)
{
    int64_t from;
    return (unsigned long)call->b == COPY_RANGE && hs_signals_fetch(&from, call->c, sizeof from) && (int)from == HS_CONTROL_FD;
}

static int prctl_is_known(int option)
{
    switch (option) {
    case PR_SET_NAME:
    case PR_GET_NAME:
    case PR_GET_DUMPABLE:
    case PR_GET_PDEATHSIG:
    case PR_GET_SECCOMP:
    case PR_GET_NO_NEW_PRIVS:
    case PR_GET_TIMERSLACK:
    case PR_GET_KEEPCAPS:
    case PR_GET_CHILD_SUBREAPER:
    case PR_GET_THP_DISABLE:
    case PR_GET_SECUREBITS:
    case PR_CAPBSET_READ:
        return 1;
    default:
        return 0;
    }
}

/* The worker's own, which the tool has not asked for. */
static enum hs_call_outcome death_signal(struct hs_system_call *call)
{
    const long result = hs_call_make(call);
    if (result == 0 && !calls.sets_death_signal)
        *(int *)call->b = 0;
    return hs_call_done(call, result);
}

static int futex_is_known(long operation)
{
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAKE:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAKE_BITSET:
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_WAKE_OP:
        return 1;
    default:
        return 0;
    }
}

/* Whether memory overlaps the part of the tool's stack on which the gate works: between the tool's frame and this one, and below, where
 * further ones will be. What is above is the tool's own loss. In the first thread a slot works elsewhere. */
static int has_frames(uintptr_t from, size_t size, uintptr_t stack)
{
    enum { FRAMES_MAX = 1 << 16, BELOW = 1 << 13, PAGE = 4096 };
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0), low = here - BELOW;
    return stack - here <= FRAMES_MAX && from < stack && (from >= low || size + PAGE > low - from);
}

/* Whether a call takes such memory away. */
static int takes_frames(const struct hs_system_call *call, uintptr_t stack)
{
    const long number = call->number;
    if (number == SYS_brk || (number == SYS_mmap && !(call->d & (MAP_FIXED | MAP_FIXED_NOREPLACE))))
        return 0;
    return has_frames((uintptr_t)call->a, (size_t)call->b, stack) ||
           (number == SYS_mremap && call->d & MREMAP_FIXED && has_frames((uintptr_t)call->e, (size_t)call->c, stack));
}

/* Unmaps a range, or advises about it: around the runtime's own memory if all of that is in it, where a fresh process has none. */
static long around_own(const struct hs_system_call *call)
{
    const struct hs_place own = hs_own_places();
    const uintptr_t own_from = (uintptr_t)own.from, own_to = own_from + own.size;
    const uintptr_t from = (uintptr_t)call->a, to = from + (size_t)call->b;
    if (from >= own_from || to <= own_to)
        return hs_mappings_call(call);
    struct hs_system_call below = *call, above = *call;
    below.b = (long)(own_from - from);
    above.a = (long)own_to;
    above.b = (long)(to - own_to);
    const long first = hs_mappings_call(&below), second = hs_mappings_call(&above);
    return first ? first : second;
}

/* A refusal may be due to what the worker has mapped beside the tool's own memory. The constructors of a library that is opened now are
 * given the arguments of the zygote, unless the loader was told others. */
static enum hs_call_outcome map(struct hs_system_call *call, uintptr_t stack)
{
    const long number = call->number, wanted = call->a;
    if (takes_frames(call, stack)) {
        hs_call_mark();
        return HS_CALL_AT_SITE;
    }
    if (number == SYS_mmap && call->c & PROT_EXEC && !(call->d & MAP_ANONYMOUS) && !hs_loader_is_known())
        hs_call_mark();
    /* The break keeps another distance from what grows down. */
    if (hs_call_is_about_strings(call) || (number == SYS_mmap && call->d & MAP_GROWSDOWN))
        hs_call_mark();
    const int overlaps = number == SYS_mmap && wanted && hs_mappings_overlap((uintptr_t)wanted, (size_t)call->b);
    const long result = number == SYS_munmap || number == SYS_madvise ? around_own(call) : hs_mappings_call(call);
    /* What was opened for reading only cannot be written there. */
    if (number == SYS_mmap && (call->d & MAP_TYPE) != MAP_PRIVATE && !(call->d & MAP_ANONYMOUS) &&
        (HS_SYS(SYS_fcntl, call->e, F_GETFL) & O_ACCMODE) == O_RDWR)
        see(HS_SEEN_SHARED);
    if (number == SYS_brk ? wanted && result != wanted : !hs_places_are_as_elsewhere(call, result, overlaps))
        hs_call_mark();
    return hs_call_done(call, result);
}

/* Whether the process is signalled at the end of the runner, of which the tool does not know. */
static int has_death_signal(void)
{
    int number = 0;
    return !calls.sets_death_signal && HS_SYS(SYS_prctl, PR_GET_PDEATHSIG, &number) == 0 && number != 0;
}

/* Another program gets the signal mask, what is ignored, and the signal at the end of its parent as the tool believes to have them; the
 * guard ends it, too. Its age, its CPU time, its peak of memory and its count of bytes read are those of the process, even of one without
 * earlier runs: in a test that is doubtful. Should it fail to start, this run goes on: without the gate, if signals were handed over. */
static enum hs_call_outcome execute(struct hs_system_call *call, long directory, long path, void *context)
{
    if (!hs_signals_are_own())
        return HS_CALL_NATIVE;
    hs_worker_may_end();
    if (!hs_nested_is_build())
        hs_call_mark();
    else if (hs_worker_has_past())
        hs_worker_doubts(HS_RUN_PAST);
    if (hs_signals_blocks() || hs_gate_ignores()) {
        hs_gate_reveal();
        hs_signals_hand_over(context);
        hs_signals_hand_over(NULL);
    }
    const int had_death_signal = has_death_signal();
    if (had_death_signal)
        HS_SYS(SYS_prctl, PR_SET_PDEATHSIG, 0);
    const long result = hs_call_make(call);
    if (had_death_signal)
        HS_SYS(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    /* Only one that fails comes back. A way that is looked at before would end the connection of one that does not. */
    hs_walk_settle(hs_paths_look_at_way(call, directory, (const char *)path), result);
    if (result != -ENOENT)
        hs_files_look_at_name(directory, (const char *)path);
    return hs_call_done(call, result);
}

/* A copy of this process, which goes on from here: it has no gate, and nothing that shows that there was one. */
static enum hs_call_outcome fork_process(struct hs_system_call *call, void *context)
{
    hs_mappings_make_real(0);
    const long child = hs_call_make(call);
    if (child == 0) {
        hs_gate_leave();
        hs_signals_hand_over(context);
        if (hs_worker_is_connected())
            HS_SYS(SYS_close, HS_CONTROL_FD);
    }
    return hs_call_done(call, child);
}

/* A child that shares this memory until it becomes another program: libc's posix_spawn gives it a stack, and sets its mask. */
static enum hs_call_outcome share_with_child(const struct hs_call_place *place, unsigned long flags, int has_stack)
{
    const int hides = hs_gate_ignores() || (!has_stack && hs_signals_blocks());
    if (hides)
        hs_call_mark();
    const int is_usual = (flags & ~CLEAR_HANDLERS) == (CLONE_VM | CLONE_VFORK | SIGCHLD);
    if (is_usual && !has_stack && hs_children_vfork(place->back, hides))
        return HS_CALL_VFORKS;
    /* What the child does is not followed. */
    if (!is_usual || !has_stack || !hs_children_spawn()) {
        hs_children_note_foreign();
        hs_worker_disconnect();
    }
    return HS_CALL_BRANCHES;
}

static enum hs_call_outcome make_thread(unsigned long flags)
{
    const unsigned long known = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                                CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    see(HS_SEEN_THREADS);
    if ((flags & ~0xfful) != known || !hs_threads_creates())
        hs_call_mark();
    return HS_CALL_BRANCHES;
}

/* A new process or thread: by libc's fork, vfork, posix_spawn or pthread_create, or in a way that is not known. */
static enum hs_call_outcome make_task(struct hs_system_call *call, const struct hs_call_place *place, unsigned long flags, int has_stack)
{
    const unsigned long ids = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID | 0xff;
    if (flags & CLONE_THREAD)
        return make_thread(flags);
    see(HS_SEEN_CHILDREN);
    hs_worker_doubts(HS_RUN_CHILDREN);
    if (flags & ~(ids | CLONE_VM | CLONE_VFORK | CLEAR_HANDLERS))
        hs_call_mark();
    if (flags & CLONE_VM)
        return share_with_child(place, flags, has_stack);
    hs_children_note_foreign();
    if (!has_stack)
        return fork_process(call, place->context);
    hs_call_mark();
    hs_mappings_make_real(0);
    return HS_CALL_BRANCHES;
}

/* The kernel reads flags, four pointers, the signal, and the stack. */
static enum hs_call_outcome clone_by_list(struct hs_system_call *call, const struct hs_call_place *place)
{
    uint64_t list[8];
    if (call->b < (long)sizeof list)
        return HS_CALL_NATIVE;
    if (!hs_signals_fetch(list, call->a, sizeof list)) {
        see(HS_SEEN_CHILDREN);
        hs_worker_doubts(HS_RUN_CHILDREN);
        hs_mappings_make_real(0);
        return HS_CALL_BRANCHES;
    }
    if (list[0] & CLONE_THREAD)
        hs_stacks_note((void *)list[7], list[5], list[5] + list[6]);
    return make_task(call, place, list[0] | (list[4] & 0xff), list[5] != 0);
}

/* A signal for this process. One that tells of a crash is raised where the tool does, so that a backtrace is that of a fresh process.
 * Another process may be told who has sent it. */
static enum hs_call_outcome send_signal(const struct hs_system_call *call)
{
    const int number = (int)(call->number == SYS_tgkill || call->number == SYS_rt_tgsigqueueinfo ? call->c : call->b);
    const uint64_t crashes = 1ull << (SIGABRT - 1) | 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGILL - 1) |
                             1ull << (SIGFPE - 1) | 1ull << (SIGTRAP - 1) | 1ull << (SIGQUIT - 1) | 1ull << (SIGSYS - 1);
    const int is_crash = number >= 1 && number <= 64 && crashes >> (number - 1) & 1;
    const int is_own = call->number == SYS_tkill || call->number == SYS_pidfd_send_signal || (int)call->a <= 0 ||
                       (int)call->a == calls.process;
    /* Whoever knows the number of an earlier run would learn that this one has it as well. */
    hs_call_see_number();
    return is_crash && is_own ? HS_CALL_AT_SITE : HS_CALL_NATIVE;
}

/* A known call that is not plain. */
static enum hs_call_outcome treat(struct hs_system_call *call, const struct hs_call_place *place)
{
    void *context = place->context;
    const long number = call->number;
    switch (number) {
    case SYS_exit_group:
        hs_worker_ended((int)call->a);
        return HS_CALL_NATIVE;
    case SYS_brk:
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mremap:
    case SYS_mprotect:
    case SYS_madvise:
        return map(call, place->stack);
    case SYS_open: return hs_paths_open(call, AT_FDCWD, (const char *)call->a, call->b);
    case SYS_openat: return hs_paths_open(call, call->a, (const char *)call->b, call->c);
    case SYS_creat: return hs_paths_open(call, AT_FDCWD, (const char *)call->a, O_WRONLY | O_CREAT | O_TRUNC);
    case SYS_access:
    case SYS_statfs:
    case SYS_truncate:
    case SYS_chmod:
    case SYS_getxattr:
    case SYS_lgetxattr:
    case SYS_listxattr:
    case SYS_llistxattr:
    case SYS_setxattr:
    case SYS_lsetxattr:
    case SYS_removexattr:
    case SYS_lremovexattr: return hs_paths_look_up(call, AT_FDCWD, (const char *)call->a);
    case SYS_inotify_add_watch: return hs_paths_look_up(call, AT_FDCWD, (const char *)call->b);
    case SYS_utimensat:
    case SYS_futimesat:
    case SYS_fchownat: return hs_paths_set(call, call->a, (const char *)call->b);
    case SYS_fchown: return hs_paths_set(call, call->a, NULL);
    case SYS_chown:
    case SYS_lchown:
    case SYS_utime:
    case SYS_utimes: return hs_paths_set(call, AT_FDCWD, (const char *)call->a);
    case SYS_rename:
    case SYS_link: return hs_paths_change(call, AT_FDCWD, call->a, AT_FDCWD, call->b);
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat: return hs_paths_change(call, call->a, call->b, call->c, call->d);
    case SYS_mkdir:
    case SYS_rmdir:
    case SYS_unlink:
    case SYS_mknod: return hs_paths_change(call, AT_FDCWD, call->a, 0, 0);
    case SYS_mkdirat:
    case SYS_unlinkat:
    case SYS_mknodat: return hs_paths_change(call, call->a, call->b, 0, 0);
    case SYS_symlink: return hs_paths_change(call, AT_FDCWD, call->b, 0, 0);
    case SYS_symlinkat: return hs_paths_change(call, call->b, call->c, 0, 0);
    case SYS_fchmodat:
    case SYS_faccessat:
    case SYS_faccessat2: return hs_paths_look_up(call, call->a, (const char *)call->b);
    case SYS_chdir: return hs_paths_enter(call);
    case SYS_stat:
    case SYS_lstat: return hs_paths_tell(call, call->b);
    case SYS_fstat: return hs_paths_tell(call, call->b);
    case SYS_newfstatat: return hs_paths_tell(call, call->c);
    case SYS_statx: return hs_paths_tell(call, call->e);
    case SYS_readlink: return hs_paths_read_link(call, AT_FDCWD, (const char *)call->a);
    case SYS_readlinkat: return hs_paths_read_link(call, call->a, (const char *)call->b);
    /* That of another thread is near the process's. */
    case SYS_gettid:
    case SYS_getpid: return number_if(1);
    case SYS_getpgid:
    case SYS_getsid:
    case SYS_sched_getparam:
    case SYS_sched_getscheduler:
    case SYS_get_robust_list: return ask_about((int)call->a);
    /* libc asks so for what it tells of a thread (pthread_getattr_np). */
    case SYS_sched_getaffinity: return hs_threads_asks_for_stack() ? HS_CALL_NATIVE : ask_about((int)call->a);
    case SYS_getpriority: return ask_about((int)call->b);
    case SYS_clock_getres: return known_if((int)call->a >= 0);
    case SYS_capget: return known_if(is_about_itself(call->a));
    case SYS_sysinfo: return hs_usage_system(call);
    case SYS_dup2:
    case SYS_dup3:
        if ((int)call->b == HS_CONTROL_FD)
            hs_call_mark();
        return make_descriptor(call);
    case SYS_dup:
    case SYS_accept:
    case SYS_accept4: return make_descriptor(call);
    case SYS_socket:
        number_if(!hs_sockets_have_plain_addresses((int)call->a));
        return make_descriptor(call);
    case SYS_setsockopt: return known_if(hs_sockets_option_is_known((int)call->b, (int)call->c));
    case SYS_getsockopt:
        return number_if(!hs_sockets_option_tells_nothing((int)call->b, (int)call->c));
    case SYS_rt_sigtimedwait: return number_if(call->b != 0);
    case SYS_memfd_create:
    case SYS_eventfd:
    case SYS_eventfd2:
    case SYS_epoll_create:
    case SYS_epoll_create1:
    case SYS_timerfd_create:
    case SYS_inotify_init:
    case SYS_inotify_init1: return make_descriptor(call);
    case SYS_pipe:
    case SYS_pipe2: return make_pair(call, (const int *)call->a);
    case SYS_socketpair: return make_pair(call, (const int *)call->d);
    case SYS_close_range: return close_range_of(call);
    case SYS_sendmsg:
    case SYS_recvmsg: return hs_sockets_message(call);
    case SYS_bind:
    case SYS_connect: return hs_sockets_use_address(call, call->b, (int)call->c);
    case SYS_sendto: return hs_sockets_use_address(call, call->e, (int)call->f);
    /* Who connects is told this process's number. */
    case SYS_listen: return number_if(1);
    /* /proc/locks tells who has one. */
    case SYS_flock: return number_if((call->b & LOCK_UN) == 0);
    case SYS_epoll_ctl: return HS_CALL_NATIVE;
    case SYS_select: return known_if(!selects_doubtful(call));
    case SYS_poll: return known_if(!polls_connection(call));
    case SYS_ppoll: known_if(!polls_connection(call)); return hs_signals_wait(call, call->d, call->e);
    case SYS_fcntl:
        if (call->b == F_DUPFD || call->b == F_DUPFD_CLOEXEC)
            return make_descriptor(call);
        /* The answer may be that this process has the lock; and others are told who has one. */
        number_if(call->b == F_GETLK || call->b == F_OFD_GETLK || call->b == F_SETLK || call->b == F_SETLKW);
        return known_if(fcntl_is_known(call->b));
    case SYS_ioctl:
        return known_if(ioctl_is_known((unsigned long)call->b) && !copies_connection(call));
    case SYS_execve: return execute(call, AT_FDCWD, call->a, context);
    case SYS_execveat: return execute(call, call->a, call->b, context);
    /* Other commands register the process. */
    case SYS_membarrier: return known_if(call->a == 0 || call->a == 1);
    /* A filter may forbid what the runtime itself calls. */
    case SYS_seccomp: return HS_CALL_AT_SITE;
    /* Each signal stops a process that is traced, the gate's own as well. */
    case SYS_ptrace: return HS_CALL_AT_SITE;
    case SYS_prctl:
        if ((int)call->a == PR_SET_SECCOMP || (int)call->a == SYSCALL_USER_DISPATCH)
            return HS_CALL_AT_SITE;
        if ((int)call->a == PR_SET_PDEATHSIG)
            calls.sets_death_signal = 1;
        return (int)call->a == PR_GET_PDEATHSIG ? death_signal(call) : known_if(prctl_is_known((int)call->a));
    case SYS_futex: return known_if(futex_is_known(call->b));
    case SYS_arch_prctl: return known_if(call->a == ARCH_GET_FS || call->a == ARCH_GET_GS);
    case SYS_personality: return known_if(call->a == 0xffffffff);
    case SYS_sigaltstack: return hs_signals_stack(call);
    case SYS_rt_sigaction: return hs_signals_action(call, place->stack);
    case SYS_rt_sigprocmask: return hs_signals_mask(call, context);
    case SYS_rt_sigsuspend: return hs_signals_wait(call, call->a, call->b);
    case SYS_pselect6: known_if(!selects_doubtful(call)); return hs_signals_select(call);
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return hs_signals_wait(call, call->e, call->f);
    case SYS_rt_sigreturn: return hs_signals_return((void *)place->stack);
    case SYS_getrusage: return hs_usage_tell(call);
    case SYS_times: return hs_usage_times(call);
    case SYS_clock_gettime: return hs_usage_clock(call);
    case SYS_clock_nanosleep: return hs_usage_sleep(call);
    case SYS_getrlimit:
    case SYS_setrlimit:
    case SYS_prlimit64: return hs_usage_limit(call);
    case SYS_setitimer:
    case SYS_alarm:
        see(HS_SEEN_TIMERS);
        return HS_CALL_NATIVE;
    case SYS_fork: return make_task(call, place, SIGCHLD, 0);
    case SYS_vfork: return make_task(call, place, CLONE_VM | CLONE_VFORK | SIGCHLD, 0);
    case SYS_clone:
        /* Only the end of the stack is told: it is followed as far as any thread's reaches. */
        if (call->a & CLONE_THREAD)
            hs_stacks_note((void *)call->e, (uintptr_t)call->b - SHORT_STACK, (uintptr_t)call->b);
        return make_task(call, place, (unsigned long)call->a, call->b != 0);
    case SYS_clone3: return clone_by_list(call, place);
    /* The mask of a thread that ends is nobody's. */
    case SYS_exit:
        hs_worker_may_end();
        hs_signals_set_blocks(0);
        return HS_CALL_NATIVE;
    case SYS_set_robust_list:
    case SYS_rseq: return known_if(HS_SYS(SYS_gettid) != calls.process);
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_pidfd_send_signal: return send_signal(call);
    default: return unknown();
    }
}

enum hs_call_outcome hs_call_decide(struct hs_system_call *call, const struct hs_call_place *place)
{
    const long number = calls.number = call->number;
    if (!hs_gate_is_worker())
        return number == SYS_brk ? map(call, place->stack) : HS_CALL_NATIVE;
    if (calls.seen & HS_SEEN_THREADS && __builtin_thread_pointer() != calls.first) {
        if (calls.ends)
            hs_threads_leave();
        /* The name that a thread gives itself is gone with it. */
        hs_threads_note(number == SYS_prctl && (int)call->a == PR_SET_NAME ? -1 : number);
    }
    hs_stacks_note_depth();
    if (hs_places_point_to_ours(call, place->stack))
        hs_call_mark();
    hs_children_look(call);
    if (!hs_stacks_have_room(place->stack) && hs_signals_are_own())
        hs_call_mark();
    switch (hs_watch_look(call, place->stack)) {
    case HS_WATCH_ANSWERS: return HS_CALL_DONE;
    case HS_WATCH_ARRIVES: return HS_CALL_ARRIVES;
    case HS_WATCH_PASSES: break;
    }
#ifndef HS_WITHOUT_RESERVED
    if (hs_table_names_connection(call)) {
        /* It is closed then, or the tool's own, unless another thread is about to close it. */
        hs_call_mark();
        if (hs_worker_is_connected())
            return hs_call_done(call, -EBADF);
    }
#endif
    const unsigned kind = hs_table_kind(number);
    if (kind & HS_TABLE_PLAIN)
        return HS_CALL_NATIVE;
    return kind & HS_TABLE_KNOWN ? treat(call, place) : unknown();
}

/* As a run ends. */
void hs_call_end(void)
{
    /* A lock that is left there names its owner. */
    const int is_first = __builtin_thread_pointer() == calls.first;
    if (hs_call_seen() & HS_SEEN_NUMBER || (is_first && hs_call_seen() & HS_SEEN_SHARED && hs_threads_share_memory(1)))
        hs_call_see_number();
}

/* In a fresh process the other threads would be gone now. */
void hs_call_stop_others(void)
{
    calls.ends = 1;
}

/* Before each run. */
void hs_call_begin(enum hs_level level)
{
    const int process = (int)HS_SYS(SYS_getpid);
    calls.seen = 0;
    calls.sets_death_signal = 0;
    calls.ends = 0;
    calls.first = __builtin_thread_pointer();
    hs_threads_begin();
    hs_paths_begin();
    calls.process = process;
    hs_signals_begin(calls.process);
    hs_stacks_begin();
    hs_children_begin();
    hs_usage_begin(level);
}

#endif
