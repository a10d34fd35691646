/* What every act is made of. An act changes something, or prints what it sees, or both, and prints the same in every cold
 * process: no addresses, times, process numbers or random values, only predicates of them.
 *
 * Acts register themselves in a section of the program, in link order; main.c runs those that its arguments name. */
#ifndef ACT_H
#define ACT_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Changes state; shows state; does both; ends the process; costs much time, so it is drawn seldom; runs before main, or shows
 * what that saw. */
enum role { DISTURBS, OBSERVES, BOTH, ENDS, RARE, BEFORE };

struct act {
    const char *name;
    const char *family;
    void (*run)(void);
    enum role role;
};

#define ACT(what, act_name) \
    static void act_##act_name(void); \
    static const struct act entry_##act_name = {#act_name, FAMILY, act_##act_name, what}; \
    static const struct act *const listed_##act_name __attribute__((used, section("acts"))) = &entry_##act_name; \
    static void act_##act_name(void)

#define DISTURB(name) ACT(DISTURBS, name)
#define OBSERVE(name) ACT(OBSERVES, name)
#define MIXED(name) ACT(BOTH, name)
#define END(name) ACT(ENDS, name)
#define SELDOM(name) ACT(RARE, name)

/* Prints one line, headed by the running act's name, past stdio: acts disturb that. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether something was left far below main's frame when it began. */
extern char stack_is_used;
/* With what main began, on x86-64: rbx, rbp, r12 to r15, rcx, r8 to r11; arithmetic flags as `lahf` and `seto` have them. */
enum { REGISTERS_AT_MAIN = 11 };
extern uintptr_t registers_at_main[REGISTERS_AT_MAIN];
extern unsigned short flags_at_main;

/* The same for values that are computed from left to right, which arguments of a function need not be. Each is a %ld. */
#define SAY2(format, a, b) \
    do { \
        const long a_ = (long)(a), b_ = (long)(b); \
        say(format, a_, b_); \
    } while (0)
#define SAY3(format, a, b, c) \
    do { \
        const long a_ = (long)(a), b_ = (long)(b), c_ = (long)(c); \
        say(format, a_, b_, c_); \
    } while (0)
#define SAY4(format, a, b, c, d) \
    do { \
        const long a_ = (long)(a), b_ = (long)(b), c_ = (long)(c), d_ = (long)(d); \
        say(format, a_, b_, c_, d_); \
    } while (0)

/* A call's result in words: its value, or the error's number. */
void say_result(const char *what, long result);

/* A system call by an instruction of the program's own; -errno if it fails. */
long raw(long number, long a, long b, long c, long d, long e, long f);
#define RAW(number, ...) RAW_(number, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define RAW_(number, a, b, c, d, e, f, ...) \
    raw(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* Touches a byte; 0, or the si_code of the fault, plus 100 for a bus error. */
int probe_read(const volatile void *at);
int probe_write(volatile void *at);

/* Calls `function` with faults caught, as the probes do. */
int probe_call(void (*function)(void));

/* The first bytes of a file, NUL-terminated; -errno if it cannot be read. */
int slurp(const char *path, char *into, int room);
/* Writes `text` to a file that exists, or is made; 0 or -errno. */
int spill(const char *path, const char *text);

/* Whether no earlier run of the sequence has noted the same value under this name. */
int is_new(const char *file, unsigned long value);

/* Says the lines of /proc/self/status that begin with one of the words. */
void say_status(const char *const *words);

/* Reaps one child and says how it ended. */
void say_child(pid_t child);

/* Whether any byte is not zero. */
int any_set(const volatile void *from, size_t size);

/* The name by which this run was called, and its own path; for acts that execute. */
extern int own_argc;
extern char **own_argv;
extern const char *own_path;
extern const char *current_act;

#define CHECK_SIZE(array) (sizeof(array) / sizeof *(array))

#endif
