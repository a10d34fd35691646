/* Lets the interpreter run the script, and halts it where it first touches the request or does what is not known to be harmless.
 *
 * An audit hook, set before the interpreter begins, sees the import of `site`, by which everything that tells of the request exists:
 * traps are laid then. Later it sees what the interpreter is about to do; an event that is not on the list halts it before that.
 * Here and in traps.c, halting means to serve requests and to return in a fork.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "python.h"

int hs_python_is_observed;

#if HS_RESETS

/* The watch is laid before `site`, and ends at the point. */
static enum { BEFORE, WATCHING, PAST } state;
static struct hs_start start;
/* Seeds that the module `random` may still draw; -1 before it is imported. */
static int generators = -1;

/* Tells an observer, if there is one. */
void hs_python_tell(enum hs_python_mark mark, const char *text)
{
    HS_SYS(SYS_close, HS_MARK_PYTHON, mark, text, text ? strlen(text) : 0);
}

/* Ends a process that cannot become a zygote. The runner finds the reason, and the line of Python, by its observation. */
__attribute__((noreturn)) void hs_python_refuse(const char *why)
{
    hs_python_tell(HS_PYTHON_REFUSES, state == BEFORE ? why : hs_python_line(why));
    _exit(127);
}

/* Events before which nothing has to be halted: they change only the interpreter's own memory, or the observer judges the system calls
 * that follow. */
static const char *const harmless[] = {
    "import",         "os.listdir",         "os.scandir",          "marshal.loads",          "marshal.load",
    "exec",               "compile",             "sys._getframe",          "sys._getframemodulename",
    "object.__getattr__", "object.__setattr__", "object.__delattr__", "code.__new__",        "builtins.id",
    "function.__new__",   "cpython.run_file",   "cpython.PyConfig_Set",
};

/* Whether an `open` reads a file with an absolute path that is none of the kernel's. */
static int reads_absolute(hs_py *arguments)
{
    if (hs_py_api.PyTuple_Size(arguments) < 3)
        return 0;
    hs_py *path = hs_py_api.PyTuple_GetItem(arguments, 0), *flags = hs_py_api.PyTuple_GetItem(arguments, 2);
    const char *text = path->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(path) : NULL;
    if (!text) {
        hs_py_api.PyErr_Clear();
        return 0;
    }
    const long wanted = hs_py_api.PyLong_AsLong(flags);
    const int is_made_up = strncmp(text, "/proc", 5) == 0 || strncmp(text, "/sys", 4) == 0 || strncmp(text, "/dev", 4) == 0;
    return text[0] == '/' && !is_made_up && (wanted & (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND)) == O_RDONLY;
}

static int is_harmless(const char *event, hs_py *arguments)
{
    if (strcmp(event, "open") == 0)
        return reads_absolute(arguments);
    /* ctypes opens the program itself when it is imported. */
    if (strcmp(event, "ctypes.dlopen") == 0)
        return hs_py_api.PyTuple_Size(arguments) == 1 && hs_py_api.PyTuple_GetItem(arguments, 0) == hs_py_api.none;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strcmp(event, harmless[i]) == 0)
            return 1;
    return 0;
}

static int is_import_of(const char *module, const char *event, hs_py *arguments)
{
    if (strcmp(event, "import") != 0 || hs_py_api.PyTuple_Size(arguments) < 1)
        return 0;
    hs_py *name = hs_py_api.PyTuple_GetItem(arguments, 0);
    const char *text = name->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(name) : NULL;
    return text && strcmp(text, module) == 0;
}

static int hook(const char *event, hs_py *arguments, void *own)
{
    (void)own;
    if (state == PAST)
        return 0;
    if (state == WATCHING) {
        /* It has been told its arguments, and no event before that in version 3.13. */
        if (!hs_python_is_alone())
            hs_python_refuse("another interpreter is made");
        hs_python_arm_late();
        if (generators < 0 && is_import_of("random", event, arguments))
            generators = hs_py_api.minor >= 11 ? 1 : 2;
        if (!is_harmless(event, arguments))
            hs_python_touched(event);
        return 0;
    }
    if (is_import_of("site", event, arguments) || strcmp(event, "cpython.run_file") == 0) {
        const char *why = hs_python_arm();
        if (why)
            hs_python_refuse(why);
        hs_python_note_locale();
        hs_python_note_filters();
        state = WATCHING;
        hs_python_tell(HS_PYTHON_WATCHES, NULL);
    }
    return 0;
}

/* Random bytes are asked for, perhaps without the interpreter's lock. The observer lets the seed of the module `random` pass, of which
 * interpreters before 3.11 draw two. */
void hs_python_seeds(void)
{
    if (generators > 0) {
        generators--;
        hs_python_tell(HS_PYTHON_RENEWS, NULL);
    }
}

/* Whether the module `random` has drawn a seed. */
int hs_python_draws(void)
{
    return generators >= 0 && generators < (hs_py_api.minor >= 11 ? 1 : 2);
}

/* The request is about to be looked at. Returns in a fork. */
void hs_python_touched(const char *what)
{
    if (state != WATCHING)
        return;
    state = PAST;
    hs_py *error[3];
    hs_py_api.PyErr_Fetch(&error[0], &error[1], &error[2]);
    hs_python_close_lent();
    hs_python_disarm();
    hs_python_tell(HS_PYTHON_CHECKS, hs_python_line(what));
    hs_python_note_keepers();
    const char *why = hs_python_refuses(&start);
    if (why)
        hs_python_refuse(why);
    const uint64_t place = hs_python_place(what);
    if (!hs_python_is_observed)
        hs_python_spare();
    const struct hs_job *job = hs_serve_python(&start, place);
    hs_python_resume(&start, job);
    hs_py_api.PyErr_Restore(error[0], error[1], error[2]);
}

/* Called in place of stopping at main. */
void hs_python_begin(int argc, char **argv, char **envp)
{
    start = (struct hs_start){argc, argv, envp};
    hs_python_note_libraries();
    hs_asked_leave_to_python();
    const char *why = hs_python_find();
    if (!why && hs_py_api.PySys_AddAuditHook(hook, NULL) != 0)
        why = "PySys_AddAuditHook";
    if (why)
        hs_python_refuse(why);
}

/* Whether the runner has asked for a stop in Python, and not at main. */
int hs_python_is_wanted(void)
{
    struct hs_mode mode;
    /* By an instruction of its own: an observer allows it to no other. */
    const long got = HS_SYS(SYS_recvfrom, HS_CONTROL_FD, &mode, sizeof mode, MSG_DONTWAIT, NULL, NULL);
    hs_python_is_observed = got == (long)sizeof mode && mode.observed;
    return got == (long)sizeof mode && mode.version == HS_VERSION && mode.python;
}

#else

void hs_python_seeds(void)
{
}

int hs_python_is_wanted(void)
{
    return 0;
}

void hs_python_begin(int argc, char **argv, char **envp)
{
    (void)argc, (void)argv, (void)envp;
}

#endif
