/* System calls about sockets: what they tell of the process, to itself and to others.
 *
 * A socket that has been bound, or that listens, tells others the number of its process. One in a file system may lead to the runner.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "runtime.h"

#if HS_RESETS

/* Options of sockets that tell nothing of the process. Others may: SO_PEERCRED has its number. */
int hs_sockets_option_tells_nothing(long level, long option)
{
    if (level != SOL_SOCKET)
        return level == IPPROTO_IP || level == IPPROTO_IPV6 || level == IPPROTO_TCP;
    switch (option) {
    case SO_ACCEPTCONN:
    case SO_BROADCAST:
    case SO_DOMAIN:
    case SO_ERROR:
    case SO_KEEPALIVE:
    case SO_LINGER:
    case SO_PROTOCOL:
    case SO_RCVBUF:
    case SO_RCVTIMEO:
    case SO_REUSEADDR:
    case SO_REUSEPORT:
    case SO_SNDBUF:
    case SO_SNDTIMEO:
    case SO_TYPE:
        return 1;
    default:
        return 0;
    }
}

/* Options that change nothing but what the socket does. One that lingers has whoever closes it wait, which the end of a process does
 * not. */
int hs_sockets_option_is_known(long level, long option)
{
    return hs_sockets_option_tells_nothing(level, option) && !(level == SOL_SOCKET && option == SO_LINGER);
}

/* Addresses of other families may have the process's number, as netlink's do. */
int hs_sockets_have_plain_addresses(long family)
{
    return family == AF_UNIX || family == AF_INET || family == AF_INET6;
}

/* Messages that may hand descriptors over. */
enum hs_call_outcome hs_sockets_message(const struct hs_system_call *call)
{
    struct msghdr head;
    if (!hs_signals_fetch(&head, call->b, sizeof head) || head.msg_controllen || (call->number == SYS_sendmsg && head.msg_namelen))
        hs_call_mark();
    return HS_CALL_NATIVE;
}

/* Looks at the way to a socket with a name. Returns as the walk does. */
static int look_at_way(long address, int size)
{
    struct sockaddr_un name;
    if (size > (int)sizeof name || !hs_signals_fetch(&name, address, (size_t)size))
        return 0;
    char path[sizeof name.sun_path + 1];
    const unsigned length = (unsigned)size - offsetof(struct sockaddr_un, sun_path);
    for (unsigned i = 0; i < length; i++)
        path[i] = name.sun_path[i];
    path[length] = 0;
    return hs_walk_look_at(AT_FDCWD, path, 1, NULL);
}

/* A call with a socket's address. One in a file system may lead to the runner's connection; who listens at another one is told this
 * process's number. */
enum hs_call_outcome hs_sockets_use_address(struct hs_system_call *call, long address, int size)
{
    /* The family, in two bytes, and what the name begins with. */
    unsigned char known[3];
    if (!address || size < (int)sizeof known || !hs_signals_fetch(known, address, sizeof known) || (known[0] | known[1] << 8) != AF_UNIX)
        return HS_CALL_NATIVE;
    const int found = known[2] ? look_at_way(address, size) : 0;
    const long result = hs_call_make(call);
    hs_walk_settle(found, result);
    /* Nobody is there: libc asks so for a daemon that knows users. */
    if (result == -ENOENT || (result == -ECONNREFUSED && !known[2]))
        return hs_call_done(call, result);
    if (known[2])
        hs_call_mark();
    hs_call_see_number();
    return hs_call_done(call, result);
}

#endif
