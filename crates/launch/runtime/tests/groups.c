/* A tool that asks for its process group, or signals it. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char byte;
    if (argc < 2)
        return 99;
    if (strcmp(argv[1], "nothing") == 0)
        return 0;
    if (strcmp(argv[1], "leads") == 0)
        return getpgrp() == getpid() || getpgrp() == getppid();
    if (strcmp(argv[1], "session") == 0)
        return setsid() != getpid();
    /* Unseen by the runtime. */
    if (strcmp(argv[1], "raw-session") == 0)
        return syscall(SYS_setsid) != getpid();
    if (strcmp(argv[1], "group") == 0) {
        int moved = setpgid(0, 0) != 0;
        for (int i = 0; i < 10000; i++)
            moved |= getpgrp() != getpid();
        return moved;
    }
    if (strcmp(argv[1], "kill") == 0)
        return kill(0, argc > 2 ? atoi(argv[2]) : SIGTERM) != 0;
    /* Says that it runs, and waits for the end of its input. */
    if (strcmp(argv[1], "wait") == 0)
        return write(1, "+", 1) != 1 || read(0, &byte, 1) != 0;
    return 99;
}
