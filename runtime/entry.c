/* Takes over main.
 *
 * Since glibc 2.34 the executable's own constructors run inside __libc_start_main, so the place to stop is main
 * itself: libc is handed `halt` instead. In a copy `halt` jumps into the real main, with libc's frame right above it,
 * so that returning from main exits, and a backtrace reads as in a process that was never stopped.
 *
 * Loaded into any process that is not a template (a constructor's child that inherits LD_PRELOAD), it does nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime.h"

typedef int start_main(hs_main *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

static hs_main *real_main, *first_main;
static struct hs_call call;

static __attribute__((noinline)) void stop(int argc, char **argv, char **envp)
{
    struct hs_start start = {argc, argv, envp};
    int saved = errno;
    hs_serve(&start, &call);
    errno = saved;
}

/* Kept free of locals, so that the last call is a jump and leaves no frame. */
static int halt(int argc, char **argv, char **envp)
{
    stop(argc, argv, envp);
    return real_main(call.argc, call.argv, call.envp);
}

static int is_template(void)
{
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(HS_CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static __attribute__((noinline)) start_main *prepare(hs_main *main)
{
    int saved = errno;
    real_main = main;
    first_main = is_template() ? halt : main;
    errno = saved;
    return (start_main *)dlsym(RTLD_NEXT, "__libc_start_main");
}

HS_EXPORT int __libc_start_main(hs_main *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                                void (*rtld_fini)(void), void *stack_end)
{
    start_main *next = prepare(main);
    return next(first_main, argc, argv, init, fini, rtld_fini, stack_end);
}
