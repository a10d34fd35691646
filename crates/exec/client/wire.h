/* The wire between a client and the per-user server: the one source of it.
 *
 * src/wire.rs repeats these numbers; a test there compiles this header and compares every size and offset. A client
 * connects to a SOCK_SEQPACKET socket and sends one request, with descriptors as SCM_RIGHTS. While a job runs it may
 * send signals to pass on. The server's last message tells how the job ended, or that it was not begun. Client and
 * server run on one machine: byte order is the machine's. The version is also in the name of the socket, so that
 * different ones do not meet.
 */
#ifndef HOTSTART_EXEC_WIRE_H
#define HOTSTART_EXEC_WIRE_H

#include <stdint.h>

#define HX_MAGIC 0x74737368u
#define HX_VERSION 3u
#define HX_SOCKET "exec-3.socket"

/* A zygote takes no longer message, so that a longer request would be run cold anyhow. */
#define HX_MESSAGE_MAX (128u * 1024u)
#define HX_FDS_MAX 32
/* Resource limits, in the order of their RLIMIT_ numbers. */
#define HX_LIMITS 16
/* Bytes 9 to 15 of a client's ELF file, which nobody reads else: so a client knows another one in PATH. */
#define HX_MARK "hotstrt"

struct hx_head {
    uint32_t magic;
    uint32_t version;
    uint32_t length; /* of the whole message */
    uint32_t kind;
};

enum hx_request_kind { HX_RUN = 1, HX_STATUS, HX_STOP, HX_SIGNAL, HX_STATUS_JSON, HX_WARM };

struct hx_limit {
    uint64_t soft;
    uint64_t hard;
};

/* HX_WARM is followed by paths of programs, each ended by a NUL: they are to be warm from their next start on. */

/* What the server cannot see from outside is told by the client. Followed by `fd_count` int32 numbers that the
 * descriptors shall have, then strings, each ended by a NUL: working directory, program, arguments, environment. */
struct hx_run {
    struct hx_head head;
    uint32_t argc;
    uint32_t envc;
    uint32_t fd_count;
    uint32_t io_priority;
    uint32_t personality;
    uint32_t securebits;
    uint64_t blocked; /* signals, bit 0 is number 1 */
    uint64_t directory_device; /* the minor number, and 32 bits higher the major one */
    uint64_t directory_inode;
    uint64_t directory_mount; /* 0: the kernel does not tell it */
    struct hx_limit limits[HX_LIMITS];
};

/* It is a stop, and what the job leaves behind is to be ended, too. */
#define HX_ENDS_ALL 1u
/* The system stops nobody by it where the client is: what it stops in the job is to be continued. */
#define HX_STOPS_NOBODY 2u

struct hx_signal {
    struct hx_head head;
    int32_t signal;
    uint32_t flags;
};

/* HX_COLD: nothing was begun, and text tells why. HX_STARTING: the job is about to begin, and must not be run again
 * if the server dies (sent for such jobs only). HX_EXITED, HX_SIGNALED: it has ended. HX_TEXT: an answer to people.
 * HX_STOPPED: it has stopped by this signal, of itself. */
enum hx_reply_kind { HX_COLD = 1, HX_STARTING, HX_EXITED, HX_SIGNALED, HX_TEXT, HX_STOPPED };

/* Followed by text without a NUL. */
struct hx_reply {
    struct hx_head head;
    int32_t value;      /* exit code or signal */
    uint32_t continued; /* HX_STOPPED: the SIGCONTs that the client had passed on until then */
};

#endif
