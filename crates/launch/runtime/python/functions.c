/* Which functions of builtin modules get a trap. */
#include <string.h>

#include "python.h"

#if HS_RESETS

/* Whether `list`, words with a space between, has this word. */
int hs_python_is_one_of(const char *name, const char *list)
{
    const size_t length = strlen(name);
    if (!length || strchr(name, ' '))
        return 0;
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return 1;
    return 0;
}

/* The functions of builtin modules that need no trap: what they return or change is the same in each process, is the interpreter's own
 * memory, or comes of a system call that the observer judges. */
static struct listed {
    const char *module, *harmless, *paths;
    int is_done;
} listed[] = {
    {"posix",
     "open close read lseek fspath uname getuid geteuid getgid getegid strerror isatty get_terminal_size cpu_count "
     "sched_getaffinity confstr get_inheritable device_encoding WIFEXITED WEXITSTATUS "
     "WIFSIGNALED WTERMSIG WIFSTOPPED WSTOPSIG WCOREDUMP "
     "_path_normpath _path_splitroot _path_splitroot_ex",
     "stat lstat access readlink listdir scandir _path_exists _path_lexists _path_isfile _path_isdir _path_islink "
     "_path_isjunction",
     0},
    {"time", "", "", 0},
    {"_thread",
     "allocate_lock allocate get_ident _set_sentinel _get_main_thread_ident _make_thread_handle daemon_threads_allowed "
     "_is_main_interpreter _excepthook",
     "", 0},
    {"_signal", "getsignal valid_signals strsignal default_int_handler", "", 0},
    {"sys",
     "intern getfilesystemencoding getfilesystemencodeerrors getdefaultencoding getrecursionlimit setrecursionlimit "
     "exc_info exception audit exit _getframe _getframemodulename is_finalizing getswitchinterval setswitchinterval "
     "displayhook excepthook unraisablehook breakpointhook getdlopenflags setdlopenflags get_asyncgen_hooks set_asyncgen_hooks "
     "get_coroutine_origin_tracking_depth set_coroutine_origin_tracking_depth _clear_type_cache _clear_internal_caches "
     "get_int_max_str_digits set_int_max_str_digits gettrace getprofile is_stack_trampoline_active _is_gil_enabled _is_interned "
     "_is_immortal _clear_type_descriptors _get_cpu_count_config",
     "", 0},
    {"gc", "enable disable collect isenabled get_threshold set_threshold get_debug", "", 0},
    {"faulthandler", "is_enabled", "", 0},
};

static void trap_function(const struct listed *module, struct hs_py_method *method)
{
    if (hs_python_is_one_of(method->name, module->harmless))
        return;
    enum hs_python_kind kind = HS_PY_TOUCHES;
    if (hs_python_is_one_of(method->name, module->paths))
        kind = HS_PY_PATH;
    else if (strcmp(method->name, "register_at_fork") == 0)
        kind = HS_PY_PASSES;
    else if (strcmp(method->name, "seed") == 0)
        kind = HS_PY_SEED;
    else if (!(method->flags & HS_PY_NO_ARGUMENTS))
        kind = HS_PY_TOUCHES;
    else if (strcmp(method->name, "get_native_id") == 0)
        kind = HS_PY_THREAD;
    else if (strcmp(module->module, "time") == 0 && hs_python_is_one_of(method->name, "time time_ns"))
        kind = HS_PY_CLOCK;
    hs_python_trap(method, kind);
}

/* The methods of the generator of `random`, once that is there. The import of `random` ends with HS_PY_PASSES. */
static void trap_generator(void)
{
    static int is_done;
    struct hs_py_type *type = is_done ? NULL : (struct hs_py_type *)hs_python_attribute("_random", "Random");
    hs_py *name, *value;
    if (!type)
        return;
    const struct listed none = {"_random", "", "", 0};
    for (ssize_t at = 0; hs_py_api.PyDict_Next(type->dict, &at, &name, &value);)
        if (value->type == hs_py_api.descriptor)
            trap_function(&none, ((struct hs_py_descriptor *)value)->method);
    hs_py_api.Py_IncRef(&type->base);
    hs_py_request.random = &type->base;
    is_done = 1;
}

/* One function of a module that has others without a trap. */
static const char *trap_alone(const char *module, const char *name, enum hs_python_kind kind)
{
    hs_py *found = hs_python_attribute(module, name);
    if (!found || found->type != hs_py_api.function)
        return name;
    struct hs_py_method *method = ((struct hs_py_function *)found)->method;
    hs_python_trap(method, kind);
    return NULL;
}

static void trap_functions(struct listed *listed, hs_py *module)
{
    hs_py *dict = hs_py_api.PyModule_GetDict(module), *name, *value;
    if (!dict)
        return;
    for (ssize_t at = 0; hs_py_api.PyDict_Next(dict, &at, &name, &value);)
        if (value->type == hs_py_api.function || value->type->parent == hs_py_api.function)
            trap_function(listed, ((struct hs_py_function *)value)->method);
    listed->is_done = 1;
}

/* Lays traps in a builtin module that was made just now: its functions may be called before the next event. */
void hs_python_arm_made(hs_py *module)
{
    hs_py *dict = hs_py_api.PyModule_GetDict(module), *name = dict ? hs_py_api.PyDict_GetItemString(dict, "__name__") : NULL;
    const char *text = name && name->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(name) : NULL;
    for (size_t i = 0; text && i < sizeof listed / sizeof *listed; i++)
        if (!listed[i].is_done && strcmp(listed[i].module, text) == 0)
            trap_functions(&listed[i], module);
    if (!text)
        hs_py_api.PyErr_Clear();
}

/* Lays traps in modules that were imported since. */
void hs_python_arm_late(void)
{
    hs_python_close_lent();
    hs_python_note_keepers();
    hs_python_hide_environment();
    trap_generator();
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        hs_py *module = listed[i].is_done ? NULL : hs_python_module(listed[i].module);
        if (module)
            trap_functions(&listed[i], module);
    }
}

/* NULL, or what is not as it is in the interpreters that are known. */
const char *hs_python_arm_functions(void)
{
    const char *why = trap_alone("builtins", "isinstance", HS_PY_INSTANCE);
    if (!why)
        why = trap_alone("_imp", "create_builtin", HS_PY_REMADE);
    hs_python_arm_late();
    /* The interpreter has imported these itself. */
    for (int i = 0; i < 5; i++)
        if (!why && !listed[i].is_done)
            why = listed[i].module;
    return why;
}

#endif
