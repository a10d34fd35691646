/* Notices that Python code touches what tells of the request, or calls a builtin function that is not known to be harmless.
 *
 * sys.argv, the standard streams and os.environ get a copy of their type, in which each slot is a trap; the objects stay where they are.
 * The definition of each function of a builtin module that is not listed here gets a trap in the place of its code. A trap halts the
 * interpreter before anything has happened, and then calls what it stands for. Once it has halted, everything is as it was.
 *
 * The copied types are registered nowhere: no subclass is seen, and the collector does not know them. Their version is one that no type
 * has, so that specialized bytecode does not take them for the types that they copy.
 *
 * C code may pass by the slots. So the items of the lists lie where nothing can be read, and the copied types where nothing can be
 * written: who reads the one, or asks for the type of an object, ends the process, which is cold then.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "python.h"

#if HS_RESETS

#define TRAPS 1024
#define STUB_BYTES 16
#define TYPE_BYTES 2048
/* No interpreter counts so far. */
#define VERSION_TAG 0xfffffff0u

enum kind {
    TOUCHES, /* always */
    METHOD,  /* an attribute of a list: always, but only a method is known */
    ITEM,    /* an item of a list, unless it is the script's name */
    VARIABLE, /* never: the name of the variable goes into the key */
    STREAM,  /* an attribute of a stream, unless it is the same for each request */
    PATH,    /* a file's path, unless it is absolute */
    THREAD,  /* the number of the thread, unless `threading` asks for its main thread */
    SEED,    /* the generator of `random`, unless that is imported now */
    PASSES,  /* never: it ends the import of a module that has taken a value of the process */
    CLOCK,   /* the time, unless `logging` asks when it was started */
};

static struct trap {
    hs_py_slot *original;
    hs_py_slot **place; /* where the stub is put, if that is to be undone */
    const char *what;
    enum kind kind;
    int flags;
} traps[TRAPS];
static int trap_count, is_armed;

struct copy {
    uintptr_t collector[2]; /* the collector looks there whether the type is its own; it is not */
    union {
        struct hs_py_type type;
        char bytes[TYPE_BYTES];
    };
} __attribute__((aligned(16)));
/* Whole pages. */
static union {
    struct copy of[3];
    char bytes[2 * 4096];
} copies __attribute__((aligned(4096)));
_Static_assert(sizeof copies == 2 * 4096, "three copies fit");
static char hidden[4096] __attribute__((aligned(4096)));
static hs_py **items[2];
static struct hs_py_type *stream_type;
static hs_py_slot *tables[2][HS_PY_NUMBER_SLOTS + HS_PY_SEQUENCE_SLOTS + HS_PY_MAPPING_SLOTS];

/* One stub for each trap, which says which one it is and passes all arguments on. */
__asm__(".pushsection .text\n\t.balign 16\nhs_python_stubs:\n\t.rept 1024\n\t.balign 16\n"
        "1:\tlea 1b(%rip), %rax\n\tjmp hs_python_enter\n\t.endr\n\t.balign 16\n"
        "hs_python_enter:\n\tpush %rdi\n\tpush %rsi\n\tpush %rdx\n\tpush %rcx\n\tpush %r8\n\tpush %r9\n\tsub $8, %rsp\n\t"
        "mov %rax, %rdi\n\tlea 8(%rsp), %rsi\n\tcall hs_python_called\n\tadd $8, %rsp\n\t"
        "pop %r9\n\tpop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n\tjmp *%rax\n\t.popsection");
extern char hs_python_stubs[] HS_HIDDEN;

/* The arguments of a trapped call, as the stub has pushed them. */
struct arguments {
    uintptr_t r9, r8, rcx, rdx, rsi, rdi;
};

static int is_one_of(const char *name, const char *list)
{
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return 1;
    return 0;
}

static int is_first(const struct arguments *given)
{
    hs_py *key = (hs_py *)given->rsi;
    return (hs_py *)given->rdi == hs_py_request.arguments && key->type == hs_py_api.number && hs_py_api.PyLong_AsLong(key) == 0;
}

/* The script's name, in place of the list's own function, which could not read it. */
static hs_py *first(hs_py *list, hs_py *key)
{
    (void)list, (void)key;
    hs_py_api.Py_IncRef(items[0][0]);
    return items[0][0];
}

/* Whether C code may ask for this attribute because it has not found the type that it knows, such as pickle. */
static int is_method(const struct arguments *given)
{
    hs_py *name = (hs_py *)given->rsi;
    const char *text = name->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(name) : NULL;
    return text && is_one_of(text, "append extend index copy count insert pop remove reverse sort clear");
}

/* Records the name of a variable; 0 if it is not one. */
static int is_variable(const struct arguments *given)
{
    const struct hs_py_bytes *key = (const struct hs_py_bytes *)given->rsi;
    if (key->base.type != hs_py_api.bytes || strlen(key->text) != (size_t)key->size)
        return 0;
    hs_audit_record(key->text);
    return 1;
}

/* Whether an attribute of a stream is the same for all requests that a zygote serves: none of them has a terminal. */
static int is_constant(const struct arguments *given)
{
    hs_py *name = (hs_py *)given->rsi;
    const char *text = name->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(name) : NULL;
    return text && is_one_of(text, "isatty fileno encoding errors closed name mode line_buffering");
}

/* Whether the object stands for an absolute path: a string, or one of pathlib's, which makes and keeps its string when it is asked. */
static int is_absolute_path(hs_py *path)
{
    if (!path)
        return 0;
    hs_py *string = NULL;
    if (path->type != hs_py_api.text && strcmp(path->type->name, "PosixPath") == 0)
        string = hs_py_api.PyObject_CallMethod(path, "__str__", NULL);
    hs_py *of = string ? string : path;
    const char *text = of->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(of) : NULL;
    const int is_it = text && text[0] == '/';
    if (!text)
        hs_py_api.PyErr_Clear();
    if (string)
        hs_py_api.Py_DecRef(string);
    return is_it;
}

static int is_absolute(const struct trap *trap, const struct arguments *given)
{
    hs_py *path = NULL;
    if (trap->flags & HS_PY_FASTCALL && given->rdx >= 1)
        path = *(hs_py **)given->rsi;
    else if (trap->flags & HS_PY_O)
        path = (hs_py *)given->rsi;
    return is_absolute_path(path);
}

/* Whether `threading` is imported and asks for its main thread, whose number each fork renews. */
static int is_main_thread(void)
{
    return hs_python_module("threading") && !hs_python_attribute("threading", "_main_thread");
}

/* Whether the body of the module `logging` asks, whose answer each fork renews. */
static int is_of_logging(const char *what)
{
    if (hs_py_request.clock)
        return 0;
    hs_py *frame = hs_py_api.PyEval_GetFrame();
    hs_py *code = frame ? hs_py_api.PyFrame_GetCode(frame) : NULL;
    hs_py *file = code ? hs_py_api.PyObject_GetAttrString(code, "co_filename") : NULL;
    hs_py *name = code ? hs_py_api.PyObject_GetAttrString(code, "co_name") : NULL;
    hs_py *os = hs_python_attribute("os", "__file__");
    const char *library = os ? hs_py_api.PyUnicode_AsUTF8(os) : NULL, *path = file ? hs_py_api.PyUnicode_AsUTF8(file) : NULL;
    const char *slash = library ? strrchr(library, '/') : NULL;
    const size_t length = slash ? (size_t)(slash - library) : 0;
    const int is_it = path && length && strncmp(path, library, length) == 0 &&
                      strcmp(path + length, "/logging/__init__.py") == 0 && name &&
                      strcmp(hs_py_api.PyUnicode_AsUTF8(name), "<module>") == 0;
    hs_py *own[] = {name, file, code};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i])
            hs_py_api.Py_DecRef(own[i]);
    if (is_it)
        hs_py_request.clock = what;
    return is_it;
}

/* A value that each fork renews is lent. The observer lets the next such call pass. */
static hs_py_slot *renewed(const struct trap *trap, hs_py_slot *lend)
{
    hs_python_tell(HS_PYTHON_RENEWS, NULL);
    hs_python_lent(trap->original, trap->kind == CLOCK);
    return lend;
}

static int passes(const struct trap *trap, const struct arguments *given)
{
    switch (trap->kind) {
    case ITEM: return 0;
    case METHOD:
        if (!is_method(given))
            hs_python_refuse("an attribute of sys.argv");
        return 0;
    case VARIABLE: return is_variable(given);
    case STREAM: return is_constant(given);
    case PATH: return is_absolute(trap, given);
    case SEED: return !hs_python_attribute("random", "_inst");
    case PASSES: hs_python_arm_late(); return 1;
    case THREAD:
    case CLOCK:
    case TOUCHES: break;
    }
    return 0;
}

/* What a trapped call is to go on with. */
__attribute__((used)) static hs_py_slot *hs_python_called(const char *stub, const struct arguments *given)
{
    const struct trap *trap = &traps[(stub - hs_python_stubs) / STUB_BYTES];
    if (!is_armed)
        return trap->original;
    hs_python_close_lent();
    if (trap->kind == THREAD && is_main_thread())
        return renewed(trap, (hs_py_slot *)hs_python_lend_number);
    if (trap->kind == CLOCK && is_of_logging(trap->what))
        return renewed(trap, (hs_py_slot *)hs_python_lend_time);
    if (trap->kind == ITEM && is_first(given))
        return (hs_py_slot *)first;
    if (!passes(trap, given))
        hs_python_touched(trap->what);
    return trap->original;
}

static hs_py_slot *trap(hs_py_slot *original, hs_py_slot **place, enum kind kind, const char *what, int flags)
{
    if (trap_count == TRAPS)
        abort();
    traps[trap_count] = (struct trap){original, place, what, kind, flags};
    return (hs_py_slot *)(uintptr_t)(hs_python_stubs + STUB_BYTES * trap_count++);
}

/* Copies a table of slots into `to`, each slot a trap. */
static hs_py_slot **trap_table(hs_py_slot **from, hs_py_slot **to, size_t count, const char *what)
{
    for (size_t i = 0; from && i < count; i++)
        to[i] = from[i] ? trap(from[i], NULL, TOUCHES, what, 0) : NULL;
    return from ? to : NULL;
}

static void trap_slot(hs_py_slot **slot, enum kind kind, const char *what)
{
    if (*slot)
        *slot = trap(*slot, NULL, kind, what, 0);
}

static void set_kind(hs_py_slot *stub, enum kind kind)
{
    traps[((char *)(uintptr_t)stub - hs_python_stubs) / STUB_BYTES].kind = kind;
}

static struct hs_py_type *copy_type(int index, const struct hs_py_type *type)
{
    const size_t size = type->flags & HS_PY_HEAP_TYPE ? hs_py_api.heap_type_size : hs_py_api.type_size;
    struct copy *copy = &copies.of[index];
    if (size > sizeof copy->bytes)
        return NULL;
    memcpy(copy->bytes, type, size);
    /* Not immortal: to refer to it is to write. */
    copy->type.base.references = 1 << 20;
    copy->type.version_tag = VERSION_TAG;
    copy->type.flags |= HS_PY_VALID_VERSION;
    return &copy->type;
}

/* The copy of `list` or `dict`. */
static struct hs_py_type *trapped_container(int index, const struct hs_py_type *type, const char *what)
{
    struct hs_py_type *copy = copy_type(index, type);
    hs_py_slot **table = tables[index];
    if (!copy)
        return NULL;
    copy->as_number = trap_table(copy->as_number, table, HS_PY_NUMBER_SLOTS, what);
    copy->as_sequence = trap_table(copy->as_sequence, table + HS_PY_NUMBER_SLOTS, HS_PY_SEQUENCE_SLOTS, what);
    table += HS_PY_NUMBER_SLOTS + HS_PY_SEQUENCE_SLOTS;
    copy->as_mapping = trap_table(copy->as_mapping, table, HS_PY_MAPPING_SLOTS, what);
    hs_py_slot **slots[] = {&copy->repr, &copy->getattro, &copy->setattro, &copy->richcompare, &copy->iter, &copy->iternext};
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        trap_slot(slots[i], TOUCHES, what);
    return copy;
}

/* The collector would read the items. */
static void hide(hs_py *object, int index)
{
    struct hs_py_list *list = (struct hs_py_list *)object;
    hs_py_api.PyObject_GC_UnTrack(list);
    items[index] = list->items;
    list->items = (hs_py **)(void *)hidden;
}

static void show(hs_py *object, int index)
{
    struct hs_py_list *list = (struct hs_py_list *)object;
    list->items = items[index];
    hs_py_api.PyObject_GC_Track(list);
}

static const char *arm_arguments(void)
{
    struct hs_py_type *copy = trapped_container(0, hs_py_api.list, "sys.argv");
    if (!copy)
        return "list";
    set_kind(copy->as_mapping[1], ITEM);
    set_kind(copy->getattro, METHOD);
    const char *names[] = {"argv", "orig_argv"};
    hs_py **kept[] = {&hs_py_request.arguments, &hs_py_request.original};
    for (int i = 0; i < (hs_py_api.minor >= 10 ? 2 : 1); i++) {
        hs_py *list = hs_py_api.PySys_GetObject(names[i]);
        if (!list || list->type != hs_py_api.list || ((struct hs_py_list *)list)->size < 1)
            return names[i];
        hs_py_api.Py_IncRef(list);
        *kept[i] = list;
        list->type = copy;
        hide(list, i);
    }
    return NULL;
}

static const char *arm_environment(void)
{
    struct hs_py_type *copy = trapped_container(1, hs_py_api.dict, "os.environ");
    hs_py *environment = hs_python_attribute("posix", "environ");
    if (!copy || !environment || environment->type != hs_py_api.dict)
        return "os.environ";
    set_kind(copy->as_mapping[1], VARIABLE);
    set_kind(copy->as_sequence[7], VARIABLE);
    hs_py_api.Py_IncRef(environment);
    hs_py_request.environment = environment;
    environment->type = copy;
    return NULL;
}

static const char *arm_streams(void)
{
    static const char *const names[] = {"stdin", "stdout", "stderr"};
    struct hs_py_type *copy = NULL;
    for (int i = 0; i < 3; i++) {
        hs_py *stream = hs_py_api.PySys_GetObject(names[i]);
        if (!stream || strcmp(stream->type->name, "_io.TextIOWrapper") != 0)
            return names[i];
        if (!stream_type) {
            stream_type = stream->type;
            copy = copy_type(2, stream_type);
        }
        if (!copy || stream->type != stream_type)
            return names[i];
        hs_py_api.Py_IncRef(stream);
        hs_py_request.streams[i] = stream;
    }
    trap_slot(&copy->getattro, STREAM, "a standard stream");
    hs_py_slot **slots[] = {&copy->setattro, &copy->iter, &copy->iternext, &copy->repr};
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        trap_slot(slots[i], TOUCHES, "a standard stream");
    for (int i = 0; i < 3; i++)
        hs_py_request.streams[i]->type = copy;
    return NULL;
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
    if (is_one_of(method->name, module->harmless))
        return;
    enum kind kind = TOUCHES;
    if (is_one_of(method->name, module->paths))
        kind = PATH;
    else if (strcmp(method->name, "register_at_fork") == 0)
        kind = PASSES;
    else if (strcmp(method->name, "seed") == 0)
        kind = SEED;
    else if (!(method->flags & HS_PY_NO_ARGUMENTS))
        kind = TOUCHES;
    else if (strcmp(method->name, "get_native_id") == 0)
        kind = THREAD;
    else if (strcmp(module->module, "time") == 0 && is_one_of(method->name, "time time_ns"))
        kind = CLOCK;
    for (int i = 0; i < trap_count; i++)
        if (traps[i].place == &method->function)
            return;
    method->function = trap(method->function, &method->function, kind, method->name, method->flags);
}

/* The methods of the generator of `random`, once that is there. The import of `random` ends with PASSES. */
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
    is_done = 1;
}

/* Lays traps in modules that were imported since. */
void hs_python_arm_late(void)
{
    hs_python_close_lent();
    trap_generator();
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        hs_py *module = listed[i].is_done ? NULL : hs_python_module(listed[i].module);
        hs_py *dict = module ? hs_py_api.PyModule_GetDict(module) : NULL, *name, *value;
        if (!dict)
            continue;
        for (ssize_t at = 0; hs_py_api.PyDict_Next(dict, &at, &name, &value);)
            if (value->type == hs_py_api.function || value->type->parent == hs_py_api.function)
                trap_function(&listed[i], ((struct hs_py_function *)value)->method);
        listed[i].is_done = 1;
    }
}

/* NULL, or what is not as it is in the interpreters that are known. */
const char *hs_python_arm(void)
{
    const char *why = arm_arguments();
    if (!why)
        why = arm_environment();
    if (!why)
        why = arm_streams();
    hs_python_arm_late();
    /* The interpreter has imported these itself. */
    for (int i = 0; i < 5; i++)
        if (!why && !listed[i].is_done)
            why = listed[i].module;
    if (!why && (mprotect(&copies, sizeof copies, PROT_READ) != 0 || mprotect(hidden, sizeof hidden, PROT_NONE) != 0))
        why = "mprotect";
    is_armed = !why;
    return why;
}

void hs_python_disarm(void)
{
    is_armed = 0;
    hs_python_open_lent();
    for (int i = 0; i < trap_count; i++)
        if (traps[i].place)
            *traps[i].place = traps[i].original;
    hs_py_request.arguments->type = hs_py_api.list;
    show(hs_py_request.arguments, 0);
    if (hs_py_request.original) {
        hs_py_request.original->type = hs_py_api.list;
        show(hs_py_request.original, 1);
    }
    mprotect(&copies, sizeof copies, PROT_READ | PROT_WRITE);
    mprotect(hidden, sizeof hidden, PROT_READ | PROT_WRITE);
    hs_py_request.environment->type = hs_py_api.dict;
    for (int i = 0; i < 3; i++)
        hs_py_request.streams[i]->type = stream_type;
}

#endif
