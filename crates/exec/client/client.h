/* What the client's files share.
 *
 * main.c reads the command line, find.c looks for the program, describe.c puts the request together, connect.c finds
 * the server and starts one if there is none, job.c sees a job through, stop.c stops, text.c has what libc would offer. Whatever is
 * in doubt ends in `run_cold`: the client becomes the command. Nothing is allocated.
 */
#ifndef HOTSTART_EXEC_CLIENT_H
#define HOTSTART_EXEC_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "wire.h"

#define PATH_ROOM 4096

struct command {
    const char *program; /* file to execute */
    char **argv;         /* NULL-terminated */
    char **envp;
    const char *hotstart; /* the big binary, where the command line names it */
    const char *after;    /* a wrapper that has called this, which is not to be found again */
    const char *server;   /* the server's directory, where one of its jobs starts this */
    int explain;          /* say why a command is run cold */
    int ends_all;         /* with a stop, what the job leaves behind is to be ended, too */
    uint64_t mask;        /* signals that were blocked at the start */
    uint64_t taken;       /* signals that came and were taken before anything was begun */
};

/* text.c */
size_t text_length(const char *text);
int text_equal(const char *a, const char *b);
int text_begins(const char *text, const char *with);
const char *text_last_part(const char *path);
const char *text_variable(char **envp, const char *name);
char *text_append(char *at, char *end, const char *text);
char *text_append_number(char *at, char *end, unsigned long number);
void say(const char *const *parts);
const char *text_error(long error);

/* find.c: the program of this name; the error number if there is none. */
struct found {
    char path[PATH_ROOM];
    int may_be_wrapper; /* which looks for the next program of its name */
};
long find_program(const char *name, const struct command *command, int as_itself, struct found *found);
void take_after(struct command *command, int as_itself);
void give_after(struct command *command);

/* main.c: never returns. `why` is shown on request. */
__attribute__((noreturn)) void run_cold(struct command *command, const char *why);

/* describe.c: the request as parts to send, and the descriptors that belong to it; NULL, or why it cannot be sent. */
#define PARTS 9
struct message {
    struct hx_run run;
    int32_t targets[HX_FDS_MAX];
    struct iovec parts[PARTS];
    char directory[PATH_ROOM];
};
const char *describe(struct message *message, const struct command *command);

/* connect.c: a connection; -1 where there is none, and why. */
struct server {
    int socket;
    int pid;
    const char *why;
    char directory[108];
};
void connect_server(struct server *server, struct command *command);
long await_end_of(const struct server *server);

/* stop.c: stops this process by a signal, if the system does, until it is continued; whether the system would not by SIGTSTP. */
void stop_by(int signal);
int stops_nobody(void);

/* job.c: sends the request and sees the job through. */
__attribute__((noreturn)) void die_of(int signal);
__attribute__((noreturn)) void run_warm(struct server *server, struct message *message, struct command *command);

#endif
