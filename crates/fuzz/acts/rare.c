/* Calls that compilers do not make. What is refused here is refused alike however the program was started. */
#include "act.h"
#include <sched.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>

#undef FAMILY
#define FAMILY "rare"

/* A descriptor, which is closed at once, or why there is none. */
static void say_descriptor(const char *what, long fd)
{
    say_result(what, fd < 0 ? fd : 0);
    if (fd >= 0)
        close((int)fd);
}

static int read_number = 5;
static char own_block[8192] __attribute__((aligned(4096)));

MIXED(rare_futex_many)
{
    struct {
        uint64_t value, address;
        uint32_t flags, reserved;
    } waiter = {6, (uintptr_t)&read_number, 2 /* 32 bits */, 0};
    const struct timespec at_once = {0, 0};
    say_result("unequal", RAW(449, &waiter, 1, 0, &at_once, CLOCK_MONOTONIC));
    waiter.value = 5;
    say_result("equal", RAW(449, &waiter, 1, 0, &at_once, CLOCK_MONOTONIC));
}

MIXED(rare_futex_new)
{
    say_result("wake", RAW(454, &read_number, ~0ul, 1, 2));
    say_result("wait", RAW(455, &read_number, 6, ~0ul, 2, 0, 0));
}

MIXED(rare_read_own)
{
    int value = 0;
    struct iovec to = {&value, sizeof value}, from = {&read_number, sizeof read_number};
    say_result("read", RAW(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0));
    say("value %d", value);
}

/* What there is at an address where nothing is mapped by the program. */
OBSERVE(rare_read_far)
{
    long value = 0;
    struct iovec to = {&value, sizeof value}, from = {(char *)sbrk(0) + (64 << 20), sizeof value};
    say_result("far", RAW(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0));
}

MIXED(rare_own_descriptor)
{
    say_descriptor("process", RAW(SYS_pidfd_open, getpid(), 0));
    say_descriptor("thread", RAW(SYS_pidfd_open, gettid(), 0200));
    say_descriptor("none", RAW(SYS_pidfd_open, 0, 0));
}

MIXED(rare_signal_by_descriptor)
{
    int fd = (int)RAW(SYS_pidfd_open, getpid(), 0);
    signal(SIGURG, SIG_IGN);
    say_result("sent", RAW(SYS_pidfd_send_signal, fd, SIGURG, 0, 0));
    close(fd);
}

MIXED(rare_secret_memory)
{
    say_descriptor("secret", RAW(447, 0));
}

MIXED(rare_shadow_stack)
{
    say_result("shadow", RAW(453, 0, 4096, 0));
}

DISTURB(rare_memory_policy)
{
    say_result("policy", RAW(SYS_set_mempolicy, 3 /* interleave */, &(unsigned long){1}, 64));
}

OBSERVE(rare_memory_policy_show)
{
    int mode = -1;
    say_result("asked", RAW(SYS_get_mempolicy, &mode, 0, 0, 0, 0));
    say("mode %d", mode);
}

DISTURB(rare_memory_bound)
{
    say_result("bound", RAW(SYS_mbind, own_block, 4096, 1, &(unsigned long){1}, 64, 0));
    say_result("home", RAW(450, own_block, 4096, 0, 0));
}

MIXED(rare_pages_moved)
{
    void *page = own_block;
    int status = 99;
    say_result("moved", RAW(SYS_move_pages, 0, 1, &page, 0, &status, 0));
    say_result("migrated", RAW(SYS_migrate_pages, 0, 0, 0, 0));
}

OBSERVE(rare_compared)
{
    const int own = getpid();
    say_result("files", RAW(SYS_kcmp, own, own, 2, 0, 0));
    say_result("output", RAW(SYS_kcmp, own, own, 0, 1, 1));
    say_result("memory", RAW(SYS_kcmp, own, own, 1, 0, 0));
}

/* With the parent nothing but the input is shared. */
OBSERVE(rare_compared_with_parent)
{
    const int own = getpid(), parent = getppid();
    say("memory %d", RAW(SYS_kcmp, own, parent, 1, 0, 0) != 0);
    say("files %d", RAW(SYS_kcmp, own, parent, 2, 0, 0) != 0);
    say("directory %d", RAW(SYS_kcmp, own, parent, 3, 0, 0) != 0);
    say("actions %d", RAW(SYS_kcmp, own, parent, 4, 0, 0) != 0);
}

DISTURB(rare_faults_in_user_space)
{
    say_descriptor("userfaultfd", RAW(SYS_userfaultfd, O_CLOEXEC | 1));
}

MIXED(rare_handle)
{
    char room[8 + 128] = {0};
    int mount = 0;
    *(unsigned *)room = 128;
    say_result("handle", RAW(SYS_name_to_handle_at, AT_FDCWD, ".", room, &mount, 0));
    say_descriptor("opened", RAW(SYS_open_by_handle_at, -1, room, O_RDONLY));
}

DISTURB(rare_watch)
{
    say_descriptor("fanotify", RAW(SYS_fanotify_init, 0, O_RDONLY));
}

MIXED(rare_rules)
{
    const uint64_t handled[2] = {1 << 2, 0};
    say_descriptor("ruleset", RAW(444, handled, 8, 0));
    say_result("version", RAW(444, 0, 0, 1) > 0 ? 1 : -1);
}

/* No file can be opened for reading after that. */
DISTURB(rare_rules_kept)
{
    const uint64_t handled[2] = {1 << 2, 0};
    int fd = (int)RAW(444, handled, 8, 0);
    RAW(SYS_prctl, 38 /* PR_SET_NO_NEW_PRIVS */, 1);
    say_result("restricted", RAW(446, fd, 0));
    if (fd >= 0)
        close(fd);
}

OBSERVE(rare_rules_show)
{
    say_descriptor("passwd", open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

DISTURB(rare_sealed)
{
    say_result("seal", RAW(462, own_block + 4096, 4096, 0));
}

OBSERVE(rare_sealed_show)
{
    say_result("protect", RAW(SYS_mprotect, own_block + 4096, 4096, PROT_READ));
    say_result("again", RAW(SYS_mprotect, own_block + 4096, 4096, PROT_READ | PROT_WRITE));
}

MIXED(rare_cache)
{
    uint64_t range[2] = {0, 4096}, state[5] = {0};
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    say_result("cachestat", RAW(451, fd, range, state, 0));
    close(fd);
}

MIXED(rare_mounts)
{
    uint64_t request[4] = {32, ~0ull, 0, 0}, list[64];
    say("some %d", RAW(458, request, list, 64, 0) != 0);
    say_descriptor("tree", RAW(428, AT_FDCWD, "/", O_CLOEXEC));
    say_descriptor("system", RAW(430, "tmpfs", 1));
    say_descriptor("picked", RAW(433, AT_FDCWD, "/", 1));
}

MIXED(rare_security)
{
    char room[512];
    uint32_t size = sizeof room;
    long got = RAW(459, 100, room, &size, 0);
    say("attribute %ld", got < 0 ? got : 0);
    size = sizeof room;
    got = RAW(461, room, &size, 0);
    say("modules %ld", got < 0 ? got : 0);
}

DISTURB(rare_protection_key)
{
    long key = RAW(SYS_pkey_alloc, 0, 0);
    say_result("key", key);
    say_result("protect", RAW(SYS_pkey_mprotect, own_block, 4096, PROT_READ | PROT_WRITE, key));
}

OBSERVE(rare_protection_key_show)
{
    long key = RAW(SYS_pkey_alloc, 0, 0);
    say_result("key", key);
    say_result("free", key < 0 ? 0 : RAW(SYS_pkey_free, key));
}

DISTURB(rare_schedule)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {.size = 48, .nice = 7};
    say_result("set", RAW(SYS_sched_setattr, 0, &attributes, 0));
}

OBSERVE(rare_schedule_show)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t more[4];
    } attributes = {0};
    struct timespec slice = {-1, 0};
    say_result("get", RAW(SYS_sched_getattr, 0, &attributes, 48, 0));
    say("policy %u flags %d nice %d", attributes.policy, (int)attributes.flags, attributes.nice);
    say_result("interval", RAW(SYS_sched_rr_get_interval, 0, &slice));
}

MIXED(rare_program)
{
    uint32_t attributes[32] = {2 /* an array */, 4, 4, 1};
    say_descriptor("map", RAW(SYS_bpf, 0, attributes, sizeof attributes));
}

MIXED(rare_events)
{
    uint32_t attributes[32] = {1 /* software */, 128};
    say_descriptor("event", RAW(SYS_perf_event_open, attributes, 0, -1, -1, 0));
}

MIXED(rare_clock_adjusted)
{
    char room[512] = {0};
    say("adjust %d", RAW(SYS_adjtimex, room) >= 0);
    say("clock %d", RAW(SYS_clock_adjtime, CLOCK_REALTIME, room) >= 0);
}

MIXED(rare_attributes)
{
    say_result("mode", RAW(452, AT_FDCWD, "/absent", 0600, 0));
    say_result("set", RAW(463, AT_FDCWD, "/absent", 0, "user.x", 0, 16));
    say_result("list", RAW(465, AT_FDCWD, "/absent", 0, 0, 0));
}

MIXED(rare_memory_advice)
{
    struct iovec part = {own_block, 4096};
    int fd = (int)RAW(SYS_pidfd_open, getpid(), 0);
    say_result("advise", RAW(440, fd, &part, 1, MADV_WILLNEED, 0));
    say_result("release", RAW(448, fd, 0));
    close(fd);
}

MIXED(rare_pages_remapped)
{
    char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(at + 4096, "second");
    say_result("remap", RAW(SYS_remap_file_pages, at, 4096, 0, 1, 0));
    say("first %d", at[0]);
    munmap(at, 8192);
}

MIXED(rare_numbers)
{
    static const long numbers[] = {-1, 400, 423, 499, 511, 512, 547, 600, 100000, 0x40000000 + 39, 0x7fffffff};
    for (size_t i = 0; i < CHECK_SIZE(numbers); i++)
        say("%ld: %d", numbers[i], (int)RAW(numbers[i]) == -ENOSYS);
}

MIXED(rare_obsolete)
{
    static const long numbers[] = {134, 156, 174, 177, 178, 180, 181, 182, 183, 184, 185, 205, 211, 212, 214, 215, 236};
    int absent = 0;
    for (size_t i = 0; i < CHECK_SIZE(numbers); i++)
        absent += RAW(numbers[i]) == -ENOSYS;
    say("absent %d", absent);
}

#if defined(__x86_64__)
/* The other way into the kernel, with the numbers of 32-bit programs. */
static long by_interrupt(long number, long first)
{
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "0"(number), "b"(first) : "memory", "r8", "r9", "r10", "r11");
    return (int)result;
}

DISTURB(rare_interrupt_nice)
{
    say_result("nice", by_interrupt(34, 4));
}

DISTURB(rare_interrupt_mask)
{
    say_result("mask", by_interrupt(60, 0123));
}

MIXED(rare_interrupt_shows)
{
    say("number %d user %d", by_interrupt(20, 0) == getpid(), by_interrupt(24, 0) == (long)getuid());
    say_result("unknown", by_interrupt(1000, 0));
}

END(rare_interrupt_ends)
{
    by_interrupt(252, 33);
}

/* Where old programs asked for the time. */
static void ask_old_page(void)
{
    ((time_t(*)(time_t *))0xffffffffff600400)(NULL);
}

MIXED(rare_old_page)
{
    say("fault %d", probe_call(ask_old_page));
}
#endif
