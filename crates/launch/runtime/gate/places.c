/* Addresses among the arguments and answers of a system call: where they would lie, and what would be there, in a fresh process.
 *
 * The runtime has mapped memory of its own, and the strings of a dry run lie elsewhere than on the stack.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "runtime.h"

#if HS_RESETS

#define PAGE 4096ul
/* More than lies below any place of a mapping. */
#define LARGEST (1ul << 47)

static int has_strings(uintptr_t from, size_t size)
{
    const struct hs_place strings = hs_strings_place();
    const uintptr_t begin = (uintptr_t)strings.from;
    return (from < begin + strings.size && begin < from + size) || hs_strings_are_hidden(from, size);
}

/* Whether a call is about pages of arguments or environment. In a fresh process these are pages of its stack. */
int hs_call_is_about_strings(const struct hs_system_call *call)
{
    if (call->number == SYS_brk)
        return 0;
    if (call->number == SYS_mremap && has_strings((uintptr_t)call->e, (size_t)call->c))
        return 1;
    return has_strings((uintptr_t)call->a, (size_t)call->b);
}

/* Whether an argument of a call is an address there. (In the registers of arguments that a call does not have, anything may be.) */
int hs_call_points_to_strings(long argument)
{
    return has_strings((uintptr_t)argument, 1);
}

/* Whether the kernel has chosen a place as it would in a fresh process. It chooses one that is free from above: not as far down as the
 * runtime's own, but for a process of 100 TB. */
static int is_chosen_as_elsewhere(const struct hs_system_call *call, long result)
{
    return (call->number == SYS_mmap && call->d & MAP_32BIT) || !hs_own_has((uintptr_t)result, LARGEST);
}

/* Whether a call other than brk has had the answer that a fresh process would have, where the runtime has mapped nothing. The kernel takes
 * an address for a hint, and makes it that of a page. `overlaps`: this run had mapped something there before. Then the kernel refuses
 * the hint in a fresh process, too. */
int hs_places_are_as_elsewhere(const struct hs_system_call *call, long result, int overlaps)
{
    const int makes = call->number == SYS_mmap || call->number == SYS_mremap;
    const int is_moved_there = call->number == SYS_mremap && call->d & MREMAP_FIXED;
    if (makes && result == -ENOMEM)
        return 0;
    if ((call->a && hs_own_has((uintptr_t)call->a, (size_t)call->b)) ||
        (is_moved_there && hs_own_has((uintptr_t)call->e, (size_t)call->c)))
        return 0;
    if (call->number == SYS_mmap && !call->a && result > 0)
        return is_chosen_as_elsewhere(call, result);
    if (call->number == SYS_mremap && !is_moved_there && result > 0 && result != call->a)
        return is_chosen_as_elsewhere(call, result);
    if (call->number != SYS_mmap || !call->a || result == -EINVAL || result == -EBADF || result == -EACCES)
        return 1;
    const uintptr_t made = (uintptr_t)result, wanted = (uintptr_t)call->a;
    if (made - wanted < PAGE || wanted - made < PAGE)
        return !overlaps || call->d & MAP_FIXED;
    return overlaps && (result == -EEXIST || (result > 0 && is_chosen_as_elsewhere(call, result)));
}

/* Whether memory is the runtime's own, or has been, where a fresh process has none. */
static int is_own(uintptr_t from, size_t size)
{
    const struct hs_place strings = hs_strings_place();
    const uintptr_t begin = (uintptr_t)strings.from;
    return hs_own_has(from, size) || (!hs_strings_are_dry() && from < begin + strings.size && (from >= begin || size > begin - from));
}

/* Whether memory that a call leads to is the runtime's own, or has been changed by it. */
static int is_changed(const void *from, size_t size, uintptr_t stack, long number)
{
    return size && (is_own((uintptr_t)from, size) || hs_stacks_have_used((uintptr_t)from, stack, number));
}

/* Whether a list of `count` buffers has one there. The kernel refuses a longer list unread. */
static int has_changed(long list, size_t count, uintptr_t stack, long number)
{
    struct iovec parts[16];
    const size_t most = sizeof parts / sizeof *parts;
    for (size_t begin = 0; count <= UIO_MAXIOV && begin < count; begin += most) {
        const size_t size = count - begin < most ? count - begin : most;
        if (!hs_signals_fetch(parts, list + (long)(begin * sizeof *parts), size * sizeof *parts))
            return 0;
        for (size_t i = 0; i < size; i++)
            if (is_changed(parts[i].iov_base, parts[i].iov_len, stack, number))
                return 1;
    }
    return 0;
}

/* Whether what a call's argument points to leads there. */
static int leads_to_ours(const struct hs_system_call *call, uintptr_t stack)
{
    struct msghdr message;
    switch (call->number) {
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_vmsplice:
        /* The kernel takes the lower half. */
        return has_changed(call->b, (unsigned)call->c, stack, call->number);
    case SYS_sendmsg:
    case SYS_recvmsg:
        return hs_signals_fetch(&message, call->b, sizeof message) &&
               (is_changed(message.msg_name, message.msg_namelen, stack, call->number) ||
                is_changed(message.msg_control, message.msg_controllen, stack, call->number) ||
                has_changed((long)message.msg_iov, message.msg_iovlen, stack, call->number) ||
                (message.msg_iovlen && hs_stacks_have_used((uintptr_t)message.msg_iov, stack, call->number)));
    default: return 0;
    }
}

/* Whether an argument of a call is an address at which the kernel would find something else, or nothing, in a fresh process. It may lead
 * to the runtime's memory, or below the tool's stack pointer `stack`, where the frames of the gate's signal lie. Registers that the call
 * does not use may hold anything. Old addresses of the stack are common there, so only real arguments are compared with the frames. */
int hs_places_point_to_ours(const struct hs_system_call *call, uintptr_t stack)
{
    const long arguments[] = {call->a, call->b, call->c, call->d, call->e, call->f};
    const unsigned pointers = hs_table_pointers(call);
    for (unsigned i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        const uintptr_t at = (uintptr_t)arguments[i];
        if (is_own(at, 0) || (pointers >> i & 1 && hs_stacks_have_used(at, stack, call->number)))
            return 1;
    }
    return leads_to_ours(call, stack);
}

#endif
