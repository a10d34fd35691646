/* Declarations that the runtime's files share.
 *
 * fork/ is the zygote and its forks, gate/ passes the system calls of a run, reset/ restores a worker, deferred/ takes snapshots later
 * than main, and extra/ has what a tool gets besides.
 *
 * A zygote's life: ld.so loads the runtime first (entry.c). Constructors run, and asked.c records what they ask for. snapshot.c inspects
 * the stopped process, bind.c binds lazily bound functions, server.c takes requests, and child.c turns a clone into the requested process.
 * Nothing here allocates, and nothing is written to the tool's heap.
 */
#ifndef HOTSTART_RUNTIME_H
#define HOTSTART_RUNTIME_H

#include <sys/types.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"
#include "protocol.h"

#define HS_HIDDEN __attribute__((visibility("hidden")))
#define HS_EXPORT __attribute__((visibility("default")))

/* A function that takes the place of one of libc's, and leaves no frame on the tool's stack when it goes on to that. Its C code is
 * HS_OWN result HS_OWN_NAME(name)(...). HS_INTERPOSE(name, CHOICE) defines the function itself: CHOICE jumps to own_name, or falls through
 * to direct_name. A fault in this section is a look at the request (deferred/watch.c). */
#if HS_RESETS
#define HS_OWN __attribute__((used)) static
#define HS_OWN_NAME(name) own_##name
#define HS_INTERPOSE(name, choice)                                                                                      \
    __attribute__((used)) static void *direct_##name;                                                                   \
    __asm__(".pushsection hs_looks, \"ax\", @progbits\n\t.globl " #name "\n\t.type " #name ", @function\n" #name ":\n\t"   \
            ".cfi_startproc\n\t" choice "\n\tjmp *direct_" #name "(%rip)\n\t.cfi_endproc\n\t.size " #name ", . - " #name  \
            "\n\t.popsection");
#else
#define HS_OWN HS_EXPORT
#define HS_OWN_NAME(name) name
#endif
/* For functions that are called in place of a system call, and so must leave vector registers alone. */
#define HS_GENERAL __attribute__((target("general-regs-only")))

typedef int hs_main(int, char **, char **);

/* The block that the kernel laid on the stack at exec. */
struct hs_start {
    int argc;
    char **argv;
    char **envp;
};

/* The arguments of the real main. */
struct hs_call {
    int argc;
    char **argv;
    char **envp;
};

/* A received request, decoded in place. */
struct hs_job {
    const struct hs_request *head;
    const struct hs_limit *limits;
    const uint64_t *counts;
    const uint64_t *residue;
    const int32_t *targets;
    int fds[HS_FDS_MAX];
    char *cwd;
    char *strings; /* arguments, then environment */
    char *environment;
    char *end;
};

/* Memory by its place. */
struct hs_place {
    char *from;
    size_t size;
};

/* One line of /proc/self/maps. */
struct hs_mapping {
    uintptr_t from, to;
    char access[4];
    const char *path;
};

/* A signal's action as the kernel lays it out, the flag that says it has a restorer, and the size of its mask. */
struct hs_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};
#define HS_RESTORER 0x04000000ul
#define HS_SET_BYTES 8
/* The flags that the kernel keeps, since Linux 5.11. */
#define HS_ACTION_FLAGS 0xdc000807ul

/* An action as the kernel would tell it: SIGKILL and SIGSTOP cannot be blocked. */
static inline struct hs_action hs_action_kept(const struct hs_action *given)
{
    struct hs_action kept = *given;
    kept.flags &= HS_ACTION_FLAGS;
    kept.mask &= ~(1ull << 8 | 1ull << 18);
    return kept;
}

/* An entry of a directory, as getdents64 gives it. */
struct hs_entry {
    uint64_t inode;
    int64_t next;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* entry.c */
HS_HIDDEN extern hs_main *hs_real_main;
HS_HIDDEN extern int hs_first_errno; /* errno as main is to find it */
HS_HIDDEN extern struct hs_frame hs_frame;
/* Gives the registers of hs_frame in which libc has main's arguments those of a call. */
HS_HIDDEN void hs_frame_give(const struct hs_call *call);
HS_HIDDEN void hs_frame_is_constant(const uintptr_t *word);
HS_HIDDEN extern uintptr_t hs_stack_free; /* below it nothing on the tool's stack is in use while a zygote serves */
#if HS_RESETS
HS_HIDDEN extern char hs_extended_known;
#endif

/* maps.c */
HS_HIDDEN const char *hs_maps_read(void);
HS_HIDDEN const char *hs_maps_next(const char *line, struct hs_mapping *out);

/* own.c */
HS_HIDDEN void *hs_own_map(size_t size, int flags, int fd);
HS_HIDDEN struct hs_place hs_own_places(void);
HS_HIDDEN HS_GENERAL int hs_own_has(uintptr_t from, size_t size);

/* entry.c */
HS_HIDDEN int hs_is_zygote(void);

/* vdso.c */
HS_HIDDEN int hs_vdso_is_hidden(void);
HS_HIDDEN int hs_vdso_show(void);

/* asked.c */
HS_HIDDEN void hs_asked_tell(uint64_t place);
HS_HIDDEN void hs_asked_begin(const struct hs_start *start);
HS_HIDDEN void hs_asked_stop(void);
HS_HIDDEN void hs_asked_resume(void);
HS_HIDDEN uint32_t hs_asked_doubts(void);
HS_HIDDEN void *hs_asked_interposed(void *function);
HS_HIDDEN void hs_asked_record(const char *name);
HS_HIDDEN void hs_asked_leave_to_python(void);
HS_HIDDEN size_t hs_asked_names(char *out, size_t room, uint32_t *count);

/* snapshot.c */
HS_HIDDEN int hs_imports_are_libcs(void);
HS_HIDDEN int hs_imports_is_libcs(const char *path);
HS_HIDDEN void hs_imports_prepare(void);
HS_HIDDEN int hs_imports_have(uintptr_t place);
HS_HIDDEN int hs_imports_keep_order(void);
HS_HIDDEN int hs_exports_hide_libcs(void);
HS_HIDDEN uint32_t hs_snapshot_doubts(const struct hs_start *start);
HS_HIDDEN uint32_t hs_snapshot_doubts_of_python(void);

/* title.c */
HS_HIDDEN int hs_title_open(void);
HS_HIDDEN int hs_title_set(char *args, char *env, char *end);
HS_HIDDEN void hs_title_stack(uintptr_t *low, uintptr_t *high);
HS_HIDDEN void hs_title_hide_strings(char *strings, char *end);
HS_HIDDEN void hs_title_hide_name(void);
HS_HIDDEN void hs_title_hide_zygote(void);
HS_HIDDEN void hs_title_show(void);

/* bind.c */
HS_HIDDEN int hs_bind_all(void);
HS_HIDDEN void hs_bind_learn(void *(*before)(void **place), void (*keep)(void **place));

/* outside.c */
HS_HIDDEN void hs_outside_note(void);
HS_HIDDEN int hs_outside_is_kept(void);

/* affinity.c */
HS_HIDDEN void hs_affinity_open(void);
HS_HIDDEN int hs_affinity_free(int to_anywhere);
#if HS_RESETS
HS_HIDDEN int hs_affinity_move(void);
#endif

/* text.c */
HS_HIDDEN void hs_text_enlarge(void);
HS_HIDDEN int hs_text_is_replaced(uintptr_t from, uintptr_t to);
HS_HIDDEN void hs_text_share(void);

/* decode.c */
HS_HIDDEN int hs_decode(char *message, long length, uint32_t room, struct hs_job *job);

/* residue.c */
HS_HIDDEN void hs_residue_clear(const struct hs_job *job, uintptr_t low);

/* server.c: hs_serve returns in a fork only. */
HS_HIDDEN void hs_serve(const struct hs_start *start, struct hs_call *call);
HS_HIDDEN const struct hs_job *hs_serve_python(const struct hs_start *start, uint64_t place);
HS_HIDDEN const struct hs_job *hs_serve_next(const struct hs_start *start, struct hs_call *call);

/* python/: a Python script is stopped where it first touches its request. */
HS_HIDDEN int hs_python_is_wanted(void);
HS_HIDDEN void hs_python_begin(int argc, char **argv, char **envp);
HS_HIDDEN void hs_python_seeds(void);
HS_HIDDEN extern int hs_python_is_observed;

/* loader.c */
HS_HIDDEN void hs_loader_find(const struct hs_start *start);
HS_HIDDEN int hs_loader_is_known(void);
HS_HIDDEN void hs_loader_tell(const struct hs_call *call);

/* strings.c */
HS_HIDDEN int hs_strings_open(const struct hs_start *start);
HS_HIDDEN int hs_strings_learn_counts(const struct hs_job *job, const struct hs_start *start);
HS_HIDDEN HS_GENERAL int hs_strings_are_kept(void);
HS_HIDDEN void hs_strings_lay(const struct hs_job *job, const struct hs_start *start, struct hs_call *call);
HS_HIDDEN char *hs_strings_random(void);
/* Of AT_RANDOM. */
#define HS_RANDOM_BYTES 16
HS_HIDDEN int hs_strings_show(void);
HS_HIDDEN void hs_strings_hide(void);
HS_HIDDEN struct hs_place hs_strings_place(void);

/* dry.c */
HS_HIDDEN int hs_strings_are_complete(const struct hs_job *job);
HS_HIDDEN HS_GENERAL int hs_strings_are_dry(void);
HS_HIDDEN HS_GENERAL int hs_strings_are_hidden(uintptr_t from, size_t size);
/* Places in which the strings of dry runs lie, one after the other: the number of the dry run modulo this. */
#define HS_DRY_PLACES 4
/* Variables whose values are hidden in dry runs. */
#define HS_SECRETS_MAX 16
HS_HIDDEN int hs_strings_lay_dry(const struct hs_job *job, const struct hs_start *start, struct hs_call *call,
                                 const unsigned char *is_secret, unsigned turn, int is_learned);
HS_HIDDEN void hs_strings_show_stack(void);
HS_HIDDEN void hs_strings_end_dry(void);
HS_HIDDEN HS_GENERAL int hs_strings_is_hidden(const void *address);
HS_HIDDEN HS_GENERAL const char *hs_strings_hidden(void);
HS_HIDDEN HS_GENERAL int hs_strings_are_laid_at(const void *place);
HS_HIDDEN int hs_strings_are_untouched(const struct hs_job *job, const struct hs_call *call);
HS_HIDDEN size_t hs_strings_size_behind(void);
/* The words for which hs_strings_name_of does not return 0, and few others: `word - from < size`, or the uppermost bits are a name's. */
struct hs_sought {
    uint64_t from, size, name;
};
HS_HIDDEN struct hs_sought hs_strings_sought(void);
HS_HIDDEN int hs_strings_is_name(uint64_t word);
HS_HIDDEN int hs_strings_name_of(uint64_t word, uint64_t *name);
HS_HIDDEN uint64_t hs_strings_address(uint64_t name);

/* child.c */
HS_HIDDEN int hs_child_open(void);
HS_HIDDEN int hs_child_clone(int32_t *pid_cell, int32_t group);
HS_HIDDEN int hs_child_clone_worker(volatile int32_t *pid_cell);
HS_HIDDEN void hs_child_leave_memory(void);
HS_HIDDEN void hs_child_take_memory(void);
HS_HIDDEN long hs_child_hand_over(volatile int32_t *pid_cell);
HS_HIDDEN void hs_child_install(const struct hs_job *job);
HS_HIDDEN void hs_child_limit(const struct hs_job *job);
HS_HIDDEN void hs_child_begin(const struct hs_job *job);
HS_HIDDEN int hs_child_has_room(const struct hs_job *job);
HS_HIDDEN void hs_child_fds(const struct hs_job *job, int keep);
HS_HIDDEN int *hs_child_number(void);
HS_HIDDEN int hs_child_holds_mutexes(void);

/* Resets: worker.c runs main again and again, memory.c and mappings.c restore memory, state.c the kernel's state, and marks.c notices
 * calls whose effect cannot be restored. */

/* worker.c: hs_worker_begin does not return. */
HS_HIDDEN int hs_worker_open(void);
HS_HIDDEN int hs_worker_has_segments(void);
HS_HIDDEN HS_GENERAL int hs_worker_has_past(void);
HS_HIDDEN HS_GENERAL int hs_worker_has_old_number(void);
HS_HIDDEN HS_GENERAL void hs_worker_end_dry(int number) __attribute__((noreturn));
HS_HIDDEN HS_GENERAL void hs_worker_give_up(void) __attribute__((noreturn));
HS_HIDDEN HS_GENERAL void hs_worker_ended(int status);
HS_HIDDEN HS_GENERAL void hs_worker_may_end(void);
HS_HIDDEN HS_GENERAL void hs_worker_doubts(enum hs_run_doubt doubt);
HS_HIDDEN void hs_worker_names_call(long number);
HS_HIDDEN HS_GENERAL int hs_worker_is_connected(void);
HS_HIDDEN HS_GENERAL void hs_worker_disconnect(void);
HS_HIDDEN void hs_worker_begin(const struct hs_start *start, const struct hs_call *call, const struct hs_job *job);
HS_HIDDEN void hs_worker_clone(const struct hs_job *job);
/* number.c */
HS_HIDDEN int hs_number_renew(volatile int32_t *cell, int runner, int leads);

/* The two places in a run of which there are snapshots: before main, and where it first looks at its request. */
enum hs_level { HS_AT_MAIN, HS_AT_POINT, HS_LEVELS };

/* The heap when it was saved: where it began and ended, and up to where libc had been given it; its end before main. */
struct hs_heap {
    uintptr_t start, end, given, first_end;
};

/* memory.c */
HS_HIDDEN int hs_memory_save(void);
HS_HIDDEN void hs_memory_learn(void);
HS_HIDDEN int hs_memory_open_point(void);
HS_HIDDEN int hs_memory_save_point(uintptr_t stack, uintptr_t given);
HS_HIDDEN int hs_memory_each_word(uintptr_t stack, uintptr_t given, struct hs_sought sought, int (*visit)(uint64_t *word));
HS_HIDDEN int hs_memory_compare_point(int (*differs)(uint32_t *place, uint32_t saved));
HS_HIDDEN uintptr_t hs_memory_stack_touched(uintptr_t stack);
HS_HIDDEN void hs_memory_choose(enum hs_level level);
HS_HIDDEN void hs_memory_restore(void);
HS_HIDDEN void hs_memory_renew_kernels(void);
HS_HIDDEN void hs_memory_note_kernels(void);
/* What a dry run has left where the kernel writes. HS_KERNELS_MOVED: what the kernel itself may have written. */
enum hs_kernels { HS_KERNELS_KEPT, HS_KERNELS_MOVED, HS_KERNELS_WRITTEN };
HS_HIDDEN enum hs_kernels hs_memory_kernels(void);
HS_HIDDEN void hs_memory_join_rseq(void);
HS_HIDDEN void hs_memory_leave_rseq(void);
HS_HIDDEN void hs_memory_make_present(void);
HS_HIDDEN int hs_memory_differs(void);
HS_HIDDEN int hs_memory_clear(uintptr_t from, uintptr_t to);
HS_HIDDEN int hs_memory_is_zero(const char *from, const char *to);
HS_HIDDEN struct hs_heap hs_memory_heap(void);
HS_HIDDEN uintptr_t hs_memory_stack_low(void);
HS_HIDDEN uintptr_t hs_memory_stack_saved(void);
HS_HIDDEN int hs_memory_stack_is_at_point(void);
HS_HIDDEN HS_GENERAL uintptr_t hs_memory_saved(uintptr_t from, uintptr_t to);

/* calls.c: the outcomes of a system call. */
enum hs_call_outcome {
    HS_CALL_DONE,     /* it was made, or answered: the result is in place of the number */
    HS_CALL_NATIVE,   /* it is to be made with the registers that it has */
    HS_CALL_BRANCHES, /* as that; it may return on another stack */
    HS_CALL_VFORKS,   /* as that, by hs_children_branch, so that the child is followed */
    HS_CALL_LEAVES,   /* as that; it does not return */
    HS_CALL_AT_SITE,  /* it is to be made by the very instruction that made it, and the run is not followed any more */
    HS_CALL_ARRIVES,  /* it is to be made when a snapshot was taken of the moment before it (point.c) */
};
/* Where a system call was made. */
struct hs_call_place {
    uintptr_t back;  /* where it returns */
    uintptr_t stack; /* the stack pointer */
    void *context;   /* the frame of the signal handler that is asked, if it is one */
};
/* Calls that a run has made. */
enum hs_call_seen {
    HS_SEEN_UNKNOWN = 1u << 0, /* a call that is not known to leave nothing behind and to answer as in a fresh process */
    HS_SEEN_NUMBER = 1u << 1,  /* the process's number */
    HS_SEEN_CHILDREN = 1u << 2,
    HS_SEEN_THREADS = 1u << 3,
    HS_SEEN_TIMERS = 1u << 4,
    HS_SEEN_LIMITS = 1u << 5,
    HS_SEEN_SHARED = 1u << 6, /* a file was mapped that others see */
};
HS_HIDDEN enum hs_call_outcome hs_call_decide(struct hs_system_call *call, const struct hs_call_place *place);
HS_HIDDEN int hs_call_may_be_patched(long number);
HS_HIDDEN int hs_call_is_about_strings(const struct hs_system_call *call);
HS_HIDDEN int hs_call_points_to_strings(long argument);
HS_HIDDEN void hs_call_mark(void);
HS_HIDDEN void hs_call_see_number(void);
HS_HIDDEN void hs_call_note_descriptor(long fd);

/* Answers a call in the kernel's place, or with what it has said. */
static inline enum hs_call_outcome hs_call_done(struct hs_system_call *call, long result)
{
    call->number = result;
    return HS_CALL_DONE;
}

/* cancel.c */
HS_HIDDEN long hs_call_make(const struct hs_system_call *call);
HS_HIDDEN void *hs_cancel_begin(void *frame);
HS_HIDDEN void hs_cancel_end(void *before);
HS_HIDDEN void hs_cancel_show_call(void *context, int number);
HS_HIDDEN void hs_cancel_forget(void);
/* sockets.c: the calls about sockets. */
HS_HIDDEN int hs_sockets_option_tells_nothing(long level, long option);
HS_HIDDEN int hs_sockets_option_is_known(long level, long option);
HS_HIDDEN int hs_sockets_have_plain_addresses(long family);
HS_HIDDEN enum hs_call_outcome hs_sockets_message(const struct hs_system_call *call);
HS_HIDDEN enum hs_call_outcome hs_sockets_use_address(struct hs_system_call *call, long address, int size);
/* paths.c: the calls that name a file. */
HS_HIDDEN void hs_paths_begin(void);
HS_HIDDEN int hs_paths_look_at_way(const struct hs_system_call *call, long from, const char *path);
HS_HIDDEN enum hs_call_outcome hs_paths_open(struct hs_system_call *call, long directory, const char *path, long flags);
HS_HIDDEN enum hs_call_outcome hs_paths_read_link(struct hs_system_call *call, long directory, const char *path);
HS_HIDDEN enum hs_call_outcome hs_paths_enter(struct hs_system_call *call);
HS_HIDDEN enum hs_call_outcome hs_paths_look_up(struct hs_system_call *call, long directory, const char *path);
HS_HIDDEN enum hs_call_outcome hs_paths_change(struct hs_system_call *call, long directory, long path, long other_directory, long other);
HS_HIDDEN enum hs_call_outcome hs_paths_tell(struct hs_system_call *call, long about);
HS_HIDDEN enum hs_call_outcome hs_paths_set(struct hs_system_call *call, long directory, const char *path);

/* files.c */
HS_HIDDEN HS_GENERAL int hs_files_equal(const char *a, const char *b);
HS_HIDDEN void hs_files_look_at(long fd, const char *path, int writes);
HS_HIDDEN void hs_files_look_at_name(long directory, const char *path);
HS_HIDDEN void hs_files_look_at_link(long directory, const char *path);
HS_HIDDEN void hs_files_look_at_answer(long directory, const char *path, dev_t device);
HS_HIDDEN void hs_files_begin(void);
HS_HIDDEN int hs_files_are_common(const char *path);
HS_HIDDEN int hs_files_hold(long magic);

/* Devices, as many as there is room for; 0 where there is none. */
#define HS_DEVICES 8
struct hs_devices {
    dev_t some[HS_DEVICES];
};
HS_HIDDEN int hs_devices_have(const struct hs_devices *devices, dev_t device);
HS_HIDDEN void hs_devices_add(struct hs_devices *devices, dev_t device);

/* walk.c */
HS_HIDDEN void hs_walk_begin(void);
enum hs_walk_found {
    HS_WALK_TOUCHED = 1, /* the kernel has noted that a link was read */
    HS_WALK_LINK = 2,    /* the path ends with a link, which the call does not follow */
};
HS_HIDDEN void hs_walk_settle(int found, long result);
HS_HIDDEN int hs_walk_look_at(long from, const char *path, int follows_last, const char *allowed);

HS_HIDDEN uint32_t hs_call_seen(void);
HS_HIDDEN uint64_t hs_call_actions(void);
HS_HIDDEN void hs_call_note_action(long number);
HS_HIDDEN void hs_call_note_limit(void);
HS_HIDDEN void hs_call_begin(enum hs_level level);
HS_HIDDEN HS_GENERAL int hs_places_are_as_elsewhere(const struct hs_system_call *call, long result, int overlaps);
HS_HIDDEN HS_GENERAL int hs_places_point_to_ours(const struct hs_system_call *call, uintptr_t stack);
HS_HIDDEN void hs_call_end(void);
HS_HIDDEN void hs_call_stop_others(void);

/* children.c */
HS_HIDDEN int hs_children_vfork(uintptr_t back, int hides);
HS_HIDDEN void hs_children_spawn_begins(void);
HS_HIDDEN void hs_children_spawn_ended(int error);
HS_HIDDEN int hs_children_spawn(void);
HS_HIDDEN void hs_children_branch(void);
HS_HIDDEN uintptr_t hs_children_returned(uintptr_t at, long result);
HS_HIDDEN HS_GENERAL void hs_children_note_foreign(void);
HS_HIDDEN HS_GENERAL void hs_children_end(void);
HS_HIDDEN void hs_children_look(const struct hs_system_call *call);
HS_HIDDEN int hs_children_are_gone(void);
HS_HIDDEN uint32_t hs_children_count(void);
HS_HIDDEN int hs_children_came_before(void);
HS_HIDDEN void hs_children_begin(void);

/* table.c: what is known of a call by its number. */
enum hs_table_kind {
    HS_TABLE_PLAIN = 1u << 6, /* it leaves nothing behind */
    HS_TABLE_KNOWN = 1u << 7, /* it is that, or calls.c has a treatment for it */
};
HS_HIDDEN unsigned hs_table_kind(long number);
HS_HIDDEN unsigned hs_table_pointers(const struct hs_system_call *call);
HS_HIDDEN int hs_table_names_connection(const struct hs_system_call *call);

/* stacks.c */
HS_HIDDEN void hs_stacks_begin(void);
HS_HIDDEN void hs_stacks_note(void *thread, uintptr_t low, uintptr_t high);
HS_HIDDEN void hs_stacks_note_depth(void);
HS_HIDDEN int hs_stacks_have_used(uintptr_t from, uintptr_t stack, long number);
HS_HIDDEN int hs_stacks_have_room(uintptr_t pointer);

/* signals.c */
HS_HIDDEN extern char hs_signals_came;
HS_HIDDEN int hs_signals_store(long to, const void *from, size_t size);
HS_HIDDEN int hs_signals_fetch(void *to, long from, size_t size);
HS_HIDDEN enum hs_call_outcome hs_signals_stack(const struct hs_system_call *call);
HS_HIDDEN void hs_signals_begin(int process);
HS_HIDDEN int hs_signals_blocks(void);
HS_HIDDEN void hs_signals_set_blocks(int blocks);
HS_HIDDEN int hs_signals_are_own(void);
HS_HIDDEN void hs_signals_hand_over(void *context);
HS_HIDDEN void hs_signals_set(int number, const struct hs_action *action);
HS_HIDDEN void hs_signals_tell(int number, struct hs_action *action);
HS_HIDDEN extern char hs_signals_faulted;
HS_HIDDEN void hs_signals_forget_fault(void);
HS_HIDDEN void hs_signals_lead(void);
HS_HIDDEN void hs_signals_let_go(void);
HS_HIDDEN enum hs_call_outcome hs_signals_action(struct hs_system_call *call, uintptr_t stack);
HS_HIDDEN enum hs_call_outcome hs_signals_mask(struct hs_system_call *call, void *context);
HS_HIDDEN enum hs_call_outcome hs_signals_return(void *context);
HS_HIDDEN enum hs_call_outcome hs_signals_wait(struct hs_system_call *call, long mask, long size);
HS_HIDDEN enum hs_call_outcome hs_signals_select(struct hs_system_call *call);

/* usage.c */
struct rusage;
HS_HIDDEN void hs_usage_note_start(void);
HS_HIDDEN void hs_usage_note_point(void);
HS_HIDDEN void hs_usage_begin(enum hs_level level);
HS_HIDDEN const struct rusage *hs_usage_before(void);
HS_HIDDEN enum hs_call_outcome hs_usage_tell(struct hs_system_call *call);
HS_HIDDEN enum hs_call_outcome hs_usage_times(struct hs_system_call *call);
HS_HIDDEN enum hs_call_outcome hs_usage_clock(struct hs_system_call *call);
HS_HIDDEN enum hs_call_outcome hs_usage_sleep(const struct hs_system_call *call);
HS_HIDDEN enum hs_call_outcome hs_usage_system(struct hs_system_call *call);
HS_HIDDEN enum hs_call_outcome hs_usage_limit(struct hs_system_call *call);

/* sites.c. Bytes of a system call and the comparison behind it. */
#define HS_TAIL_BYTES 8
/* Bytes of a system call, and of what loads its number. */
#define HS_CALL_BYTES 2
#define HS_MOVE_BYTES 5
HS_HIDDEN void hs_sites_open(uintptr_t from, uintptr_t to);
HS_HIDDEN HS_GENERAL int hs_sites_tail_is_free(uintptr_t site);

/* slots.c: makes calls for instructions of the tool's. */
HS_HIDDEN int hs_slots_take_stack(void);
HS_HIDDEN void hs_slots_begin(void);
HS_HIDDEN int hs_slots_is_call(uintptr_t place);
HS_HIDDEN const unsigned char *hs_slots_find(uintptr_t back);
HS_HIDDEN const unsigned char *hs_slots_make(uintptr_t back, const unsigned char *load);
HS_HIDDEN int hs_slots_set_writable(int is);
HS_HIDDEN uintptr_t hs_slots_way(uintptr_t back);
HS_HIDDEN int hs_slots_set_flags_anew(uintptr_t place);
HS_HIDDEN int hs_slots_leave(long long *registers);

/* gate.c: has every system call of a run come to calls.c. */
HS_HIDDEN void hs_gate_prepare(void);
HS_HIDDEN void hs_gate_restorer(void);
HS_HIDDEN int hs_gate_follows(void);
HS_HIDDEN int hs_gate_set_writable(uintptr_t from, uintptr_t to, int is);
HS_HIDDEN int hs_gate_open(void);
HS_HIDDEN int hs_gate_open_again(void);
HS_HIDDEN void hs_gate_close(void);
HS_HIDDEN void hs_gate_lift(void);
HS_HIDDEN void hs_gate_join(void);
HS_HIDDEN void hs_gate_leave(void);
HS_HIDDEN int hs_gate_follow(int on);
HS_HIDDEN void hs_gate_show_action(void);
HS_HIDDEN void hs_gate_reveal(void);
HS_HIDDEN int hs_gate_show_site(void *context);
/* Whether so many bytes of code are libc's. */
HS_HIDDEN int hs_gate_is_libcs(uintptr_t code, size_t size);
/* The runtime's text. */
HS_HIDDEN extern struct hs_gate_text {
    uintptr_t low, size;
} hs_gate_text;
HS_HIDDEN int hs_gate_ignores(void);
HS_HIDDEN int hs_gate_patch(void);
HS_HIDDEN void hs_gate_patch_reported(void);
HS_HIDDEN int hs_gate_is_worker(void);
HS_HIDDEN void hs_gate_action(const struct hs_action *action, struct hs_action *old);

/* mappings.c */
HS_HIDDEN int hs_mappings_open(void);
HS_HIDDEN void hs_mappings_open_again(void);
HS_HIDDEN void hs_mappings_renumber(void);
HS_HIDDEN void hs_mappings_note_base(void);
HS_HIDDEN void hs_mappings_make_real(int for_good);
HS_HIDDEN int hs_mappings_have_code(void);
HS_HIDDEN int hs_mappings_overlap(uintptr_t from, size_t size);
HS_HIDDEN long hs_mappings_call(const struct hs_system_call *call);
HS_HIDDEN int hs_mappings_touched(uintptr_t *given);
HS_HIDDEN void hs_mappings_reset_heap(void);
HS_HIDDEN int hs_mappings_lost(void);
HS_HIDDEN unsigned long hs_mappings_pages(void);
HS_HIDDEN int hs_mappings_unseen(void);
HS_HIDDEN int hs_mappings_undo(void);
HS_HIDDEN int hs_mappings_heap_differs(void);
HS_HIDDEN int hs_mappings_differ(void);

/* page_cache.c */
HS_HIDDEN int hs_cache_take(uintptr_t from, uintptr_t to);
HS_HIDDEN int hs_cache_give(uintptr_t at, size_t size);
HS_HIDDEN int hs_cache_drop(void);
HS_HIDDEN void hs_cache_avoid(uintptr_t from, uintptr_t to);
HS_HIDDEN void hs_cache_clean(void);
HS_HIDDEN unsigned long hs_cache_pages(void);
HS_HIDDEN int hs_cache_has(uintptr_t from, uintptr_t to);
HS_HIDDEN int hs_cache_differs(void);

/* state.c */
HS_HIDDEN int hs_state_limits_fit(void);
HS_HIDDEN int hs_state_save(void);
HS_HIDDEN void hs_state_save_point(void);
HS_HIDDEN int hs_state_is_at_point(void);
HS_HIDDEN void hs_state_block_dry(void);
HS_HIDDEN int hs_state_is_blocked_dry(void);
HS_HIDDEN int hs_state_has_signal(void);
HS_HIDDEN void hs_state_unblock(void);
HS_HIDDEN void hs_state_choose(enum hs_level level);
HS_HIDDEN uint32_t hs_state_doubts(void);
HS_HIDDEN HS_GENERAL int hs_state_has_threads(void);
HS_HIDDEN void hs_state_keep_signals(int keeps);
HS_HIDDEN void hs_state_restore(void);
HS_HIDDEN int hs_state_renew_stack(void);
HS_HIDDEN void hs_state_name(void);
HS_HIDDEN uint32_t hs_state_differs(void);

/* point.c */
HS_HIDDEN void hs_pays_begin(void);
HS_HIDDEN void hs_pays_arrived(void);
HS_HIDDEN void hs_pays_end(void);
HS_HIDDEN unsigned hs_pays_after(void);
HS_HIDDEN void hs_pays_note_request(int is_served);
HS_HIDDEN int hs_pays_to_wait_there(void);
HS_HIDDEN void hs_point_open(void);
HS_HIDDEN int hs_point_is_ready(void);
HS_HIDDEN uint64_t hs_point_learned(void);
HS_HIDDEN uint64_t hs_point_findings(void);
HS_HIDDEN void hs_point_cloned(void);
HS_HIDDEN void hs_point_renumbered(void);
HS_HIDDEN int hs_point_serves(const struct hs_job *job);
HS_HIDDEN int hs_point_learns_from(const struct hs_job *job);
HS_HIDDEN int hs_point_learns_on(const struct hs_job *job);
HS_HIDDEN int hs_point_wants_to_move(const struct hs_job *job);
HS_HIDDEN const unsigned char *hs_point_may_run_dry(const struct hs_job *job, unsigned *before, int *is_learned);
HS_HIDDEN void hs_point_begin_dry(const struct hs_job *job, const struct hs_call *call);
HS_HIDDEN void hs_point_interrupt(void *context, int number, const int *code);
HS_HIDDEN uint32_t hs_point_differs(void);
HS_HIDDEN void hs_point_enter(const struct hs_job *job) __attribute__((noreturn));
HS_HIDDEN struct hs_arrival *hs_point_arrival(void);
HS_HIDDEN void hs_point_arrive(void);
HS_HIDDEN void hs_point_arrive_by_slot(void);

/* delta.c */
#define HS_DELTA_MAX 8192
struct hs_delta {
    uint32_t first, count;
};
HS_HIDDEN void hs_delta_forget(void);
HS_HIDDEN int hs_delta_take(struct hs_delta *delta);
HS_HIDDEN int hs_delta_matches(struct hs_delta *delta);
HS_HIDDEN void hs_delta_apply(const struct hs_delta *delta);

/* pointers.c */
struct hs_pointers {
    uint32_t first, count; /* the row of their places */
    int in_registers;
    int may_cross;           /* the first loads of libc's string functions, a page */
    uint16_t computed;       /* registers, as bits */
    unsigned char forms[16]; /* of each, as bits */
};
HS_HIDDEN void hs_pointers_forget(void);
HS_HIDDEN int hs_pointers_rename(struct hs_pointers *out, struct hs_arrival *at, uintptr_t given);
/* HS_CANNOT_SAY: they agree as far as they can be compared. HS_DRIFTED: they agree but for what changes without the tool. */
enum hs_agreement { HS_DISAGREES, HS_AGREES, HS_CANNOT_SAY, HS_DRIFTED };
HS_HIDDEN enum hs_agreement hs_pointers_compare_registers(struct hs_pointers *saved, const struct hs_arrival *then,
                                                          const struct hs_pointers *row, const struct hs_arrival *now);
HS_HIDDEN void hs_pointers_drop(const struct hs_pointers *row);
HS_HIDDEN void hs_pointers_apply(const struct hs_pointers *row);
HS_HIDDEN void hs_pointers_apply_to_registers(const struct hs_pointers *row, struct hs_arrival *at);

/* flags.c */
HS_HIDDEN int hs_flags_are_set_anew(uintptr_t place);

/* watch.c */
enum hs_watch_look { HS_WATCH_PASSES, HS_WATCH_ANSWERS, HS_WATCH_ARRIVES };
typedef void hs_watch_failed(void);
HS_HIDDEN extern char hs_watch_is_on;
HS_HIDDEN void hs_watch_begin(hs_watch_failed *failed);
HS_HIDDEN HS_GENERAL void hs_watch_stop(void);
HS_HIDDEN void hs_watch_touch(void);
HS_HIDDEN void hs_watch_wipe(void);
HS_HIDDEN int hs_watch_is_call(uintptr_t place);
HS_HIDDEN enum hs_watch_look hs_watch_look(struct hs_system_call *call, uintptr_t pointer);
HS_HIDDEN int hs_watch_is_own(uintptr_t place);
HS_HIDDEN void hs_watch_arrive_by_signal(void *context, uintptr_t site);
HS_HIDDEN uintptr_t hs_watch_arrive_by_slot(uintptr_t slot, uint64_t flags);

/* threads.c */
/* Returns 0 if no other thread is left. */
HS_HIDDEN int hs_threads_share_memory(int of_files);
HS_HIDDEN int hs_threads_end(void);
HS_HIDDEN HS_GENERAL void hs_threads_leave(void) __attribute__((noreturn));
HS_HIDDEN HS_GENERAL void hs_threads_note(long number);
HS_HIDDEN void hs_threads_begin(void);
HS_HIDDEN HS_GENERAL int hs_threads_creates(void);
HS_HIDDEN HS_GENERAL int hs_threads_asks_for_stack(void);
HS_HIDDEN void hs_threads_resolve(void);
HS_HIDDEN void *hs_threads_interposed(void *function);

/* marks.c */
HS_HIDDEN int hs_marks_timers(void);
HS_HIDDEN void hs_marks_resolve(void);
HS_HIDDEN int hs_marks_take(void);
HS_HIDDEN int hs_marks_seen(void);
HS_HIDDEN void hs_marks_set(void);
HS_HIDDEN void hs_marks_leave_to_gate(void);
HS_HIDDEN void *hs_marks_interposed(void *function);

/* nested.c */
HS_HIDDEN void hs_nested_open(void);
HS_HIDDEN HS_GENERAL int hs_nested_is_build(void);
HS_HIDDEN HS_GENERAL int hs_nested_is_client(const char *path);
HS_HIDDEN void *hs_nested_interposed(void *function);

/* io.c */
HS_HIDDEN int hs_read_whole(const char *path, char *out, size_t room);
HS_HIDDEN int hs_count_entries(const char *path, unsigned long *total);
HS_HIDDEN uintptr_t hs_parse(const char **text, int base);
HS_HIDDEN int hs_send(const void *message, size_t length);
HS_HIDDEN long hs_receive(void *buffer, size_t room, int *fds, uint32_t *fd_count);

/* Makes memory zero without vector registers. */
static inline void hs_zero(uintptr_t from, uintptr_t to)
{
#if HS_RESETS
    size_t count = to - from;
    __asm__ volatile("rep stosb" : "+D"(from), "+c"(count) : "a"(0) : "memory");
#else
    for (; from < to; from++)
        *(volatile char *)from = 0;
#endif
}

#endif
