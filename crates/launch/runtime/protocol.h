/* The wire format between the runner and a zygote, and its one source.
 *
 * crates/launch/src/warm/wire.rs repeats these numbers; a test there compiles this header and compares every size
 * and offset. Messages travel over a SOCK_SEQPACKET pair, one message each way per start, each beginning with
 * version and length. Both ends are the same build on the same machine: byte order is the machine's.
 */
#ifndef HOTSTART_PROTOCOL_H
#define HOTSTART_PROTOCOL_H

#include <stdint.h>

#define HS_VERSION 1u

/* Descriptors of a zygote, high enough to be out of the way of constructors, low enough that the kernel's first
 * table of 64 is not outgrown. */
#define HS_SLOTS_FD 61
#define HS_CONTROL_FD 62
#define HS_RUNTIME_FD 63

/* A request that is longer is started cold, which also gives E2BIG where it is due. */
#define HS_MESSAGE_MAX (120u * 1024u)
#define HS_FDS_MAX 32
#define HS_LIMITS_MAX 8
/* Descriptors of a request must have smaller numbers than this; those of a request to a worker, than the other. */
#define HS_TARGET_MAX 1024
#define HS_WORKER_TARGET_MAX 60

/* A zygote of the largest requests is started with this many arguments: they make room on its stack for the pointers of later requests. */
#define HS_ROOM 2500
/* Words of a tool in which its constructors may keep the number of arguments. */
#define HS_COUNTS_MAX 8
/* Words of a request that tell what a cold process has on its stack around main's frame: how many words of bits follow, and above the lower
 * half how many words behind them; the bits, one for each word below the frame; what is above it, word by word, with HS_ABOVE_* in the
 * highest 16 bits; and numbers below the frame, with their places. */
#define HS_RESIDUE_MAX 1153
#define HS_RESIDUE_BITS 64 /* of these */
#define HS_RESIDUE_ABOVE 64
#define HS_ABOVE_NUMBER 1
#define HS_ABOVE_PLACE 2 /* so many bytes above the frame's beginning */
#define HS_ABOVE_SOMETHING 3

/* Findings at the snapshot by which a fork would differ from a fresh process. */
enum hs_doubt {
    HS_DOUBT_THREADS = 1u << 0,     /* a constructor started a thread */
    HS_DOUBT_DESCRIPTORS = 1u << 1, /* a constructor opened a descriptor */
    HS_DOUBT_SHARED = 1u << 2,      /* a writable shared mapping */
    HS_DOUBT_TIMERS = 1u << 3,      /* a timer is armed */
    HS_DOUBT_ENVIRON = 1u << 4,     /* a constructor changed the environment */
    HS_DOUBT_STDIO = 1u << 5,       /* a standard stream has a buffer, or something was written */
    HS_DOUBT_CHILDREN = 1u << 6,    /* a constructor left a child process */
    HS_DOUBT_ARGUMENTS = 1u << 7,   /* a constructor kept an argument */
    HS_DOUBT_CAPTURED = 1u << 8,    /* a constructor kept a pointer into the environment */
    HS_DOUBT_DIRECTORY = 1u << 9,   /* a constructor asked for the working directory */
    HS_DOUBT_IDENTITY = 1u << 10,   /* a constructor asked for the process's number */
    HS_DOUBT_CLOCK = 1u << 11,      /* a constructor asked for time or random bytes */
    HS_DOUBT_KERNEL = 1u << 12,     /* the kernel refuses what an exact fork needs */
    HS_DOUBT_ASKED_FULL = 1u << 13, /* more names were asked for than could be recorded */
    HS_DOUBT_SIGNALS = 1u << 14,    /* signals are blocked or pending, or an alternate stack is set */
    HS_DOUBT_FUNCTIONS = 1u << 15,  /* functions of libc's are others' */
};

/* Zygote to runner, once: stopped in place of main. Followed by `object_count` then `name_count` strings, each
 * ended by a NUL: the names under which libraries were found, and the variables that constructors asked for. */
struct hs_ready {
    uint32_t version;
    uint32_t length; /* of the whole message */
    int32_t pid;
    uint32_t doubts;
    uint32_t object_count;
    uint32_t name_count;
    uint64_t place; /* where in a Python script it has stopped; 0 before main */
};

struct hs_limit {
    uint32_t resource; /* RLIMIT_* */
    uint32_t reserved;
    uint64_t soft;
    uint64_t hard;
};

#define HS_GROUP_OWN 0      /* becomes the leader of a new group */
#define HS_UMASK_KEEP 0xffffffffu

/* Runner to zygote. Descriptors come as SCM_RIGHTS. Followed by `limit_count` hs_limit, `count_count` uint64
 * addresses of words in which the tool keeps the number of arguments, `residue_count` uint64 that tell of the stack around main's frame
 * (both to a zygote only, whose workers know them from it), `fd_count` int32 numbers that the descriptors shall have, then
 * strings, each ended by a NUL: cwd, arguments, environment. The lowest bit of the first part is that of the word right below the frame.
 * A word below the frame without a bit is zero in a cold process, and so are all behind the last. */
struct hs_request {
    uint32_t version;
    uint32_t length; /* of the whole message */
    uint32_t argc;
    uint32_t envc;
    uint32_t fd_count;
    uint32_t limit_count;
    int32_t pgid; /* to join, or HS_GROUP_OWN */
    uint32_t umask;
    int32_t runner; /* the process whose child the fork is */
    uint32_t flags; /* HS_REQUEST_* */
    uint32_t slot; /* where the fork's number is entered; below HS_SLOTS */
    uint32_t count_count;
    uint32_t residue_count; /* 0 if it is not known: the stack stays as it is */
    uint32_t reserved;
};

/* The fork is to be a worker: it runs main, resets itself, and takes the next request. Its socket and its page are two more descriptors,
 * the last ones. */
#define HS_REQUEST_WORKER 1u
/* To a worker: compare everything with the snapshot before it reports the end. Every other such run is entered at main,
 * and compared with the snapshot later in main as well. */
#define HS_REQUEST_AUDIT 2u
/* To a zygote: put the tool's text on large pages first, which takes a while and pays after some tens of forks. */
#define HS_REQUEST_ENLARGE 4u
/* The receiver is bound to one processor, and frees itself first. */
#define HS_REQUEST_BOUND 8u
/* With HS_REQUEST_BOUND: it gets free by allowing itself all processors, of which the system lets it have its cpuset's. */
#define HS_REQUEST_ANYWHERE 16u
/* With HS_REQUEST_WORKER: the worker runs main once, behind the gate, and then ends as any process. Only such a request may set
 * limits. */
#define HS_REQUEST_ONCE 32u
/* To a worker that waits: it makes a clone, which waits for requests of its own. The request is its head alone, with the clone's socket and
 * page as its descriptors. Both processes answer with a struct hs_reply: the clone when it can take requests, at its own socket. */
#define HS_REQUEST_CLONE 64u
/* To a worker: it runs main with a process number of its own (number.c), and answers first with a struct hs_reply that has that number. The
 * request's `pgid` is the group it belongs to. */
#define HS_REQUEST_RENUMBER 128u
/* To a worker: each number of arguments is learned from its first run on, though that may not pay (deferred/pays.c). */
#define HS_REQUEST_LEARN 256u

enum hs_stage { HS_STAGE_REQUEST = 1, HS_STAGE_DIRECTORY, HS_STAGE_LIMITS, HS_STAGE_TITLE, HS_STAGE_CLONE,
                HS_STAGE_RESET };

/* Zygote to runner: the number of the fork, or what failed (then there is none). The same of a worker's clone. */
struct hs_reply {
    uint32_t version;
    uint32_t length;
    int32_t pid;
    int32_t error; /* errno */
    uint32_t stage; /* enum hs_stage */
    uint32_t reserved;
};

/* The results of a request to a worker. */
enum hs_ending {
    HS_ENDING_RESET = 1, /* main has ended, and the worker can take the next request */
    HS_ENDING_RETIRED,     /* main has ended, and the process ends with that status now */
    HS_ENDING_REFUSED,     /* main was not run */
};

/* Why a worker cannot be used again. */
enum hs_retirement {
    HS_RETIRED_THREADS = 1u << 0,  /* threads are left */
    HS_RETIRED_CHILDREN = 1u << 1, /* child processes are left */
    HS_RETIRED_TIMERS = 1u << 2,   /* a timer is armed */
    HS_RETIRED_SIGNALS = 1u << 3,  /* signals keep coming */
    HS_RETIRED_LIMITS = 1u << 4,   /* a limit, or what others may change, is not as it was */
    HS_RETIRED_MAPPINGS = 1u << 5, /* a mapping of before main was changed, or one is left that nobody noticed */
    HS_RETIRED_NUMBER = 1u << 6,   /* the run has seen an older run's number, or the process cannot give up its own or leave its group */
    HS_RETIRED_CALLS = 1u << 7,    /* a system call that is not known to be harmless: the run is not to be believed */
};

/* The differences that an audit found. */
enum hs_difference {
    HS_DIFFERS_MEMORY = 1u << 0,
    HS_DIFFERS_MAPPINGS = 1u << 1,
    HS_DIFFERS_DESCRIPTORS = 1u << 2,
    HS_DIFFERS_SIGNALS = 1u << 3,
    HS_DIFFERS_LIMITS = 1u << 4,
    HS_DIFFERS_NAME = 1u << 5,
    HS_DIFFERS_POINT = 1u << 6, /* what main does before it looks at its request: */
    HS_DIFFERS_POINT_FAULT = 1u << 7,     /* a fault of its own */
    HS_DIFFERS_POINT_STATE = 1u << 8,     /* it cannot be saved: mappings, descriptors, signals, a stack elsewhere */
    HS_DIFFERS_POINT_POINTERS = 1u << 9,  /* pointers to strings cannot be told from numbers */
    HS_DIFFERS_POINT_KERNEL = 1u << 10,   /* what libc was given, errno, signal actions, the name */
    HS_DIFFERS_POINT_STACK = 1u << 11,    /* how far the stack has grown */
    HS_DIFFERS_POINT_MEMORY = 1u << 12,
    HS_DIFFERS_POINT_REGISTERS = 1u << 13,
};

/* What a worker has found about its deferred snapshots. */
enum hs_finding {
    HS_FOUND_UNLIKE = 1,     /* of a clone: the process number shows in the state that is deferred to, so no clones of its kind */
    HS_FOUND_OUTDATED = 2,   /* of a clone: requests have another environment now; it learns anew, and so would each further clone */
    HS_FOUND_IN_THE_WAY = 4, /* by chance a word seems to lead to the strings of dry runs: another memory layout may have none */
};

/* Worker to runner, once for each request. */
struct hs_end {
    uint32_t version;
    uint32_t length;
    int32_t status;  /* exit code, 0 to 255 */
    uint32_t ending; /* enum hs_ending */
    uint32_t retired; /* enum hs_retirement, why it cannot go on */
    uint32_t differs; /* enum hs_difference, if it was audited */
    uint32_t point;   /* 1 if main was entered where it first looks at its request */
    uint32_t children; /* that have become the client of a server; if the worker goes on, it had no others */
    uint64_t user_us, system_us; /* what main used */
    uint64_t minor_faults, major_faults;
    uint64_t voluntary, involuntary; /* context switches */
    uint64_t max_rss_kib; /* of all runs so far */
    uint64_t learned;     /* bit n: it has a deferred snapshot for n arguments; numbers above 63 are not told */
    uint64_t found;       /* of enum hs_finding, as bits */
    uint64_t shown;       /* 1 if main has looked at the process's number: the process has another one now */
};

/* Stands for "/" in the path of this library where an allocator of the user's choice is loaded behind it. */
#define HS_CHOSEN_NEXT "/./"

/* What the runtime tells an observer, if it has one (crates/launch/src/warm/observe), by the arguments of a `close` that
 * fails: main would begin now, with a struct hs_observed; a library that is
 * known to forget them asks for time or random bytes; it has them. */
#define HS_MARK_MAIN (-0x6873L)
#define HS_MARK_KNOWN (HS_MARK_MAIN - 1)
#define HS_MARK_KNOWN_END (HS_MARK_MAIN - 2)
/* About a Python script: enum hs_python_mark follows, and a text with its length. */
#define HS_MARK_PYTHON (HS_MARK_MAIN - 3)
enum hs_python_mark {
    HS_PYTHON_WATCHES = 1, /* the interpreter is ready, and the script's own code begins */
    HS_PYTHON_RENEWS,      /* it asks for its time or its number, which each fork asks for again */
    HS_PYTHON_CHECKS,      /* it has halted at the line of the text; calls of the runtime follow */
    HS_PYTHON_REFUSES,     /* it cannot become a zygote, for the reason of the text */
};
/* Bytes of the longest text. */
#define HS_PYTHON_TEXT 512

/* Runner to zygote, before its exec, if it is a Python script, which is stopped where it first touches its request. */
struct hs_mode {
    uint32_t version;
    uint32_t python;   /* 1 */
    uint32_t observed; /* 1 if an observer gives it its random bytes */
};

struct hs_observed {
    uint64_t names; /* the variables that constructors asked for, each ended by a NUL */
    uint64_t names_length;
    uint64_t environ; /* where the program has its `environ` */
    uint64_t place;   /* as in struct hs_ready */
    uint64_t main;    /* the program's */
};

/* One of HS_SLOTS of the runner, shared with its guard and its zygotes, not with forks. The kernel writes `pid` before
 * the fork runs its first instruction: neither a guard whose runner was killed nor a runner whose zygote died before
 * it replied can miss it. */
struct hs_slot {
    volatile int32_t group; /* known to the runner */
    volatile int32_t pid;
};
#define HS_SLOTS 4096u

/* What makes that a run need not be as in a fresh process. */
enum hs_run_doubt {
    HS_RUN_CALLS = 1,    /* a system call that is not known to be harmless and answered as in a fresh process */
    HS_RUN_CHILDREN = 2, /* children, which may look at this process */
    HS_RUN_NUMBER = 8,   /* the process's number, which is older than that of a process that begins with the run */
    HS_RUN_PAST = 4,     /* another program was executed, in a process that has the age and CPU time of earlier runs */
    HS_RUN_CALL_SHIFT = 8, /* above these bits: the number of the first system call of which HS_RUN_CALLS is told, plus one */
};

/* Shared by a worker and the runner. */
struct hs_page {
    volatile int32_t begun;        /* 1 once main has begun */
    volatile int32_t doubts;       /* enum hs_run_doubt, of this run */
    volatile int32_t clone;        /* the number of the last clone, or this one's new number: the kernel writes it before that runs */
    int32_t unused;
};

#endif
