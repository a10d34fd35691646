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

static struct trap {
    hs_py_slot *original;
    hs_py_slot **place; /* where the stub is put, if that is to be undone */
    const char *what;
    enum hs_python_kind kind;
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

/* Gives the script another name, as the scripts of pip do: its value comes of no request, or they would have halted. */
static int set_first(hs_py *list, hs_py *key, hs_py *value)
{
    (void)list, (void)key;
    hs_py *old = items[0][0];
    hs_py_api.Py_IncRef(value);
    items[0][0] = value;
    hs_py_api.Py_DecRef(old);
    return 0;
}

/* Whether the value that is stored is a text, and not that of a deletion. */
static int is_name(const struct arguments *given)
{
    const hs_py *value = (const hs_py *)given->rdx;
    return is_first(given) && value && value->type == hs_py_api.text;
}

/* Whether C code may ask for this attribute because it has not found the type that it knows, such as pickle. */
static int is_method(const struct arguments *given)
{
    hs_py *name = (hs_py *)given->rsi;
    const char *text = name->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(name) : NULL;
    return text && hs_python_is_one_of(text, "append extend index copy count insert pop remove reverse sort clear");
}

static int is_trapped(const hs_py *object)
{
    return (const char *)object->type >= copies.bytes && (const char *)object->type < copies.bytes + sizeof copies.bytes;
}

/* Calls what a trap stands for while the object has its real type. */
static hs_py_slot *passing;
static uintptr_t as_real(hs_py *self, uintptr_t argument)
{
    struct hs_py_type *copy = self->type;
    self->type = copy == &copies.of[0].type ? hs_py_api.list : copy == &copies.of[1].type ? hs_py_api.dict : stream_type;
    const uintptr_t result = ((uintptr_t(*)(hs_py *, uintptr_t))passing)(self, argument);
    if (is_armed)
        self->type = copy;
    return result;
}

/* Makes a builtin module, whose functions get their traps at once. */
static hs_py *make(hs_py *self, hs_py *specification)
{
    hs_py *made = ((hs_py * (*)(hs_py *, hs_py *)) passing)(self, specification);
    if (made && is_armed)
        hs_python_arm_made(made);
    return made;
}

/* Whether a specification is of a builtin module that the interpreter has made itself. */
static int is_remade(hs_py *specification)
{
    hs_py *name = hs_py_api.PyObject_GetAttrString(specification, "name");
    const char *text = name && name->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(name) : NULL;
    const int is_it = !text || hs_python_is_one_of(text, "posix sys builtins _imp _io _thread _signal _warnings _weakref marshal");
    hs_py_api.PyErr_Clear();
    if (name)
        hs_py_api.Py_DecRef(name);
    return is_it;
}

/* Records the name of a variable; 0 if it is not one. */
static int is_variable(const struct arguments *given)
{
    const struct hs_py_bytes *key = (const struct hs_py_bytes *)given->rsi;
    if (key->base.type != hs_py_api.bytes || strlen(key->text) != (size_t)key->size)
        return 0;
    hs_asked_record(key->text);
    return 1;
}

/* Whether an attribute of a stream is the same for all requests that a zygote serves: none of them has a terminal. */
static int is_constant(const struct arguments *given)
{
    hs_py *name = (hs_py *)given->rsi;
    const char *text = name->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(name) : NULL;
    return text && hs_python_is_one_of(text, "isatty fileno encoding errors closed name mode line_buffering");
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
    if (hs_python_clock)
        return 0;
    hs_py *frame = hs_py_api.PyEval_GetFrame();
    hs_py *code = frame ? hs_py_api.PyFrame_GetCode(frame) : NULL;
    hs_py *name = code ? hs_py_api.PyObject_GetAttrString(code, "co_name") : NULL;
    const int is_it = code && hs_python_is_of_library(code, "/logging/__init__.py") && name &&
                      strcmp(hs_py_api.PyUnicode_AsUTF8(name), "<module>") == 0;
    hs_py *own[] = {name, code};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i])
            hs_py_api.Py_DecRef(own[i]);
    if (is_it)
        hs_python_clock = what;
    return is_it;
}

/* A value that each fork renews is lent. The observer lets the next such call pass. */
static hs_py_slot *renewed(const struct trap *trap, hs_py_slot *lend)
{
    hs_python_tell(HS_PYTHON_RENEWS, NULL);
    hs_python_lent(trap->original, trap->kind == HS_PY_CLOCK);
    return lend;
}

static int passes(const struct trap *trap, const struct arguments *given)
{
    switch (trap->kind) {
    case HS_PY_ITEM:
    case HS_PY_NAME: return 0;
    case HS_PY_METHOD:
        if (!is_method(given))
            hs_python_refuse("an attribute of sys.argv");
        return 0;
    case HS_PY_VARIABLE: return is_variable(given);
    case HS_PY_STREAM: return is_constant(given);
    case HS_PY_PATH: return is_absolute(trap, given);
    case HS_PY_SEED: return !hs_py_request.generator && !hs_python_attribute("random", "_inst");
    case HS_PY_PASSES: hs_python_arm_late(); return 1;
    case HS_PY_INSTANCE: return given->rdx < 1 || !is_trapped(*(hs_py **)given->rsi);
    case HS_PY_REMADE: return !is_remade((hs_py *)given->rsi);
    case HS_PY_THREAD:
    case HS_PY_CLOCK:
    case HS_PY_TOUCHES: break;
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
    if (trap->kind == HS_PY_THREAD && is_main_thread())
        return renewed(trap, (hs_py_slot *)hs_python_lend_number);
    if (trap->kind == HS_PY_CLOCK && is_of_logging(trap->what))
        return renewed(trap, (hs_py_slot *)hs_python_lend_time);
    if (trap->kind == HS_PY_ITEM && is_first(given))
        return (hs_py_slot *)first;
    if (trap->kind == HS_PY_NAME && is_name(given))
        return (hs_py_slot *)set_first;
    if (!passes(trap, given))
        hs_python_touched(trap->what);
    else if (trap->kind == HS_PY_REMADE) {
        passing = trap->original;
        return (hs_py_slot *)make;
    } else if (trap->kind == HS_PY_STREAM || trap->kind == HS_PY_VARIABLE) {
        passing = trap->original;
        return (hs_py_slot *)as_real;
    }
    return trap->original;
}

static hs_py_slot *trap(hs_py_slot *original, hs_py_slot **place, enum hs_python_kind kind, const char *what, int flags)
{
    if (trap_count == TRAPS)
        abort();
    traps[trap_count] = (struct trap){original, place, what, kind, flags};
    return (hs_py_slot *)(uintptr_t)(hs_python_stubs + STUB_BYTES * trap_count++);
}

/* Lays a trap in the place of a function's code, unless it has one. */
void hs_python_trap(struct hs_py_method *method, enum hs_python_kind kind)
{
    for (int i = 0; i < trap_count; i++)
        if (traps[i].place == &method->function)
            return;
    method->function = trap(method->function, &method->function, kind, method->name, method->flags);
}

/* Copies a table of slots into `to`, each slot a trap. */
static hs_py_slot **trap_table(hs_py_slot **from, hs_py_slot **to, size_t count, const char *what)
{
    for (size_t i = 0; from && i < count; i++)
        to[i] = from[i] ? trap(from[i], NULL, HS_PY_TOUCHES, what, 0) : NULL;
    return from ? to : NULL;
}

static void trap_slot(hs_py_slot **slot, enum hs_python_kind kind, const char *what)
{
    if (*slot)
        *slot = trap(*slot, NULL, kind, what, 0);
}

static void set_kind(hs_py_slot *stub, enum hs_python_kind kind)
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
    copy->type.version_tag = VERSION_TAG + (unsigned)index;
    copy->type.flags |= HS_PY_VALID_VERSION;
    copy->type.mro = hs_python_decoy(index, type, size);
    return copy->type.mro ? &copy->type : NULL;
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
        trap_slot(slots[i], HS_PY_TOUCHES, what);
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
    set_kind(copy->as_mapping[1], HS_PY_ITEM);
    set_kind(copy->as_mapping[2], HS_PY_NAME);
    set_kind(copy->getattro, HS_PY_METHOD);
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
    set_kind(copy->as_mapping[1], HS_PY_VARIABLE);
    set_kind(copy->as_sequence[7], HS_PY_VARIABLE);
    hs_py_api.Py_IncRef(environment);
    hs_py_request.environment = environment;
    hs_py_request.posix = hs_python_module("posix");
    hs_py_api.Py_IncRef(hs_py_request.posix);
    environment->type = copy;
    return NULL;
}

/* Once `os` has the dictionary, nothing else needs it: who loads it from `posix` ends the process, since C code may ask whether it is
 * exactly a dict, and do something else if not. */
static union {
    hs_py object;
    char bytes[4096];
} instead __attribute__((aligned(4096)));
static int is_replaced;

static void set_environment(hs_py *value)
{
    hs_py *posix = hs_py_api.PyModule_GetDict(hs_py_request.posix);
    if (hs_py_api.PyDict_SetItemString(posix, "environ", value) != 0)
        hs_python_refuse("posix.environ");
}

void hs_python_hide_environment(void)
{
    hs_py *own = is_replaced || !hs_py_request.posix ? NULL : hs_python_attribute("os", "environ");
    if (!own || is_trapped(own))
        return;
    is_replaced = 1;
    if (hs_python_attribute("posix", "environ") != hs_py_request.environment)
        hs_python_refuse("posix.environ");
    instead.object = (hs_py){1, hs_py_api.none->type};
    set_environment(&instead.object);
    if (mprotect(&instead, sizeof instead, PROT_READ) != 0)
        hs_python_refuse("mprotect");
}

static void show_environment(void)
{
    if (!is_replaced)
        return;
    mprotect(&instead, sizeof instead, PROT_READ | PROT_WRITE);
    set_environment(hs_py_request.environment);
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
    trap_slot(&copy->getattro, HS_PY_STREAM, "a standard stream");
    hs_py_slot **slots[] = {&copy->setattro, &copy->iter, &copy->iternext, &copy->repr};
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        trap_slot(slots[i], HS_PY_TOUCHES, "a standard stream");
    for (int i = 0; i < 3; i++)
        hs_py_request.streams[i]->type = copy;
    hs_py_request.open = hs_python_attribute("_io", "open");
    if (!hs_py_request.open)
        return "_io.open";
    hs_py_api.Py_IncRef(hs_py_request.open);
    return NULL;
}

/* NULL, or what is not as it is in the interpreters that are known. */
const char *hs_python_arm(void)
{
    const char *why = arm_arguments();
    if (!why)
        why = arm_environment();
    if (!why)
        why = arm_streams();
    if (!why)
        why = hs_python_arm_functions();
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
    show_environment();
    for (int i = 0; i < 3; i++)
        hs_py_request.streams[i]->type = stream_type;
}

#endif
