/* Sees a job through: passes signals on, and ends as the job did.
 *
 * If the server dies, its guard ends the job. A job that can be run again is then run cold, by this process, after
 * nothing is left of the first; the server announces the others, and these end here as they ended there. A job that
 * stops of itself stops this process, whose parent may wait for that. */
#include <linux/signalfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "client.h"
#include "system.h"

#define EINTR 4
#define EAGAIN 11
#define ECONNRESET 104
#define REASON_ROOM 200

/* SIGCONTs that were passed on. */
static uint32_t continued;
/* The signals that have come, to be read. */
static int signals = -1;

static int send_parts(int socket, const struct iovec *parts, size_t count, const int32_t *fds, size_t fd_count)
{
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int) * HX_FDS_MAX)];
    } control;
    struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
    if (fd_count) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int) * fd_count), .cmsg_level = SOL_SOCKET,
                                        .cmsg_type = SCM_RIGHTS};
        int *out = (int *)CMSG_DATA(&control.head);
        for (size_t i = 0; i < fd_count; i++)
            out[i] = fds[i];
    }
    return sys(__NR_sendmsg, socket, &message, MSG_NOSIGNAL) > 0 ? 0 : -1;
}

/* Signals by which a terminal stops a process. */
static const uint64_t stops = (uint64_t)1 << (SIGTSTP - 1) | (uint64_t)1 << (SIGTTIN - 1) | (uint64_t)1 << (SIGTTOU - 1);

/* Signals are blocked by now, so that none is lost between here and the end of the job. */
static void pass_on(struct server *server, int number, uint32_t flags)
{
    struct hx_signal signal = {{HX_MAGIC, HX_VERSION, sizeof signal, HX_SIGNAL}, number, flags};
    struct iovec part = {&signal, sizeof signal};
    send_parts(server->socket, &part, 1, NULL, 0);
    continued += number == SIGCONT;
}

/* Notes a signal for a command that may yet be run cold. One that stops and one that continues undo each other, as in the kernel. */
static void take(struct command *command, int number)
{
    if (number == SIGCONT)
        command->taken &= ~stops;
    else if (stops & bit(number))
        command->taken &= ~bit(SIGCONT);
    command->taken |= bit(number);
}

static void take_from_outside(struct server *server, struct command *command, int number)
{
    uint32_t flags = 0;
    if (command->ends_all && (number == SIGINT || number == SIGTERM || number == SIGHUP))
        flags |= HX_ENDS_ALL;
    if (stops & bit(number) && stops_nobody())
        flags |= HX_STOPS_NOBODY;
    take(command, number);
    pass_on(server, number, flags);
}

/* Returns the next signal that has come, or 0. */
static int next_signal(void)
{
    struct signalfd_siginfo info;
    return sys(__NR_read, signals, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

/* Continues the job after this process was continued. A job without a client would have got signals that came meanwhile before it went on,
 * so they are passed on first. A stop signal among them came after the SIGCONT: the kernel discards earlier ones. */
static void continue_job(struct server *server, struct command *command)
{
    uint64_t later = 0;
    for (int number = next_signal(); number > 0; number = next_signal()) {
        if (stops & bit(number))
            later |= bit(number);
        else if (number != SIGCONT)
            take_from_outside(server, command, number);
    }
    pass_on(server, SIGCONT, 0);
    for (int number = 1; later >> (number - 1); number++)
        if (later & bit(number))
            take_from_outside(server, command, number);
}

/* Stops as the job has stopped, unless that has been continued since. */
static void stop_with_job(struct server *server, struct command *command, int number, uint32_t when)
{
    if (when != continued || number < 1 || number > 64)
        return;
    stop_by(number);
    command->taken &= ~stops;
    /* The system does not stop a process group without a shell by other signals than SIGSTOP; then the job goes on as well. */
    continue_job(server, command);
}

void die_of(int number)
{
    struct sys_action action = {0, 0, 0, 0};
    struct rlimit none = {0, 0};
    uint64_t all = 0;
    /* The job has left its own core file, if any. */
    sys(__NR_prlimit64, 0, RLIMIT_CORE, &none, NULL);
    sys(__NR_rt_sigaction, number, &action, NULL, sizeof all);
    sys(__NR_kill, sys(__NR_getpid), number);
    sys(__NR_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
    leave(128 + number);
}

static __attribute__((noreturn)) void lose(struct server *server, struct command *command, int must_not_repeat)
{
    uint64_t mask = command->mask;
    sys(__NR_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
    await_end_of(server);
    if (!must_not_repeat)
        run_cold(command, "the server ended");
    const char *parts[] = {"the server died while '", command->program,
                           "' ran; it is not run again, as that might not give the same", NULL};
    say(parts);
    die_of(SIGKILL);
}

/* One message from the server. Returns while the job goes on. */
static void hear(struct server *server, struct command *command, int *must_not_repeat)
{
    static char why[REASON_ROOM + 1];
    struct hx_reply reply;
    struct iovec parts[2] = {{&reply, sizeof reply}, {why, REASON_ROOM}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    long got = sys(__NR_recvmsg, server->socket, &message, 0);
    /* A reset tells that the server has closed the connection before it read a signal; what it had said comes next. */
    if (got == -EAGAIN || got == -EINTR || got == -ECONNRESET)
        return;
    if (got < (long)sizeof reply || reply.head.magic != HX_MAGIC)
        lose(server, command, *must_not_repeat);
    switch (reply.head.kind) {
    case HX_STARTING:
        *must_not_repeat = 1;
        return;
    case HX_STOPPED:
        stop_with_job(server, command, reply.value, reply.continued);
        return;
    case HX_EXITED:
        leave(reply.value);
    case HX_SIGNALED:
        die_of(reply.value);
    default:
        why[got - (long)sizeof reply] = 0;
        sys(__NR_close, server->socket);
        run_cold(command, why);
    }
}

void run_warm(struct server *server, struct message *message, struct command *command)
{
    /* The kernel blocks neither. A fault of this process ends it all the same. */
    uint64_t passed = ~(bit(SIGKILL) | bit(SIGSTOP));
    int must_not_repeat = 0;
    sys(__NR_rt_sigprocmask, SIG_BLOCK, &passed, NULL, sizeof passed);
    struct pollfd polled[2] = {{server->socket, POLLIN, 0}, {-1, POLLIN, 0}};
    signals = polled[1].fd = (int)sys(__NR_signalfd4, -1, &passed, sizeof passed, O_CLOEXEC | O_NONBLOCK);
    if (polled[1].fd < 0 ||
        send_parts(server->socket, message->parts, PARTS, message->targets, message->run.fd_count) != 0) {
        sys(__NR_close, server->socket);
        run_cold(command, "the server does not take the request");
    }
    for (;;) {
        sys(__NR_ppoll, polled, 2, NULL, NULL, sizeof passed);
        const int number = polled[1].revents ? next_signal() : 0;
        if (number > 0)
            take_from_outside(server, command, number);
        if (polled[0].revents)
            hear(server, command, &must_not_repeat);
    }
}
