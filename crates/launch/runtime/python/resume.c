/* Gives a fork its request, in the objects that have existed since the interpreter began, and renews what a fresh process has of its own.
 *
 * Each step is what the interpreter does at its start, by the same functions, so that it decodes and opens in the same way.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "python.h"

#if HS_RESETS

/* The interpreter sets this variable itself where the locale is "C" (PEP 538). */
#define COERCED "LC_CTYPE"

static char *environment[HS_ROOM];

/* A fork that cannot be given its request must not go on: the job of a process that is killed is run again, cold. */
__attribute__((noreturn)) void hs_python_give_up(void)
{
    for (;;)
        kill(getpid(), SIGKILL);
}

static hs_py *sure(hs_py *object)
{
    if (!object)
        hs_python_give_up();
    return object;
}

static void done(hs_py *object)
{
    hs_py_api.Py_DecRef(sure(object));
}

/* The object that the interpreter makes of an argument. */
static hs_py *argument(const char *text)
{
    wchar_t *wide = hs_py_api.Py_DecodeLocale(text, NULL);
    if (!wide)
        hs_python_give_up();
    hs_py *made = sure(hs_py_api.PyUnicode_FromWideChar(wide, -1));
    hs_py_api.PyMem_RawFree(wide);
    return made;
}

/* Gives a list these arguments behind those that it has. It gets the room that a list made at once has. */
static void fill_list(hs_py *list, const char *text, uint32_t count)
{
    struct hs_py_list *old = (struct hs_py_list *)list;
    struct hs_py_list *made = (struct hs_py_list *)sure(hs_py_api.PyList_New((ssize_t)count));
    for (ssize_t i = 0; i < (ssize_t)count; i++, text += strlen(text) + 1) {
        if (i < old->size)
            hs_py_api.Py_IncRef(old->items[i]);
        made->items[i] = i < old->size ? old->items[i] : argument(text);
    }
    const struct hs_py_list kept = *old;
    old->size = made->size, old->items = made->items, old->allocated = made->allocated;
    made->size = kept.size, made->items = kept.items, made->allocated = kept.allocated;
    hs_py_api.Py_DecRef(&made->base);
}

/* The zygote was started with the interpreter, its options and the script. sys.argv begins with the script. */
static void fill_arguments(const struct hs_start *start, const struct hs_job *job)
{
    const uint32_t count = job->head->argc, before = (uint32_t)start->argc - 1;
    struct hs_py_list *list = (struct hs_py_list *)hs_py_request.arguments;
    if (list->size != 1 || before < 1 || count <= before)
        hs_python_give_up();
    const char *script = job->strings;
    for (uint32_t i = 0; i < before; i++)
        script += strlen(script) + 1;
    fill_list(hs_py_request.arguments, script, count - before);
    if (hs_py_request.original)
        fill_list(hs_py_request.original, job->strings, count);
    hs_python_fill_configuration(job->strings, count, before);
}

/* Gives the process its environment, and then posix.environ, which the interpreter makes of that. */
static void fill_environment(const struct hs_job *job)
{
    extern char **environ;
    const char *coerced = getenv(COERCED);
    uint32_t count = 0;
    for (char *at = job->environment; at < job->end && count < HS_ROOM - 1; at += strlen(at) + 1)
        environment[count++] = at;
    environment[count] = NULL;
    environ = environment;
    /* All variables of the locale are in the key: another value than the request's is the interpreter's own. */
    const char *own = getenv(COERCED);
    if (coerced && (!own || strcmp(own, coerced) != 0) && setenv(COERCED, coerced, 1) != 0)
        hs_python_give_up();
    hs_py_api.PyDict_Clear(hs_py_request.environment);
    for (char **at = environ; *at; at++) {
        const char *sign = strchr(*at, '=');
        if (!sign)
            continue;
        hs_py *name = sure(hs_py_api.PyBytes_FromStringAndSize(*at, sign - *at));
        hs_py *value = sure(hs_py_api.PyBytes_FromStringAndSize(sign + 1, (ssize_t)strlen(sign + 1)));
        sure(hs_py_api.PyDict_SetDefault(hs_py_request.environment, name, value));
        done(name);
        done(value);
    }
}

static void set(hs_py *of, const char *name, hs_py *value)
{
    if (hs_py_api.PyObject_SetAttrString(of, name, sure(value)) != 0)
        hs_python_give_up();
    done(value);
}

/* Opens a standard descriptor as the interpreter does at its start, but into the same text object. */
static void open_stream(int fd)
{
    static const char *const names[] = {"<stdin>", "<stdout>", "<stderr>"};
    hs_py *text = hs_py_request.streams[fd];
    hs_py *through = sure(hs_py_api.PyObject_GetAttrString(text, "write_through"));
    /* With PYTHONUNBUFFERED, output has no buffer. */
    const int unbuffered = fd != 0 && hs_py_api.PyLong_AsLong(through) != 0;
    hs_py *no = sure(hs_py_api.PyBool_FromLong(0)), *is_by_line = sure(hs_py_api.PyBool_FromLong(fd == 2 && !unbuffered));
    hs_py *buffer = sure(hs_py_api.PyObject_CallFunction(hs_py_request.open, "isiOOOO", fd, fd ? "wb" : "rb", unbuffered ? 0 : -1,
                                                         hs_py_api.none, hs_py_api.none, hs_py_api.none, no));
    hs_py *raw = unbuffered ? buffer : sure(hs_py_api.PyObject_GetAttrString(buffer, "raw"));
    if (unbuffered)
        hs_py_api.Py_IncRef(raw);
    set(raw, "name", hs_py_api.PyUnicode_FromString(names[fd]));
    hs_py *encoding = sure(hs_py_api.PyObject_GetAttrString(text, "encoding"));
    hs_py *errors = sure(hs_py_api.PyObject_GetAttrString(text, "errors"));
    done(hs_py_api.PyObject_CallMethod(text, "__init__", "OOOsOO", buffer, encoding, errors, "\n",
                                       is_by_line, through));
    done(no);
    done(is_by_line);
    set(text, "mode", hs_py_api.PyUnicode_FromString(fd ? "w" : "r"));
    done(through);
    done(raw);
    done(encoding);
    done(errors);
    done(buffer);
}

/* What modules of the standard library have taken from the process when they were imported. */
static void renew(void)
{
    if (hs_py_request.generator && hs_py_request.random)
        done(hs_py_api.PyObject_CallMethod(hs_py_request.random, "seed", "O", hs_py_request.generator));
    if (hs_py_request.thread)
        set(hs_py_request.thread, "_native_id", hs_py_api.PyLong_FromLong(syscall(SYS_gettid)));
    if (hs_py_request.logging)
        set(hs_py_request.logging, "_startTime", hs_python_time());
}

void hs_python_resume(const struct hs_start *start, const struct hs_job *job)
{
    /* A collection now would finalize what a fresh process finalizes later. */
    const int collects = hs_py_api.collect && hs_py_api.collect_never();
    /* A cold process outlives its runner's guard, too, and could see this. */
    prctl(PR_SET_PDEATHSIG, 0);
    fill_environment(job);
    fill_arguments(start, job);
    for (int fd = 0; fd < 3; fd++)
        open_stream(fd);
    renew();
    for (size_t i = 0; i < sizeof hs_py_request.all / sizeof *hs_py_request.all; i++)
        hs_python_forget(&hs_py_request.all[i]);
    if (collects)
        hs_py_api.collect();
}

#endif
