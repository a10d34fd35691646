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
/* Functions of the module `gc`, whatever a script puts in their place: their definitions, which are no objects. */
static const struct hs_py_method *get_debug, *freezes;
static int has_audit;
static int (*is_finalizing)(void);
static flush *next_flush;

static void freeze(void)
{
    hs_py *done = hs_python_call(freezes);
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
        const int is_unseen = !has_audit && hs_python_ends_unseen(get_debug, NULL);
        hs_py_api.PyErr_Clear();
        if (is_unseen)
            freeze();
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

/* An audit hook would see the examination. None was added before the halt, since to add one halts the interpreter. No calling convention
 * of builtin functions has more than four parameters. */
static hs_py *(*next_audit)(void *, void *, void *, void *);

static hs_py *on_audit(void *self, void *arguments, void *count, void *names)
{
    has_audit = 1;
    return next_audit(self, arguments, count, names);
}

static int is_audit_noticed(void)
{
    hs_py *found = hs_python_attribute("sys", "addaudithook");
    if (!found || found->type != hs_py_api.function)
        return 0;
    struct hs_py_method *method = ((struct hs_py_function *)found)->method;
    if (strcmp(method->name, "addaudithook") != 0)
        return 0;
    next_audit = (hs_py * (*)(void *, void *, void *, void *))(void *)method->function;
    method->function = (hs_py_slot *)(void *)on_audit;
    return 1;
}

/* A function of the module `gc` as the interpreter has made it, borrowed; NULL if there is another one. */
static hs_py *function_of(hs_py *module, const char *name)
{
    hs_py *dict = hs_py_api.PyModule_GetDict(module), *found = dict ? hs_py_api.PyDict_GetItemString(dict, name) : NULL;
    const struct hs_py_method *method = found && found->type == hs_py_api.function ? ((struct hs_py_function *)found)->method : NULL;
    return method && strcmp(method->name, name) == 0 ? found : NULL;
}

/* Lets forks spare themselves their end, if that of the zygote's objects goes unseen. */
void hs_python_spare(void)
{
    hs_py *error[3];
    hs_py_api.PyErr_Fetch(&error[0], &error[1], &error[2]);
    hs_py *module = hs_python_module("gc");
    /* Imported, it would be in sys.modules. */
    hs_py *made = module ? NULL : hs_python_builtin("gc");
    if (made)
        module = made;
    hs_py *debugs = module ? function_of(module, "get_debug") : NULL, *stops = module ? function_of(module, "freeze") : NULL;
    hs_py *lists = module ? function_of(module, "get_objects") : NULL;
    if (debugs && stops && lists) {
        get_debug = ((struct hs_py_function *)debugs)->method;
        freezes = ((struct hs_py_function *)stops)->method;
        if (is_end_noticed() && is_audit_noticed() && hs_python_ends_unseen(get_debug, lists))
            is_spared = set_flush();
    }
    hs_py_api.PyErr_Clear();
    hs_python_forget(&made);
    hs_py_api.PyErr_Restore(error[0], error[1], error[2]);
}

#endif
