/* The first process of the machine that tests/aarch64/run boots.
 *
 * Loads the modules of the initial file system in the order of their names, mounts the disk, unpacks the second disk (a tar archive) into
 * it, runs the tests there, prints how they ended, and powers the machine off. A program of its own, since an initial file system with a
 * shell and its tools would have to be made of another distribution's parts; it is linked statically. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TESTS "tar -xf /dev/vdb -C / && exec bash /src/tests/aarch64/guest"

/* The runner reads this line: without it the machine has failed, and with another number than 0 the tests have. */
static void end(int status)
{
    printf("aarch64: the tests ended with %d\n", status);
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
}

static void need(int result, const char *what)
{
    if (result >= 0)
        return;
    printf("aarch64: %s: %s\n", what, strerror(errno));
    end(99);
}

static void load_modules(void)
{
    struct dirent **names;
    int count = scandir("/modules", &names, NULL, alphasort);
    need(count, "/modules");
    for (int i = 0; i < count; i++) {
        char path[512];
        if (names[i]->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/modules/%s", names[i]->d_name);
        int module = open(path, O_RDONLY | O_CLOEXEC);
        need(module, path);
        need((int)syscall(SYS_finit_module, module, "", 0), path);
        close(module);
    }
}

static void mount_system(void)
{
    mkdir("/dev", 0755);
    mkdir("/system", 0755);
    need(mount("dev", "/dev", "devtmpfs", 0, NULL), "/dev");
    need(mount("/dev/vda", "/system", "ext4", 0, NULL), "the system's disk");
    need(chdir("/system"), "/system");
    need(mount(".", "/", NULL, MS_MOVE, NULL), "the system's disk as /");
    need(chroot("."), "the system's disk as /");
    need(chdir("/"), "/");
    need(mount("dev", "/dev", "devtmpfs", 0, NULL), "/dev");
    need(mount("proc", "/proc", "proc", 0, NULL), "/proc");
    need(mount("sys", "/sys", "sysfs", 0, NULL), "/sys");
    mkdir("/dev/pts", 0755);
    mkdir("/dev/shm", 01777);
    need(mount("pts", "/dev/pts", "devpts", 0, "ptmxmode=0666"), "/dev/pts");
    need(mount("shm", "/dev/shm", "tmpfs", 0, "mode=1777"), "/dev/shm");
    need(symlink("/proc/self/fd", "/dev/fd"), "/dev/fd");
}

static int run_tests(void)
{
    char *argv[] = {"bash", "-c", TESTS, NULL};
    char *env[] = {"PATH=/usr/sbin:/usr/bin", "HOME=/root", "LC_ALL=C.UTF-8", NULL};
    int status = 0;
    pid_t tests = fork();
    need(tests, "fork");
    if (tests == 0) {
        setsid();
        execve("/usr/bin/bash", argv, env);
        _exit(98);
    }
    /* Processes that the tests leave behind become children of this one. */
    for (;;) {
        int ended;
        if (wait(&ended) == tests) {
            status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
            return status;
        }
    }
}

int main(void)
{
    load_modules();
    mount_system();
    end(run_tests());
}
