/* What a program does before main, each piece in an #ifdef of its own, and what its main then says about it. Such a program
 * may well be started cold; it has to be right. */
#include "act.h"
#include <time.h>

#undef FAMILY
#define FAMILY "before"

#define CONSTRUCT(piece) __attribute__((constructor)) static void piece(int argc, char **argv, char **envp)
#define TELL(act_name) ACT(BEFORE, act_name)
#define UNUSED (void)argc, (void)argv, (void)envp

#ifdef WITH_before_pid
static pid_t first_pid;
CONSTRUCT(ask_pid)
{
    UNUSED;
    first_pid = getpid();
}
TELL(before_pid)
{
    say("same %d", first_pid == getpid());
}
#endif
