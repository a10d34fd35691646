/* The gate: every system call that a run of main makes passes here, so that none can change what the next run finds.
 *
 * The kernel hands each system call to a handler (PR_SET_SYSCALL_USER_DISPATCH, Linux 5.11), whether libc, ld.so or an instruction of the
 * tool's makes it. Only calls in the runtime's own text are exempt. calls.c decides what happens to it. A signal for each call would cost
 * more than most calls. So an instruction of libc or ld.so that has come here once is replaced, between two runs, by a jump to a slot in
 * the runtime's text (slots.c). Runs in processes of their own tell the zygote of such instructions, which replaces them before it forks
 * again. It has replaced those of common calls before: the frame of a signal would stay on the tool's stack.
 *
 * The replaced instruction is `mov $number, %eax` right before the `syscall`, which stays: a jump to that alone still comes to the handler.
 * Since glibc 2.41 one `syscall` makes all calls at which a thread can be cancelled, and the number comes from the stack; there it is
 * `mov n(%rsp), %rax`. Without such an instruction it is the `syscall` with the comparison behind it (sites.c).
 *
 * The kernel turns the dispatch off in children and new threads. Threads turn it on for themselves (threads.c). The gate does not concern
 * a child: a page that the kernel clears for children tells it apart.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <linux/audit.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "runtime.h"

#if HS_RESETS

/* linux/prctl.h has them since 5.11. */
#define DISPATCH 59
#define DISPATCH_ON 1
#define DISPATCH_OFF 0
#define SELECTOR_ALLOW 0
#define SELECTOR_BLOCK 1
/* si_code of a SIGSYS that is a dispatched call. */
#define USER_DISPATCH 2
/* Of a number: the call is one of the x32 kind. */
#define X32 0x40000000l

#define PAGE 4096ul
/* Before these, more of the same instruction, or of the one before, is looked at. */
#define PREFIX_BYTES 8
#define JUMP_BYTES 5
#define SITES_MAX 1024

struct range {
    uintptr_t low, high;
};

/* Sites that came to the handler in forks of the zygote, which shares this with them. A tool may write anything here: a site counts only
 * if a system call is there. */
struct reported {
    volatile uint32_t count;
    volatile uintptr_t sites[SITES_MAX];
};

/* Calls of the tool are dispatched while `selector` is SELECTOR_BLOCK: in a run only. Any thread adds to `sites` in a run.
 * Text is patched between two runs, or in the zygote, while there is one thread only. */
static struct {
    volatile char selector;
    struct range own;         /* the runtime's text: its calls are not dispatched */
    struct range patched[2];  /* text of libc and ld.so */
    uintptr_t sites[SITES_MAX]; /* instructions that came to the handler and are not patched */
    uint32_t site_count;
    struct hs_action theirs; /* the tool's action for SIGSYS */
    int is_revealed;
    int is_open; /* all text that may be patched can be written, in patch_all_common */
    volatile int *alive;       /* nonzero in the worker only: the kernel clears its page for children */
    struct reported *reported; /* NULL if there is no such page */
} gate = {.selector = SELECTOR_ALLOW};

static int is_within(const struct range *range, uintptr_t place)
{
    return place >= range->low && place < range->high;
}

int hs_gate_is_worker(void)
{
    return gate.alive && *gate.alive;
}

/* For calls that do not come back here. */
__attribute__((naked, used)) static void leave_by(void)
{
    __asm__("syscall\n\tud2");
}

/* As libc writes it: unwinders know a signal's frame by these bytes. */
__attribute__((naked)) void hs_gate_restorer(void)
{
    __asm__("mov $15, %rax\n\tsyscall");
}

/* Makes text writable, or read-only. */
int hs_gate_set_writable(uintptr_t from, uintptr_t to, int is)
{
    const int access = PROT_READ | PROT_EXEC | (is ? PROT_WRITE : 0);
    if (gate.is_open)
        return 1;
    from &= -PAGE;
    return HS_SYS(SYS_mprotect, from, ((to + PAGE - 1) & -PAGE) - from, access) == 0;
}

/* Whether calls.c decides on calls. Between two runs it does not: the runtime itself calls libc then. */
int hs_gate_follows(void)
{
    return !gate.is_revealed && gate.selector == SELECTOR_BLOCK;
}

int hs_gate_is_libcs(uintptr_t code, size_t size)
{
    return is_within(&gate.patched[0], code) && is_within(&gate.patched[0], code + size - 1);
}

static void note_site(uintptr_t site)
{
    const uint32_t at = __atomic_fetch_add(&gate.site_count, 1, __ATOMIC_RELAXED);
    if (at < SITES_MAX)
        gate.sites[at] = site;
    const uint32_t next = gate.reported ? __atomic_fetch_add(&gate.reported->count, 1, __ATOMIC_RELAXED) : SITES_MAX;
    if (next < SITES_MAX)
        gate.reported->sites[next] = site;
}

/* Writes a jump to a slot, between two runs. */
static int jump(unsigned char *at, const unsigned char *slot)
{
    const intptr_t distance = (intptr_t)slot - (intptr_t)(at + JUMP_BYTES);
    const int32_t near = (int32_t)distance;
    if (!slot || near != distance || !hs_gate_set_writable((uintptr_t)at, (uintptr_t)at + JUMP_BYTES, 1))
        return 0;
    at[0] = 0xe9;
    memcpy(at + 1, &near, sizeof near);
    return hs_gate_set_writable((uintptr_t)at, (uintptr_t)at + JUMP_BYTES, 0);
}

/* Whether a number is loaded by an instruction that begins there: it is no register's of a higher number, and no value that is written to
 * memory, whose address would end with 0xb8. */
static int is_move(const unsigned char *at)
{
    return at[0] == 0xb8 && (at[-1] & 0xf0) != 0x40 && at[-2] != 0xc7 && at[-3] != 0xc7;
}

static int follows(const unsigned char *code, const unsigned char *what, size_t size)
{
    return memcmp(code - size, what, size) == 0;
}

/* Whether a number is loaded from the stack by an instruction that begins there: behind another one, or where a jump leads. */
static int is_move_from_stack(const unsigned char *at)
{
    static const unsigned char move[] = {0x48, 0x8b, 0x44, 0x24}; /* mov n(%rsp), %rax */
    static const unsigned char other[] = {0x49, 0x89, 0xca};      /* mov %rcx, %r10 */
    static const unsigned char padding[][8] = {
        {0x0f, 0x1f, 0x00}, {0x0f, 0x1f, 0x40, 0}, {0x0f, 0x1f, 0x44, 0, 0}, {0x0f, 0x1f, 0x80, 0, 0, 0, 0}, {0x0f, 0x1f, 0x84}};
    static const size_t sizes[] = {3, 4, 5, 7, 8};
    if (memcmp(at, move, sizeof move) != 0)
        return 0;
    int is_aligned = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        is_aligned |= (uintptr_t)at % 16 == 0 && follows(at, padding[i], sizes[i]);
    return is_aligned || follows(at, other, sizeof other);
}

/* The instruction of libc or ld.so that loads the number right before the call at `site`; NULL if it does not look as they write
 * it. */
static unsigned char *load_of(uintptr_t site)
{
    unsigned char *load = (unsigned char *)site - HS_MOVE_BYTES;
    const uintptr_t from = (uintptr_t)load - PREFIX_BYTES;
    if (!is_within(&gate.patched[0], from) && !is_within(&gate.patched[1], from))
        return NULL;
    return is_move(load) || is_move_from_stack(load) ? load : NULL;
}

static int may_be_patched(const unsigned char *load)
{
    int32_t number;
    memcpy(&number, load + 1, sizeof number);
    /* From the stack come the calls at which a thread can be cancelled; none of them raises a signal. */
    return *load != 0xb8 || hs_call_may_be_patched(number);
}

/* Whether a system call of libc or ld.so lies there, with room for what is before it. */
static int is_call(uintptr_t site)
{
    for (size_t i = 0; i < sizeof gate.patched / sizeof *gate.patched; i++)
        if (is_within(&gate.patched[i], site - HS_MOVE_BYTES) && is_within(&gate.patched[i], site + HS_CALL_BYTES))
            return hs_slots_is_call(site);
    return 0;
}

/* Replaces a call of libc or ld.so; returns whether it did. */
static int patch(uintptr_t site)
{
    if (!is_call(site))
        return 0;
    const unsigned char first = *((unsigned char *)site - HS_MOVE_BYTES);
    unsigned char *load = load_of(site);
    if (hs_slots_find(site + HS_CALL_BYTES) && first == 0xe9)
        return 0;
    if (!load && hs_sites_tail_is_free(site))
        return jump((unsigned char *)site, hs_slots_make(site + HS_TAIL_BYTES, NULL));
    return load && may_be_patched(load) && jump(load, hs_slots_make(site + HS_CALL_BYTES, load));
}

/* Patches the sites that have come to the handler; between two runs, while there is one thread only. Whether any was. */
int hs_gate_patch(void)
{
    const uint32_t count = gate.site_count < SITES_MAX ? gate.site_count : SITES_MAX;
    int patched = 0;
    for (uint32_t i = 0; i < count; i++)
        patched |= patch(gate.sites[i]);
    gate.site_count = 0;
    return patched;
}

/* Whether many tools make it. */
static int is_common(int32_t number)
{
    static const unsigned short common[] = {
        SYS_read, SYS_write, SYS_open, SYS_close, SYS_stat, SYS_fstat, SYS_lstat, SYS_newfstatat, SYS_poll, SYS_lseek, SYS_mmap,
        SYS_mprotect, SYS_munmap, SYS_mremap, SYS_brk, SYS_madvise, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_sigaltstack,
        SYS_ioctl, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_access, SYS_faccessat, SYS_openat, SYS_dup, SYS_dup2,
        SYS_dup3, SYS_fcntl, SYS_pipe2, SYS_getcwd, SYS_chdir, SYS_mkdir, SYS_rmdir, SYS_unlink, SYS_unlinkat, SYS_rename,
        SYS_renameat, SYS_readlink, SYS_readlinkat, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_getdents64, SYS_statfs,
        SYS_fstatfs, SYS_statx, SYS_umask, SYS_chmod, SYS_fchmod, SYS_utimensat, SYS_getrusage, SYS_sysinfo, SYS_times, SYS_uname,
        SYS_prlimit64, SYS_getrlimit, SYS_setrlimit, SYS_getrandom, SYS_sched_getaffinity, SYS_sched_yield, SYS_futex,
        SYS_clock_nanosleep, SYS_prctl, SYS_sendfile, SYS_memfd_create,
    };
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (common[i] == number)
            return 1;
    return 0;
}

/* Patches the sites of common calls in a text of libc's or ld.so's: a `syscall` right behind what loads such a number. */
static void patch_common(const struct range *text)
{
    static const unsigned char call[HS_CALL_BYTES] = {0x0f, 0x05}, zero[] = {0x31, 0xc0};
    const uintptr_t end = text->high - HS_TAIL_BYTES;
    for (uintptr_t at = text->low + HS_MOVE_BYTES + PREFIX_BYTES; at <= end; at += HS_CALL_BYTES) {
        at = (uintptr_t)memmem((const void *)at, text->high - at, call, sizeof call);
        if (!at || at > end)
            return;
        const unsigned char *const load = load_of(at);
        int32_t number = -1;
        if (load && *load == 0xb8)
            memcpy(&number, load + 1, sizeof number);
        else if (load)
            /* Any call at which a thread can be cancelled, such as this one. */
            number = SYS_read;
        else if (memcmp((const void *)(at - sizeof zero), zero, sizeof zero) == 0 && hs_sites_tail_is_free(at))
            number = SYS_read;
        if (is_common(number))
            patch(at);
    }
}

static void patch_all_common(void)
{
    int can = hs_slots_set_writable(1);
    for (size_t i = 0; i < sizeof gate.patched / sizeof *gate.patched; i++)
        can &= gate.patched[i].low && hs_gate_set_writable(gate.patched[i].low, gate.patched[i].high, 1);
    gate.is_open = can;
    for (size_t i = 0; can && i < sizeof gate.patched / sizeof *gate.patched; i++)
        patch_common(&gate.patched[i]);
    gate.is_open = 0;
    hs_slots_set_writable(0);
    for (size_t i = 0; i < sizeof gate.patched / sizeof *gate.patched; i++)
        if (gate.patched[i].low)
            hs_gate_set_writable(gate.patched[i].low, gate.patched[i].high, 0);
}

/* In the zygote, before a fork: patches the sites that earlier forks have reported. */
void hs_gate_patch_reported(void)
{
    if (!gate.reported || gate.reported->count == 0)
        return;
    const uint32_t count = __atomic_exchange_n(&gate.reported->count, 0, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < SITES_MAX; i++)
        patch(gate.reported->sites[i]);
}

static int dispatch(int on)
{
    return HS_SYS(SYS_prctl, DISPATCH, on ? DISPATCH_ON : DISPATCH_OFF, on ? gate.own.low : 0,
                  on ? gate.own.high - gate.own.low : 0, on ? &gate.selector : 0) == 0;
}

/* A SIGSYS that another process, or the tool itself, has sent. The kernel delivers it whatever the tool blocks, and knows nothing of the
 * tool's own flags and mask. */
static void forward(int number, siginfo_t *info, void *context)
{
    void *handler = gate.theirs.handler;
    hs_call_mark();
    if (handler == (void *)SIG_IGN)
        return;
    if (handler != (void *)SIG_DFL) {
        ((void (*)(int, siginfo_t *, void *))handler)(number, info, context);
        return;
    }
    const struct hs_action none = {0};
    HS_SYS(SYS_rt_sigaction, SIGSYS, &none, 0, HS_SET_BYTES);
    HS_SYS(SYS_kill, HS_SYS(SYS_getpid), SIGSYS);
}

/* Takes the gate away for the rest of the run, which is not followed any more. Another thread may be on its way to the handler
 * with a call, which it then makes where it came from. */
void hs_gate_reveal(void)
{
    hs_call_mark();
    hs_mappings_make_real(1);
    gate.is_revealed = 1;
    gate.selector = SELECTOR_ALLOW;
    dispatch(0);
    hs_signals_let_go();
    if (!hs_state_has_threads())
        HS_SYS(SYS_rt_sigaction, SIGSYS, &gate.theirs, 0, HS_SET_BYTES);
}

/* In a forked child, which the kernel has let out: SIGSYS is the tool's again. */
void hs_gate_leave(void)
{
    HS_SYS(SYS_rt_sigaction, SIGSYS, &gate.theirs, 0, HS_SET_BYTES);
    hs_signals_let_go();
    gate.is_revealed = 1;
}

/* A vfork's child: has its calls come here, or not. */
int hs_gate_follow(int on)
{
    return dispatch(on) ? 0 : -1;
}

/* The same, where the child is not followed: only the action is its own, the memory is its parent's. */
void hs_gate_show_action(void)
{
    HS_SYS(SYS_rt_sigaction, SIGSYS, &gate.theirs, 0, HS_SET_BYTES);
}

/* Whether the tool ignores SIGSYS. */
int hs_gate_ignores(void)
{
    return gate.theirs.handler == (void *)SIG_IGN;
}

/* In place of a system call: its number is in rax, and what follows it in rip. */
static void on_call(int number, siginfo_t *info, void *data)
{
    greg_t *regs = ((ucontext_t *)data)->uc_mcontext.gregs;
    struct hs_system_call call = {regs[REG_RAX], regs[REG_RDI], regs[REG_RSI], regs[REG_RDX],
                                  regs[REG_R10], regs[REG_R8], regs[REG_R9]};
    const struct hs_call_place place = {(uintptr_t)regs[REG_RIP], (uintptr_t)regs[REG_RSP], data};
    const uintptr_t site = place.back - HS_CALL_BYTES;
    if (info->si_code != USER_DISPATCH) {
        forward(number, info, data);
        return;
    }
    if (gate.is_revealed) {
        regs[REG_RIP] -= HS_CALL_BYTES;
        return;
    }
    note_site(site);
    enum hs_call_outcome outcome = HS_CALL_AT_SITE;
    void *const before = hs_cancel_begin(data);
    if (info->si_arch == AUDIT_ARCH_X86_64 && !(call.number & X32))
        outcome = hs_call_decide(&call, &place);
    hs_cancel_end(before);
    hs_watch_wipe();
    switch (outcome) {
    case HS_CALL_DONE:
        regs[REG_RAX] = call.number;
        return;
    case HS_CALL_NATIVE:
    case HS_CALL_BRANCHES: {
        const uintptr_t way = hs_slots_way(place.back);
        if (way) {
            regs[REG_RIP] = (greg_t)way;
            return;
        }
        break;
    }
    case HS_CALL_VFORKS:
        regs[REG_RIP] = (greg_t)hs_children_branch;
        return;
    case HS_CALL_LEAVES:
        regs[REG_RIP] = (greg_t)leave_by;
        return;
    case HS_CALL_ARRIVES:
        hs_watch_arrive_by_signal(data, site);
        return;
    case HS_CALL_AT_SITE:
        break;
    }
    /* It is made again where it came from, and this run is not followed any more. */
    hs_gate_reveal();
    regs[REG_RIP] -= HS_CALL_BYTES;
}

HS_HIDDEN struct hs_gate_text hs_gate_text;

/* Whether a function that the runtime has in the place of libc's made the call: its frame is one too many. */
static int is_called_by_runtime(const greg_t *regs)
{
    return is_within(&gate.own, *(const uintptr_t *)regs[REG_RSP]);
}

/* Has a handler, and whatever follows it, find a thread that makes a system call for the tool where the tool made that. Returns 0 if the
 * thread is elsewhere in the runtime. */
int hs_gate_show_site(void *context)
{
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uintptr_t branched = hs_children_returned((uintptr_t)regs[REG_RIP], regs[REG_RAX]);
    if (branched)
        regs[REG_RCX] = regs[REG_RIP] = (greg_t)branched;
    return (branched || hs_slots_leave(regs)) && !is_called_by_runtime(regs);
}

/* Gets and sets the tool's own action for SIGSYS. */
void hs_gate_action(const struct hs_action *action, struct hs_action *old)
{
    const struct hs_action before = gate.theirs;
    if (action && gate.is_revealed)
        HS_SYS(SYS_rt_sigaction, SIGSYS, action, 0, HS_SET_BYTES);
    if (action)
        gate.theirs = hs_action_kept(action);
    if (old)
        *old = before;
}

static int find_text(struct dl_phdr_info *info, size_t size, void *data)
{
    const uintptr_t wanted = *(const uintptr_t *)data;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const struct range text = {info->dlpi_addr + part->p_vaddr, info->dlpi_addr + part->p_vaddr + part->p_memsz};
        if (part->p_type == PT_LOAD && part->p_flags & PF_X && is_within(&text, wanted)) {
            *(struct range *)data = text;
            return 1;
        }
    }
    return 0;
}

/* The text that holds an address. */
static struct range text_of(uintptr_t address)
{
    union {
        uintptr_t address;
        struct range text;
    } found = {.address = address};
    return dl_iterate_phdr(find_text, &found) ? found.text : (struct range){0, 0};
}

/* Finds the calls that can be replaced; called in the zygote. */
void hs_gate_prepare(void)
{
    extern int *__errno_location(void);
    gate.patched[0] = text_of((uintptr_t)__errno_location);
    gate.patched[1] = text_of((uintptr_t)_r_debug.r_brk);
    hs_sites_open(gate.patched[0].low, gate.patched[0].high);
    void *shared = hs_own_map(sizeof *gate.reported, MAP_SHARED | MAP_ANONYMOUS, -1);
    gate.reported = shared != MAP_FAILED ? shared : NULL;
    patch_all_common();
}

/* Opens the gate in a new worker: -1 if the kernel has no such thing. No call is dispatched yet. */
int hs_gate_open(void)
{
    const struct hs_action action = {(void *)on_call, SA_SIGINFO | SA_NODEFER | SA_RESTART | HS_RESTORER, (void *)hs_gate_restorer, 0};
    void *alive = hs_own_map(PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (alive == MAP_FAILED || HS_SYS(SYS_madvise, alive, PAGE, MADV_WIPEONFORK) != 0)
        return -1;
    gate.alive = alive;
    *gate.alive = 1;
    gate.own = text_of((uintptr_t)on_call);
    if (!gate.own.high || HS_SYS(SYS_rt_sigaction, SIGSYS, &action, &gate.theirs, HS_SET_BYTES) != 0)
        return -1;
    hs_gate_text = (struct hs_gate_text){gate.own.low, gate.own.high - gate.own.low};
    hs_signals_lead();
    if (!dispatch(1))
        return -1;
    hs_marks_leave_to_gate();
    return 0;
}

/* The same in a worker's clone, which the kernel has let out. */
int hs_gate_open_again(void)
{
    *gate.alive = 1;
    return dispatch(1) ? 0 : -1;
}

/* From here on calls are dispatched. */
void hs_gate_close(void)
{
    hs_slots_begin();
#ifndef HS_WITHOUT_GATE
    gate.selector = SELECTOR_BLOCK;
#endif
}

/* main has ended, or goes on unwatched. */
void hs_gate_lift(void)
{
    gate.selector = SELECTOR_ALLOW;
}

/* In a new thread: its calls are dispatched, too. libc has set the mask that the tool believes to have. */
void hs_gate_join(void)
{
    const uint64_t own = 1ull << (SIGSYS - 1);
    uint64_t mask = 0;
#ifdef HS_WITHOUT_THREADS
    return;
#endif
    HS_SYS(SYS_rt_sigprocmask, SIG_UNBLOCK, &own, &mask, HS_SET_BYTES);
    hs_signals_set_blocks((mask & own) != 0);
    if (!dispatch(1))
        hs_call_mark();
}

#else

int hs_gate_is_worker(void)
{
    return 0;
}

uint32_t hs_call_seen(void)
{
    return 0;
}

#endif
