/* Judges whether anybody can see the end of an object.
 *
 * An object is harmless if its type, and each that it is derived from, has no finalizer, and the last of them is a builtin type of a list:
 * those that free themselves without telling anybody. What is not on the list can be seen to end.
 *
 * The examination runs no code of the script, and raises no audit event that the script could see.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>

#include "python.h"

#if HS_RESETS

#define TYPES 16384
#define OBJECTS 256
enum { HAS_COLLECTOR_HEAD = 1 << 14 };
#define IS_TYPE (1ul << 31)

enum fate { UNKNOWN, UNSEEN, SEEN, REFERENCE, GENERATOR, CAPSULE, MEMORY, FILE_OF_TEXT, FILE_WITH_BUFFER, FILE_ITSELF };

/* What is known of a type, for one examination. */
static struct {
    struct hs_py_type *type;
    enum fate fate;
} known[TYPES];
static size_t known_count;
/* The file that will close each descriptor. */
enum { DESCRIPTORS_MAX = 64 };
static const hs_py *owners[DESCRIPTORS_MAX];
/* Libraries that were there before the interpreter began. */
static uintptr_t first[OBJECTS];
static size_t first_count;
static struct hs_py_type *reference;
static hs_py_slot *free_of_classes;
/* The code of functions that take a weak reference out of a container of the standard library. */
enum remover { OF_WEAK_SET, OF_WEAK_VALUES, OF_WEAK_KEYS, REMOVERS };
static struct {
    const hs_py *code;
    struct hs_py_type *container; /* its class */
    int iterates; /* whether the code asks for iterators first */
} removers[REMOVERS];
/* That of logging, which takes a reference out of a list of handlers; NULL unless list, lock and functions are the library's own. */
static hs_py *remover_of_handlers;
static hs_py *streams[9];
/* The context variable of filters of warnings, since 3.14. The interpreter keeps it, whatever a script puts in its place. */
static hs_py *context_of_filters;

/* What precedes each object that the collector knows; the lowest bits are flags. The lists of its generations follow each other. */
struct head {
    uintptr_t next, previous;
};
#define HEAD(link) ((const struct head *)((link) & ~(uintptr_t)3))
enum { GENERATIONS = 3 };
static const struct generation {
    struct head head;
    int threshold, count;
} *generations;

/* Modules of the standard library that are in C. */
static const char listed[] =
    "_typing _opcode _csv binascii zlib _bz2 _lzma _struct math cmath _bisect _random _heapq _json _sha1 _sha256 _sha512 _sha2 _sha3 "
    "_md5 _blake2 _hashlib _datetime _decimal array unicodedata _pickle _contextvars _queue _uuid _statistics _zoneinfo _elementtree "
    "pyexpat fcntl grp resource _posixsubprocess select _socket mmap _asyncio _ctypes";

static int note_first(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (first_count < OBJECTS)
        first[first_count++] = info->dlpi_addr;
    return 0;
}

void hs_python_note_libraries(void)
{
    dl_iterate_phdr(note_first, NULL);
}

/* Before a script runs. */
void hs_python_note_filters(void)
{
    context_of_filters = hs_python_attribute("_warnings", "_warnings_context");
}

/* Nonzero for a library that is not known. */
static int is_foreign(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (size_t i = 0; i < first_count; i++)
        if (first[i] == info->dlpi_addr)
            return 0;
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
    char module[64] = "";
    const size_t length = strcspn(name, ".");
    if (length < sizeof module)
        memcpy(module, name, length);
    if (strstr(info->dlpi_name, "/lib-dynload/"))
        return !hs_python_is_one_of(module, listed);
    const int is_of_system = strncmp(info->dlpi_name, "/lib/", 5) == 0 || strncmp(info->dlpi_name, "/usr/lib/", 9) == 0;
    return !is_of_system || strncmp(name, "lib", 3) != 0 || strstr(info->dlpi_name, "-packages/") || strstr(name, ".cpython-");
}

/* Builtin types whose objects end unseen. */
static const char quiet[] =
    "object type function tuple dict list set frozenset cell property classmethod staticmethod method builtin_function_or_method "
    "builtin_method wrapper_descriptor method_descriptor getset_descriptor member_descriptor classmethod_descriptor method-wrapper module "
    "int str bytes bytearray float complex mappingproxy slice super range traceback frame code ellipsis enumerate zip map filter reversed "
    "iterator callable_iterator list_iterator list_reverseiterator tuple_iterator dict_keyiterator dict_valueiterator dict_itemiterator "
    "set_iterator dict_keys dict_values dict_items StgDict types.GenericAlias types.UnionType typing.Union types.SimpleNamespace "
    "typing.TypeVar typing.ParamSpec typing.TypeVarTuple typing.TypeAliasType typing.Generic re.Pattern re.Match _abc._abc_data "
    "_collections._tuplegetter collections._tuplegetter collections.deque collections.OrderedDict collections.defaultdict "
    "functools.partial functools._lru_cache_wrapper functools.KeyWrapper operator.attrgetter operator.itemgetter operator.methodcaller "
    "itertools.count itertools.cycle itertools.repeat itertools.chain _thread.RLock _thread.lock _thread._local _thread._localdummy "
    "_struct.Struct ast.AST _json.Scanner _json.Encoder _csv.Dialect _random.Random _contextvars.Context _contextvars.ContextVar "
    "_contextvars.Token decimal.Context decimal.Decimal decimal.SignalDictMixin datetime.datetime datetime.date datetime.time "
    "datetime.timedelta datetime.timezone datetime.tzinfo array.array unicodedata.UCD _ctypes.PyCSimpleType _ctypes.PyCFuncPtrType "
    "_ctypes.PyCPointerType _ctypes.PyCStructType _ctypes.PyCArrayType _ctypes.UnionType _ctypes.CType_Type _ctypes.CFuncPtr "
    "_ctypes._SimpleCData _ctypes._Pointer _ctypes.Structure _ctypes.Union _ctypes.Array _ctypes.CField";
/* Builtin types whose objects have a finalizer or a destructor, and when that goes unseen. */
static const struct {
    const char *name;
    enum fate fate;
} finalized[] = {{"_io.StringIO", MEMORY},
                 {"_io.BytesIO", MEMORY},
                 {"generator", GENERATOR},
                 {"PyCapsule", CAPSULE},
                 {"_io.TextIOWrapper", FILE_OF_TEXT},
                 {"_io.BufferedReader", FILE_WITH_BUFFER},
                 {"_io.FileIO", FILE_ITSELF}};

static int is_subtype(const struct hs_py_type *type, struct hs_py_type *of)
{
    return hs_py_api.PyType_IsSubtype((struct hs_py_type *)(uintptr_t)type, of);
}

/* A class of the script's is freed as the builtin type from which it is derived. */
static int is_class(const struct hs_py_type *type)
{
    return type->dealloc == free_of_classes;
}

static enum fate fate_of_type(const struct hs_py_type *type)
{
    if (type->del)
        return SEEN;
    if (is_subtype(type, reference))
        return type->finalize ? SEEN : REFERENCE;
    for (size_t i = 0; i < sizeof finalized / sizeof *finalized; i++)
        if (!is_class(type) && strcmp(type->name, finalized[i].name) == 0)
            return finalized[i].fate;
    if (type->finalize)
        return SEEN;
    const struct hs_py_type *builtin = type;
    while (builtin && is_class(builtin))
        builtin = builtin->parent;
    const int is_quiet = builtin && (hs_python_is_one_of(builtin->name, quiet) || is_subtype(builtin, hs_py_api.exception));
    return is_quiet ? UNSEEN : SEEN;
}

static enum fate fate_of(struct hs_py_type *type)
{
    size_t at = ((uintptr_t)type >> 4) * 0x9e3779b97f4a7c15u >> 50;
    for (; known[at].type && known[at].type != type; at = (at + 1) % TYPES)
        ;
    if (!known[at].type && known_count++ < TYPES / 2)
        known[at].type = type, known[at].fate = fate_of_type(type);
    return known[at].fate;
}

/* Finds the code of a function that is made in the constructor of a class; NULL if there is none. */
static const hs_py *code_within(const struct hs_py_type *of, const char *file, const char *name)
{
    hs_py *made = of && of->dict ? hs_py_api.PyDict_GetItemString(of->dict, "__init__") : NULL;
    hs_py *code = made && made->type == hs_py_api.written ? hs_py_api.PyFunction_GetCode(made) : NULL;
    hs_py *constants = code && hs_python_is_of_library(code, file) ? hs_py_api.PyObject_GetAttrString(code, "co_consts") : NULL;
    const hs_py *found = NULL;
    for (ssize_t i = 0; constants && i < hs_py_api.PyTuple_Size(constants); i++) {
        hs_py *inner = hs_py_api.PyTuple_GetItem(constants, i);
        hs_py *called = inner->type == hs_py_api.code ? hs_py_api.PyObject_GetAttrString(inner, "co_name") : NULL;
        if (called && strcmp(hs_py_api.PyUnicode_AsUTF8(called), name) == 0)
            found = inner;
        if (called)
            hs_py_api.Py_DecRef(called);
    }
    if (constants)
        hs_py_api.Py_DecRef(constants);
    return found;
}

/* Whether code uses this name. */
static int names(const hs_py *code, const char *name)
{
    hs_py *all = hs_py_api.PyObject_GetAttrString((hs_py *)(uintptr_t)code, "co_names");
    int is_it = !all;
    for (ssize_t i = 0; all && i < hs_py_api.PyTuple_Size(all); i++)
        is_it = is_it || strcmp(hs_py_api.PyUnicode_AsUTF8(hs_py_api.PyTuple_GetItem(all, i)), name) == 0;
    if (all)
        hs_py_api.Py_DecRef(all);
    return is_it;
}

/* Whether a name of logging stands for its own function in Python. */
static int is_function_of_logging(const char *name)
{
    hs_py *own = hs_python_attribute("logging", name);
    hs_py *code = own && own->type == hs_py_api.written ? hs_py_api.PyFunction_GetCode(own) : NULL;
    hs_py *called = code ? hs_py_api.PyObject_GetAttrString(code, "co_name") : NULL;
    const int is_it = called && strcmp(hs_py_api.PyUnicode_AsUTF8(called), name) == 0 &&
                      hs_python_is_of_library(code, "/logging/__init__.py");
    if (called)
        hs_py_api.Py_DecRef(called);
    return is_it;
}

/* Whether the list of handlers is as logging makes it, so that to look for a reference in it runs no code of the script. */
static int are_handlers_usual(void)
{
    const struct hs_py_list *list = (const struct hs_py_list *)hs_python_attribute("logging", "_handlerList");
    const hs_py *lock = hs_python_attribute("logging", "_lock");
    if (!list || list->base.type != hs_py_api.list || !lock || is_class(lock->type) || strcmp(lock->type->name, "_thread.RLock") != 0)
        return 0;
    for (ssize_t i = 0; i < list->size; i++)
        if (list->items[i]->type != reference)
            return 0;
    /* Functions until 3.12; later the lock is used itself. */
    const int locks = hs_py_api.minor >= 13 || (is_function_of_logging("_acquireLock") && is_function_of_logging("_releaseLock"));
    return locks && is_function_of_logging("_removeHandlerRef");
}

static void find_removers(void)
{
    static const struct {
        const char *module, *name, *file, *function;
    } containers[] = {[OF_WEAK_SET] = {"_weakrefset", "WeakSet", "/_weakrefset.py", "_remove"},
                      [OF_WEAK_VALUES] = {"weakref", "WeakValueDictionary", "/weakref.py", "remove"},
                      [OF_WEAK_KEYS] = {"weakref", "WeakKeyDictionary", "/weakref.py", "remove"}};
    for (enum remover kind = OF_WEAK_SET; kind < REMOVERS; kind++) {
        hs_py *of = hs_python_attribute(containers[kind].module, containers[kind].name);
        removers[kind].container = of && of->type == hs_py_api.type ? (struct hs_py_type *)of : NULL;
        removers[kind].code = code_within(removers[kind].container, containers[kind].file, containers[kind].function);
        removers[kind].iterates = removers[kind].code && names(removers[kind].code, "_iterating");
    }
    remover_of_handlers = are_handlers_usual() ? hs_python_attribute("logging", "_removeHandlerRef") : NULL;
}

/* Whether the hash of a dictionary's key runs no code of the script. */
static int is_plain_key(hs_py *of_reference)
{
    if ((hs_py *)of_reference->type != hs_python_attribute("weakref", "KeyedRef"))
        return 0;
    hs_py *key = hs_py_api.PyObject_GetAttrString(of_reference, "key");
    const int is_it = key && (key->type == hs_py_api.text || key->type == hs_py_api.number || key->type == hs_py_api.bytes);
    if (key)
        hs_py_api.Py_DecRef(key);
    return is_it;
}

/* Whether it is a builtin function with one of these names. */
static int is_builtin(hs_py *function, const char *called)
{
    return function->type == hs_py_api.function && hs_python_is_one_of(((struct hs_py_function *)function)->method->name, called);
}

/* An attribute that the container itself has, and of which its class knows nothing. */
static hs_py *own_attribute(hs_py *container, const char *name)
{
    hs_py *text = hs_py_api.PyUnicode_FromString(name);
    hs_py *value = text && !hs_py_api._PyType_Lookup(container->type, text) ? hs_py_api.PyObject_GenericGetAttr(container, text) : NULL;
    if (text)
        hs_py_api.Py_DecRef(text);
    return value;
}

/* Whether an attribute is of this type and, if it is asked, empty. */
static int is_own(hs_py *container, const char *name, const struct hs_py_type *type, int is_to_be_empty)
{
    hs_py *value = own_attribute(container, name);
    const int is_it = value && value->type == type && (!is_to_be_empty || hs_py_api.PyObject_Size(value) == 0);
    if (value)
        hs_py_api.Py_DecRef(value);
    return is_it;
}

/* Whether the container still is as the standard library makes it: of that very class, with a builtin set or dictionary, and without an
 * iterator for which the function would append to a list. */
static int is_remover(hs_py *of_reference, hs_py *function, enum remover kind)
{
    hs_py *defaults = hs_py_api.PyFunction_GetDefaults(function);
    const ssize_t count = defaults ? hs_py_api.PyTuple_Size(defaults) : 0;
    hs_py *own = count > 0 ? hs_py_api.PyTuple_GetItem(defaults, 0) : NULL;
    if (!own || own->type != reference)
        return 0;
    hs_py *container = ((hs_py **)own)[2];
    /* It has ended, and the function does nothing. */
    if (container == hs_py_api.none)
        return 1;
    if (container->type != removers[kind].container ||
        container->type->getattro != (hs_py_slot *)hs_py_api.PyObject_GenericGetAttr ||
        !is_own(container, "data", kind == OF_WEAK_SET ? hs_py_api.set : hs_py_api.dict, 0))
        return 0;
    if (removers[kind].iterates &&
        !(is_own(container, "_iterating", hs_py_api.set, 1) && is_own(container, "_pending_removals", hs_py_api.list, 1)))
        return 0;
    return kind != OF_WEAK_VALUES || (count == 2 && is_builtin(hs_py_api.PyTuple_GetItem(defaults, 1), "_remove_dead_weakref") &&
                                      is_plain_key(of_reference));
}

/* Whether the end of a weak reference's object runs no code of the script: its function only takes the reference out of a container of the
 * standard library. */
static int is_usual(hs_py *of_reference)
{
    hs_py *function = ((hs_py **)of_reference)[3];
    if (!function)
        return 1;
    if (is_builtin(function, "_destroy _localdummy_destroyed") || function == remover_of_handlers)
        return 1;
    if (function->type != hs_py_api.written)
        return 0;
    const hs_py *code = hs_py_api.PyFunction_GetCode(function);
    int is_it = 0;
    for (enum remover kind = 0; kind < REMOVERS && !is_it; kind++)
        is_it = code && code == removers[kind].code && is_remover(of_reference, function, kind);
    hs_py_api.PyErr_Clear();
    return is_it;
}

static int is_over(hs_py *generator)
{
    hs_py *frame = hs_py_api.PyObject_GetAttrString(generator, "gi_frame");
    if (frame)
        hs_py_api.Py_DecRef(frame);
    return frame == hs_py_api.none;
}

/* Whether to compare the text or the module of a warning with this runs no code of a script. */
static int is_plain_filter(const hs_py *pattern)
{
    return pattern == hs_py_api.none || pattern->type == hs_py_api.text ||
           (!is_class(pattern->type) && strcmp(pattern->type->name, "re.Pattern") == 0);
}

/* Whether the list of filters begins with none that shows that something was left open. */
static int ignores_leaks(hs_py *filters)
{
    hs_py *warning = hs_python_attribute("builtins", "ResourceWarning");
    const struct hs_py_list *list = (const struct hs_py_list *)filters;
    for (ssize_t i = 0; warning && list->base.type == hs_py_api.list && i < list->size; i++) {
        hs_py *action = hs_py_api.PyTuple_GetItem(list->items[i], 0), *of = hs_py_api.PyTuple_GetItem(list->items[i], 2);
        hs_py *text = hs_py_api.PyTuple_GetItem(list->items[i], 1), *module = hs_py_api.PyTuple_GetItem(list->items[i], 3);
        hs_py *line = hs_py_api.PyTuple_GetItem(list->items[i], 4);
        const char *name = action && of && text && module && line ? hs_py_api.PyUnicode_AsUTF8(action) : NULL;
        /* A class of another type may say for itself what is derived from it. */
        if (!name || of->type != hs_py_api.type || line->type != hs_py_api.number || !is_plain_filter(text) || !is_plain_filter(module))
            return 0;
        if (!hs_py_api.PyType_IsSubtype((struct hs_py_type *)warning, (struct hs_py_type *)of))
            continue;
        if (strcmp(name, "ignore") != 0)
            return 0;
        if (text == hs_py_api.none && module == hs_py_api.none && hs_py_api.PyLong_AsLong(line) == 0)
            return 1;
    }
    return 0;
}

/* Whether no filters but the interpreter's apply: since 3.14, a context may have its own. */
static int are_filters_global(void)
{
    int (*const get)(hs_py *, hs_py *, hs_py **) = (int (*)(hs_py *, hs_py *, hs_py **))dlsym(RTLD_DEFAULT, "PyContextVar_Get");
    hs_py *value = NULL;
    if (hs_py_api.minor < 14)
        return 1;
    const int is_known = context_of_filters && get && get(context_of_filters, NULL, &value) == 0;
    const int is_it = is_known && !value;
    if (value)
        hs_py_api.Py_DecRef(value);
    return is_it;
}

/* Whether nobody is told of a file, a socket or a list of a directory that is left open. Not all of them are objects that the collector
 * knows, and other types may warn as well. */
static int are_leaks_ignored(void)
{
    hs_py *own = hs_python_attribute("_warnings", "filters"), *library = hs_python_attribute("warnings", "filters");
    return are_filters_global() && own && ignores_leaks(own) &&
           (!hs_python_module("warnings") || (library && ignores_leaks(library)));
}

/* Whether an object of the module `_io` has no attributes but those that the module itself stores, as plain texts and numbers. Others
 * could stand for its methods, which are called at its end. */
static int has_plain_attributes(hs_py *object)
{
    const ssize_t offset = object->type->dict_offset;
    hs_py *dict = offset > 0 ? *(hs_py **)(void *)((char *)object + offset) : NULL, *name, *value;
    if (offset < 0 || (dict && dict->type != hs_py_api.dict))
        return 0;
    for (ssize_t at = 0; dict && hs_py_api.PyDict_Next(dict, &at, &name, &value);) {
        const char *text = name->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(name) : NULL;
        const int is_plain = value->type == hs_py_api.text || value->type == hs_py_api.number || value->type == hs_py_api.bytes;
        if (!text || !is_plain || !hs_python_is_one_of(text, "mode name"))
            return 0;
    }
    return 1;
}

/* Whether a file is one that is only read, by the interpreter's own types. `inner` is the name of what it reads from. */
static int is_reader(hs_py *file, const char *inner, enum fate fate)
{
    hs_py *next = hs_py_api.PyObject_GetAttrString(file, inner);
    const int is_it = next && fate_of(next->type) == fate;
    hs_py_api.PyErr_Clear();
    if (next)
        hs_py_api.Py_DecRef(next);
    return is_it;
}

/* Whether to close the descriptor of a file succeeds: since 3.13 the interpreter reports an error. Of two files with one descriptor, the
 * second would fail. */
static int closes(hs_py *file)
{
    hs_py *closed = hs_py_api.PyObject_GetAttrString(file, "closed");
    hs_py *number = hs_py_api.PyObject_CallMethod(file, "fileno", NULL);
    const long descriptor = number ? hs_py_api.PyLong_AsLong(number) : -1;
    int is_it = closed && hs_py_api.PyLong_AsLong(closed) == 1;
    if (descriptor >= 0 && descriptor < DESCRIPTORS_MAX && fcntl((int)descriptor, F_GETFD) >= 0) {
        is_it |= !owners[descriptor] || owners[descriptor] == file;
        owners[descriptor] = file;
    }
    hs_py_api.PyErr_Clear();
    hs_python_forget(&closed);
    hs_python_forget(&number);
    return is_it;
}

static int is_only_read(hs_py *file)
{
    hs_py *answer = hs_py_api.PyObject_GetAttrString(file, "mode");
    const char *mode = answer && answer->type == hs_py_api.text ? hs_py_api.PyUnicode_AsUTF8(answer) : NULL;
    const int is_it = mode && strcmp(mode, "rb") == 0 && closes(file);
    hs_py_api.PyErr_Clear();
    if (answer)
        hs_py_api.Py_DecRef(answer);
    return is_it;
}

/* Whether it is a standard stream, of which a script has changed nothing. */
static int is_stream(hs_py *object)
{
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (streams[i] == object)
            return has_plain_attributes(object);
    return 0;
}

/* A class whose objects the collector does not know must not have a finalizer. */
static int is_class_known(const struct hs_py_type *type)
{
    return !(type->finalize && is_class(type) && !(type->flags & HAS_COLLECTOR_HEAD));
}

/* What calls back into a script lies in no file. */
static int is_capsule_known(hs_py *capsule)
{
    Dl_info info;
    hs_py_slot *destructor = capsule->type == hs_py_api.capsule ? hs_py_api.PyCapsule_GetDestructor(capsule) : NULL;
    hs_py_api.PyErr_Clear();
    return capsule->type == hs_py_api.capsule && (!destructor || dladdr((void *)destructor, &info) != 0);
}

static int ends_unseen(hs_py *object)
{
    if (object->type->flags & IS_TYPE && !is_class_known((struct hs_py_type *)object))
        return 0;
    switch (fate_of(object->type)) {
    case UNSEEN: return 1;
    case REFERENCE: return is_usual(object);
    case CAPSULE: return is_capsule_known(object);
    case GENERATOR: return is_over(object);
    case MEMORY: return has_plain_attributes(object);
    case FILE_OF_TEXT: return is_stream(object) || (has_plain_attributes(object) && is_reader(object, "buffer", FILE_WITH_BUFFER));
    case FILE_WITH_BUFFER: return is_stream(object) || (has_plain_attributes(object) && is_reader(object, "raw", FILE_ITSELF));
    case FILE_ITSELF: return is_stream(object) || (has_plain_attributes(object) && is_only_read(object));
    case SEEN: return is_stream(object);
    case UNKNOWN: break;
    }
    return 0;
}

/* The standard streams, as long as each is the one that the process has begun with: the interpreter itself ends them. */
static int note_streams(void)
{
    static const char *const names[3][2] = {{"stdin", "__stdin__"}, {"stdout", "__stdout__"}, {"stderr", "__stderr__"}};
    for (int i = 0; i < 3; i++) {
        hs_py *text = hs_py_api.PySys_GetObject(names[i][0]);
        if (!text || text != hs_py_api.PySys_GetObject(names[i][1]) || is_class(text->type) ||
            strcmp(text->type->name, "_io.TextIOWrapper") != 0)
            return 0;
        hs_py *buffer = hs_py_api.PyObject_GetAttrString(text, "buffer");
        hs_py *raw = buffer ? hs_py_api.PyObject_GetAttrString(buffer, "raw") : NULL;
        hs_py *own[] = {text, buffer, raw};
        for (int j = 0; j < 3; j++)
            streams[3 * i + j] = own[j];
        hs_py_api.PyErr_Clear();
        if (raw)
            hs_py_api.Py_DecRef(raw);
        if (!buffer)
            return 0;
        hs_py_api.Py_DecRef(buffer);
    }
    return 1;
}

/* Whether there is nothing by which a script is told of ends: functions that the collector calls, its reports, or warnings. */
static int nobody_is_told(const struct hs_py_method *asks_debugging)
{
    struct hs_py_list *callbacks = (struct hs_py_list *)hs_python_attribute("gc", "callbacks");
    struct hs_py_list *warnings = (struct hs_py_list *)hs_py_api.PySys_GetObject("warnoptions");
    hs_py *debugging = hs_python_call(asks_debugging);
    const int reports = !debugging || hs_py_api.PyLong_AsLong(debugging) != 0;
    if (debugging)
        hs_py_api.Py_DecRef(debugging);
    return !reports && (!callbacks || callbacks->size == 0) && warnings && warnings->base.type == hs_py_api.list && warnings->size == 0;
}

/* Visits every object that the collector knows, and returns their number; -1 if the lists are not as expected, or at an object whose end
 * can be seen. Nothing is written, so that a fork does not get its own copies of all pages. */
static ssize_t walk(int is_judging)
{
    ssize_t count = 0;
    for (int i = 0; i < GENERATIONS; i++) {
        const struct head *end = &generations[i].head, *before = end;
        for (const struct head *at = HEAD(end->next); at != end; before = at, at = HEAD(at->next), count++)
            if (!at || HEAD(at->previous) != before || (is_judging && !ends_unseen((hs_py *)(uintptr_t)(at + 1))))
                return -1;
    }
    return count;
}

/* Finds the collector's lists: a new object is the last one of the youngest. They must have as many objects as the collector
 * tells, and the list of these. */
static void find_lists(hs_py *lists_objects)
{
    hs_py *last = hs_py_api.PyList_New(0);
    if (!last)
        return;
    generations = (const struct generation *)(const void *)HEAD(((struct head *)(void *)last)[-1].next);
    hs_py_api.Py_DecRef(last);
    struct hs_py_list *objects = (struct hs_py_list *)hs_py_api.PyObject_CallFunction(lists_objects, NULL);
    if (!objects || objects->size + 1 != walk(0))
        generations = NULL;
    if (objects)
        hs_py_api.Py_DecRef(&objects->base);
}

/* Whether nobody can see the end of the objects that the collector knows. Those of the zygote are examined first, and only then there is
 * a function that lists all objects. */
int hs_python_ends_unseen(const struct hs_py_method *asks_debugging, hs_py *lists_objects)
{
    const hs_py *environment = hs_python_attribute("os", "environ");
    reference = dlsym(RTLD_DEFAULT, "_PyWeakref_RefType");
    if (lists_objects)
        free_of_classes = environment && environment->type->flags & HS_PY_HEAP_TYPE ? environment->type->dealloc : NULL;
    memset(known, 0, sizeof known);
    memset(owners, 0, sizeof owners);
    known_count = 0;
    /* Without the switch, the collector might run meanwhile. */
    if (!hs_python_is_alone() || !reference || !free_of_classes || !hs_py_api.collect || !note_streams() ||
        !nobody_is_told(asks_debugging) || !are_leaks_ignored() || dl_iterate_phdr(is_foreign, NULL))
        return 0;
    const int collects = hs_py_api.collect_never();
    find_removers();
    if (lists_objects)
        find_lists(lists_objects);
    const int is_it = generations && walk(1) >= 0;
    if (collects)
        hs_py_api.collect();
    return is_it;
}

#endif
