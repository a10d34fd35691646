/* What a request lays (reset/strings.c), and what a dry run lays instead (deferred/dry.c). Both know where the kernel has laid its own. */
#ifndef HS_STRINGS_H
#define HS_STRINGS_H

#include "runtime.h"

#define PAGE 4096
/* As many strings as a message has, and the program's name. */
#define STRINGS_ROOM (HS_MESSAGE_MAX + 2 * PAGE)
/* The most that a zygote has on the stack above its frames, and more than that. */
#define NOTED_ROOM (512 * 1024)
/* Zero bytes behind the last string (fs/exec.c). */
#define TAIL 8
/* Words of an auxiliary vector (AT_VECTOR_SIZE in the kernel is smaller). */
#define VECTOR_MAX 256
/* Arguments of a dry run. */
#define ARGUMENTS_MAX 256
/* Pages around a secret variable in a dry run, at most. */
#define PAGES_OF_SECRET 6
_Static_assert(STRINGS_ROOM % PAGE == 0, "the strings end a page");

/* Memory above the stack, there only while a dry run goes on. No snapshot has it (hs_strings_place). Each place of a dry run has an area
 * of its own, so that no number of a page or of a larger piece of memory is the same in all. */
struct hs_laid {
    char dry[HS_DRY_PLACES][10ul << 20];
};
HS_HIDDEN extern struct hs_laid *hs_laid;
/* Maps it, so that nothing of it can be read; -1 if there is something already. */
HS_HIDDEN int hs_strings_map(void);

struct hs_layout {
    int is_complete; /* the request's arrays and auxiliary vector lie below the kernel's */
    char **argv;
    char *behind;                    /* the arrays, and the vector if that has room there */
    char *begin, *environment, *end; /* of the strings */
    /* Where the tool keeps the number of arguments. */
    uint32_t *counts[HS_COUNTS_MAX], count_count;
};
HS_HIDDEN extern struct hs_layout hs_layout;

/* What the kernel has laid on the stack, from low to high addresses. */
struct hs_block {
    char *number;                                /* of arguments, right before their array */
    char *auxiliary, *auxiliary_end;             /* the vector, for which libraries look behind the environment */
    char *room;                                  /* from there on strings may lie: behind the random bytes and the platform's name */
    char *path, *end;                            /* the program's, and the zeros behind it */
    size_t path_size;
    uintptr_t copy[VECTOR_MAX]; /* of the vector */
    size_t words;
};
HS_HIDDEN extern struct hs_block hs_block;

static inline char *page_of(const char *at)
{
    return (char *)((uintptr_t)at & -(uintptr_t)PAGE);
}

static inline void zero(char *from, char *to)
{
    if (from < to)
        hs_zero((uintptr_t)from, (uintptr_t)to);
}

/* Has the arrays, which are complete, followed by the auxiliary vector, and tells them to all that main or libc may ask. */
HS_HIDDEN void hs_strings_tell(const struct hs_job *job, const struct hs_start *start, struct hs_call *call);

#endif
