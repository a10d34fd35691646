/* Decodes a received request in place.
 *
 * It has no state and a file of its own, so that tests/unit/decode.c can feed it malformed messages under sanitizers.
 */
#include <string.h>

#include "runtime.h"

static char *skip_strings(char *at, uint32_t count, char *end)
{
    for (; count; count--) {
        char *nul = memchr(at, 0, (size_t)(end - at));
        if (!nul)
            return NULL;
        at = nul + 1;
    }
    return at;
}

/* Finds the parts of a message; -1 if it violates the protocol. `room` is the number of pointers that arguments and
 * environment may take. */
int hs_decode(char *message, long length, uint32_t room, struct hs_job *job)
{
    const struct hs_request *head = (const struct hs_request *)message;
    char *end = message + length;
    if (length < (long)sizeof *head || head->version != HS_VERSION || head->length != (uint32_t)length)
        return -1;
    if (head->limit_count > HS_LIMITS_MAX || head->fd_count > HS_FDS_MAX || head->fd_count < 3 || head->argc < 1 ||
        head->slot >= HS_SLOTS || head->count_count > HS_COUNTS_MAX || head->residue_count > HS_RESIDUE_MAX)
        return -1;
    /* The zygote was started with more arguments than any request has, to make room on its stack. */
    if ((uint64_t)head->argc + head->envc + 2 > room)
        return -1;
    const size_t fixed = sizeof *head + head->limit_count * sizeof *job->limits + head->count_count * sizeof *job->counts +
                         head->residue_count * sizeof *job->residue + head->fd_count * sizeof *job->targets;
    if (fixed > (size_t)length)
        return -1;
    job->head = head;
    job->limits = (const struct hs_limit *)(head + 1);
    job->counts = (const uint64_t *)(job->limits + head->limit_count);
    job->residue = job->counts + head->count_count;
    job->targets = (const int32_t *)(job->residue + head->residue_count);
    for (uint32_t i = 0; i < head->fd_count; i++)
        if (job->targets[i] < 0 || job->targets[i] >= HS_TARGET_MAX)
            return -1;
    job->cwd = message + fixed;
    job->end = end;
    job->strings = skip_strings(job->cwd, 1, end);
    job->environment = job->strings ? skip_strings(job->strings, head->argc, end) : NULL;
    return job->environment && skip_strings(job->environment, head->envc, end) == end ? 0 : -1;
}
