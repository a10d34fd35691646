/* What the kernel keeps of a process besides: identity, groups, priority, options of prctl, registrations. */
#include "act.h"
#include <grp.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/ipc.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>

#undef FAMILY
#define FAMILY "process"

OBSERVE(id_show)
{
    char path[64] = "";
    ssize_t got = readlink("/proc/self", path, sizeof path - 1);
    SAY2("thread %ld proc %ld", getpid() == (pid_t)RAW(SYS_gettid), got > 0 && atoi(path) == getpid());
    SAY2("group leader %ld leader of session %ld", getpgrp() == getpid(), getsid(0) == getpid());
    SAY4("user %ld %ld group %ld %ld", (int)getuid(), (int)geteuid(), (int)getgid(), (int)getegid());
}

OBSERVE(id_session_of_parent)
{
    say("session of parent %d", getsid(0) == getsid(getppid()));
}

/* Processes with the same addresses, which only copies of one process have. */
OBSERVE(id_alike)
{
    const int own = getpid();
    size_t size;
    void *list = NULL;
    long alike = 0;
    RAW(SYS_get_robust_list, 0, &list, &size);
    for (int other = own - 60; other < own; other++) {
        void *found = NULL;
        alike += other > 0 && RAW(SYS_get_robust_list, other, &found, &size) == 0 && found == list;
    }
    say("alike %ld", alike);
}

OBSERVE(id_credentials)
{
    say_status((const char *const[]){"Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp:", NULL});
}

DISTURB(id_session)
{
    say_result("setsid", setsid() == -1 ? -1 : 0);
}

DISTURB(id_session_by_call)
{
    long got = RAW(SYS_setsid);
    say_result("setsid", got > 0 ? 0 : got);
}

DISTURB(id_group_of_parent)
{
    say_result("setpgid", setpgid(0, getpgid(getppid())));
}

DISTURB(id_groups)
{
    const gid_t groups[] = {5, 6, 7};
    say_result("setgroups", setgroups(3, groups));
}

DISTURB(id_user)
{
    say_result("seteuid", seteuid(12345));
}

DISTURB(id_user_by_call)
{
    say_result("setresgid", RAW(SYS_setresgid, -1, 77, -1));
}

DISTURB(id_file_user)
{
    say_result("was", setfsgid(65534));
}

DISTURB(id_capabilities_by_call)
{
    struct {
        uint32_t version;
        int pid;
    } head = {0x20080522, 0};
    uint32_t data[6] = {0};
    long got = RAW(SYS_capget, &head, data);
    data[0] &= ~(1u << 13), data[1] &= ~(1u << 13); /* CAP_NET_RAW */
    say("get %ld set %ld", got, RAW(SYS_capset, &head, data));
}

DISTURB(priority_nice)
{
    say_result("nice", nice(3));
}

DISTURB(priority_by_call)
{
    say_result("setpriority", RAW(SYS_setpriority, PRIO_PROCESS, 0, 5));
}

DISTURB(priority_io)
{
    say_result("ioprio", syscall(SYS_ioprio_set, 1, 0, 3 << 13));
}

DISTURB(priority_io_by_call)
{
    say_result("ioprio", RAW(SYS_ioprio_set, 1, 0, 2 << 13 | 4));
}

DISTURB(priority_policy)
{
    struct sched_param param = {0};
    say_result("batch", sched_setscheduler(0, SCHED_BATCH, &param));
}

DISTURB(priority_policy_by_call)
{
    struct sched_param param = {0};
    say_result("idle", RAW(SYS_sched_setscheduler, 0, SCHED_IDLE, &param));
}

DISTURB(priority_affinity)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0, kept = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set) && kept++)
            CPU_CLR(cpu, &set);
    say_result("bound", sched_setaffinity(0, sizeof set, &set));
}

DISTURB(priority_affinity_by_call)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0, kept = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set) && kept++)
            CPU_CLR(cpu, &set);
    say_result("bound", RAW(SYS_sched_setaffinity, 0, sizeof set, &set));
}

OBSERVE(priority_show)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    SAY4("nice %ld io %ld policy %ld processors %ld", getpriority(PRIO_PROCESS, 0), RAW(SYS_ioprio_get, 1, 0),
         sched_getscheduler(0), CPU_COUNT(&set));
}

DISTURB(persona_set)
{
    say("was %x", (unsigned)personality(ADDR_NO_RANDOMIZE));
}

DISTURB(persona_by_call)
{
    say("was %lx", RAW(SYS_personality, ADDR_COMPAT_LAYOUT));
}

OBSERVE(persona_show)
{
    say("%x", (unsigned)personality(0xffffffff));
}

DISTURB(option_name)
{
    say_result("name", prctl(PR_SET_NAME, "another"));
}

DISTURB(option_name_by_call)
{
    say_result("name", RAW(SYS_prctl, PR_SET_NAME, "by-a-call"));
}

DISTURB(option_dumpable)
{
    say_result("dumpable", prctl(PR_SET_DUMPABLE, 0));
}

DISTURB(option_dumpable_by_call)
{
    say_result("dumpable", RAW(SYS_prctl, PR_SET_DUMPABLE, 0));
}

DISTURB(option_slack_by_call)
{
    say_result("slack", RAW(SYS_prctl, PR_SET_TIMERSLACK, 123456));
}

DISTURB(option_slack)
{
    say_result("slack", prctl(PR_SET_TIMERSLACK, 99999));
}

DISTURB(option_death_by_call)
{
    say_result("death", RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGWINCH));
}

DISTURB(option_keepcaps_by_call)
{
    say_result("keep", RAW(SYS_prctl, PR_SET_KEEPCAPS, 1));
}

DISTURB(option_privileges)
{
    say_result("none", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

DISTURB(option_privileges_by_call)
{
    say_result("none", RAW(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1));
}

DISTURB(option_subreaper_by_call)
{
    say_result("subreaper", RAW(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1));
}

DISTURB(option_pages_by_call)
{
    say_result("huge", RAW(SYS_prctl, PR_SET_THP_DISABLE, 1));
}

DISTURB(option_merge_by_call)
{
    say_result("merge", RAW(SYS_prctl, 67, 1)); /* PR_SET_MEMORY_MERGE */
}

DISTURB(option_kill_by_call)
{
    say_result("poison", RAW(SYS_prctl, PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY));
}

DISTURB(option_flusher_by_call)
{
    say_result("flusher", RAW(SYS_prctl, PR_SET_IO_FLUSHER, 1));
}

DISTURB(option_speculation_by_call)
{
    long got = RAW(SYS_prctl, PR_SET_SPECULATION_CTRL, 0, PR_SPEC_DISABLE);
    say("speculation %d", got == 0 || got < 0);
}

DISTURB(option_securebits_by_call)
{
    say_result("secure", RAW(SYS_prctl, PR_SET_SECUREBITS, 1 << 4));
}

DISTURB(option_execute_by_call)
{
    say_result("no writable code", RAW(SYS_prctl, 65, 1)); /* PR_SET_MDWE */
}

DISTURB(option_clock_by_call)
{
    say_result("clock faults", RAW(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV));
}

#define GETTER(name, option) {#name, option}

/* How the pdeathsig is asked for differs from the others, as is the slack's. */
OBSERVE(options_show)
{
    static const struct {
        const char *name;
        int option;
    } asked[] = {GETTER(dumpable, PR_GET_DUMPABLE),   GETTER(keepcaps, PR_GET_KEEPCAPS),
                 GETTER(slack, PR_GET_TIMERSLACK),    GETTER(privileges, PR_GET_NO_NEW_PRIVS),
                 GETTER(huge, PR_GET_THP_DISABLE),    GETTER(kill, PR_MCE_KILL_GET),
                 GETTER(flusher, PR_GET_IO_FLUSHER),  GETTER(secure, PR_GET_SECUREBITS),
                 GETTER(speculation, PR_GET_SPECULATION_CTRL), GETTER(merge, 68), GETTER(execute, 66)};
    int value = 0;
    for (size_t i = 0; i < CHECK_SIZE(asked); i++)
        say("%s %ld", asked[i].name, RAW(SYS_prctl, asked[i].option));
    RAW(SYS_prctl, PR_GET_CHILD_SUBREAPER, &value);
    say("subreaper %d", value);
    RAW(SYS_prctl, PR_GET_TSC, &value);
    say("clock %d", value);
}

OBSERVE(option_name_show)
{
    char name[17] = "";
    prctl(PR_GET_NAME, name);
    say("%d", !strncmp(name, "acts", 4));
}

DISTURB(barrier_registered)
{
    say_result("register", RAW(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED));
}

OBSERVE(barrier_show)
{
    say_result("barrier", RAW(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

/* The kernel lays the number of arguments before them, and all of it above main's frame. */
OBSERVE(arguments_place)
{
    const char local = 0;
    say("number %d above %d", ((const long *)own_argv)[-1] == own_argc, (uintptr_t)own_argv > (uintptr_t)&local);
}

OBSERVE(robust_list_show)
{
    struct {
        void *next;
        long offset;
        void *pending;
    } *head = NULL;
    size_t length = 0;
    long got = RAW(SYS_get_robust_list, 0, &head, &length);
    say("robust %ld length %zu empty %d", got, length, head && head->next == head);
}

DISTURB(robust_list_none)
{
    static struct {
        void *next;
        long offset;
        void *pending;
    } own = {&own, 0, NULL};
    say_result("set", RAW(SYS_set_robust_list, &own, sizeof own));
}

DISTURB(tid_address_none)
{
    say("set %d", RAW(SYS_set_tid_address, 0) == getpid());
}

MIXED(semaphore_undone)
{
    struct sembuf up = {0, 1, SEM_UNDO};
    int id = semget(IPC_PRIVATE, 1, 0600), failed = semop(id, &up, 1);
    say("op %d value %d", failed, semctl(id, 0, GETVAL));
    semctl(id, 0, IPC_RMID);
}

static int install_filter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 33),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {CHECK_SIZE(code), code};
    RAW(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
    return (int)RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

DISTURB(filter_by_call)
{
    say_result("filter", install_filter());
    say_result("priority", RAW(SYS_getpriority, PRIO_PROCESS, 0));
}

DISTURB(filter_dispatch)
{
    static char selector;
    say_result("dispatch", RAW(SYS_prctl, 59, 1, 0, 0, &selector)); /* PR_SET_SYSCALL_USER_DISPATCH, allowing */
}

MIXED(keyring_process)
{
    long key = RAW(SYS_keyctl, 10, -2, "user", "hotstart-fuzz", 0); /* search the process's keyring */
    say("found %d", key > 0);
    say("added %d", RAW(SYS_add_key, "user", "hotstart-fuzz", "x", 1, -2) > 0);
}

DISTURB(namespace_names)
{
    say_result("unshare", unshare(CLONE_NEWUTS));
}

DISTURB(namespace_mounts_by_call)
{
    say_result("unshare", RAW(SYS_unshare, CLONE_NEWNS));
}

DISTURB(namespace_network_by_call)
{
    say_result("unshare", RAW(SYS_unshare, CLONE_NEWNET));
}

DISTURB(namespace_children_by_call)
{
    say_result("unshare", RAW(SYS_unshare, CLONE_NEWPID));
}

DISTURB(namespace_files_by_call)
{
    say_result("unshare", RAW(SYS_unshare, CLONE_FILES | CLONE_FS | CLONE_SYSVSEM));
}

/* Those of the parent, which is the fuzzer, are the ones that every cold process has. */
OBSERVE(namespaces_show)
{
    static const char *const names[] = {"uts", "mnt", "net", "ipc", "user", "cgroup", "pid", "pid_for_children", "time"};
    for (size_t i = 0; i < CHECK_SIZE(names); i++) {
        char own[64], other[64], a[64] = "", b[64] = "";
        snprintf(own, sizeof own, "/proc/self/ns/%s", names[i]);
        snprintf(other, sizeof other, "/proc/%d/ns/%s", (int)getppid(), names[i]);
        ssize_t first = readlink(own, a, sizeof a - 1), second = readlink(other, b, sizeof b - 1);
        say("%s %d", names[i], first > 0 && second > 0 && !strcmp(a, b));
    }
}

/* A child may change its parent. */
static void by_child(int (*change)(pid_t parent))
{
    pid_t child = fork();
    if (child == 0)
        _exit(change(getppid()) != 0);
    say_child(child);
}

static int lower_priority(pid_t parent)
{
    return setpriority(PRIO_PROCESS, (id_t)parent, 6);
}

DISTURB(priority_by_child)
{
    by_child(lower_priority);
}

static int bind_to_first(pid_t parent)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0, kept = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set) && kept++)
            CPU_CLR(cpu, &set);
    return sched_setaffinity(parent, sizeof set, &set);
}

DISTURB(affinity_by_child)
{
    by_child(bind_to_first);
}

static int change_settings(pid_t parent)
{
    char path[64];
    int failed = 0;
    snprintf(path, sizeof path, "/proc/%d/timerslack_ns", (int)parent);
    failed |= spill(path, "66000");
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)parent);
    failed |= spill(path, "44");
    snprintf(path, sizeof path, "/proc/%d/coredump_filter", (int)parent);
    return failed | spill(path, "0x11");
}

DISTURB(settings_by_child)
{
    by_child(change_settings);
}
