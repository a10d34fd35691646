/* Spares a fork the end of objects that nobody can see end.
 *
 * At its end the interpreter looks for cycles among all objects, and frees them: most of the time that a warm start takes. Only
 * finalizers can be noticed. So when a fork of a zygote without any ends, all objects are examined (harmless.c). If none has a finalizer,
 * they are frozen (gc.freeze), and the interpreter frees only what no cycle keeps. Until then the collector is as in a cold start.
 *
 * The fork is about to end, and its exit functions have run, when the interpreter flushes sys.stderr for the first time. A fork that has
 * closed or replaced that stream ends as a cold start does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "python.h"

#if HS_RESETS

typedef hs_py *flush(hs_py *self, hs_py *none);

static int is_spared;
static hs_py *collector;
static int (*is_finalizing)(void);
static flush *next_flush;

static void collect_by(const char *name)
{
    hs_py *done = hs_py_api.PyObject_CallMethod(collector, name, NULL);
    if (!done)
        hs_python_give_up();
    hs_py_api.Py_DecRef(done);
}

/* Whether all modules are still there. They go after sys.meta_path, and streams may be flushed until the very end. */
static int has_modules(void)
{
    const hs_py *finders = hs_py_api.PySys_GetObject("meta_path");
    return finders && finders->type == hs_py_api.list;
}

static hs_py *on_flush(hs_py *self, hs_py *none)
{
    if (is_spared && is_finalizing() && self == hs_py_api.PySys_GetObject("stderr") && has_modules()) {
        hs_py *error[3];
        hs_py_api.PyErr_Fetch(&error[0], &error[1], &error[2]);
        /* Once. */
        is_spared = 0;
        const int is_unseen = hs_python_ends_unseen(collector, 0);
        hs_py_api.PyErr_Clear();
        if (is_unseen)
            collect_by("freeze");
        hs_py_api.PyErr_Restore(error[0], error[1], error[2]);
    }
    return next_flush(self, none);
}

/* Puts `on_flush` in the place of the function by which the interpreter flushes its streams. */
static int set_flush(void)
{
    hs_py *stream = hs_py_api.PySys_GetObject("stderr");
    hs_py *found = stream && stream->type->dict ? hs_py_api.PyDict_GetItemString(stream->type->dict, "flush") : NULL;
    struct hs_py_method *method = found && found->type == hs_py_api.descriptor ? ((struct hs_py_descriptor *)found)->method : NULL;
    if (!method || method->flags != HS_PY_NO_ARGUMENTS)
        return 0;
    next_flush = (flush *)method->function;
    method->function = (hs_py_slot *)on_flush;
    return 1;
}

static int is_end_noticed(void)
{
    is_finalizing = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!is_finalizing)
        is_finalizing = (int (*)(void))dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    return is_finalizing != NULL;
}

/* Lets forks spare themselves their end, if that of the zygote's objects goes unseen. */
void hs_python_spare(void)
{
    hs_py *error[3];
    hs_py_api.PyErr_Fetch(&error[0], &error[1], &error[2]);
    collector = hs_python_module("gc");
    /* Imported, it would be in sys.modules. */
    hs_py *made = collector ? NULL : hs_python_builtin("gc");
    if (made)
        collector = made;
    if (collector && is_end_noticed() && hs_python_ends_unseen(collector, 1))
        is_spared = set_flush();
    if (collector && !made)
        hs_py_api.Py_IncRef(collector);
    hs_py_api.PyErr_Clear();
    hs_py_api.PyErr_Restore(error[0], error[1], error[2]);
}

#endif
