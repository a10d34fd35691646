/* Judges whether anybody can see the end of an object.
 *
 * An object is harmless if its type has no finalizer and is freed by code that is known: the interpreter's, or that of a module of the
 * standard library which is listed here. What is not known to be harmless is not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "python.h"

#if HS_REWIND

#define TYPES 16384
#define OBJECTS 256
enum { HAS_COLLECTOR_HEAD = 1 << 14 };
#define IS_TYPE (1ul << 31)

enum fate { UNKNOWN, UNSEEN, SEEN, REFERENCE, GENERATOR };

/* Types of the zygote's objects, which a script may give a finalizer later. */
static struct hs_py_type *plain[TYPES];
static size_t plain_count;
/* What is known of a type, for one examination. */
static struct {
    struct hs_py_type *type;
    enum fate fate;
} known[TYPES];
static size_t known_count;
/* Libraries that were there before the interpreter began. */
static uintptr_t first[OBJECTS];
static size_t first_count;
static struct hs_py_type *reference;
static hs_py_slot *free_of_classes;
static hs_py *streams[9];

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

static enum fate fate_of_type(const struct hs_py_type *type)
{
    if (type->del)
        return SEEN;
    if (type->dealloc == reference->dealloc || hs_py_api.PyType_IsSubtype((struct hs_py_type *)(uintptr_t)type, reference))
        return type->finalize ? SEEN : REFERENCE;
    if (!type->finalize)
        return UNSEEN;
    if (strcmp(type->name, "_io.StringIO") == 0 || strcmp(type->name, "_io.BytesIO") == 0)
        return type->dealloc == free_of_classes ? SEEN : UNSEEN;
    return strcmp(type->name, "generator") == 0 && type->dealloc != free_of_classes ? GENERATOR : SEEN;
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

/* Whether the function of a weak reference only takes it out of a container of the standard library. */
static int is_usual(hs_py *function)
{
    if (!function)
        return 1;
    if (function->type == hs_py_api.function)
        return strcmp(((struct hs_py_function *)function)->method->name, "_destroy") == 0;
    if (strcmp(function->type->name, "function") != 0)
        return 0;
    hs_py *code = hs_py_api.PyObject_GetAttrString(function, "__code__");
    const int is_it = code && (hs_python_is_of_library(code, "/weakref.py") || hs_python_is_of_library(code, "/_weakrefset.py") ||
                               hs_python_is_of_library(code, "/logging/__init__.py"));
    hs_py_api.PyErr_Clear();
    if (code)
        hs_py_api.Py_DecRef(code);
    return is_it;
}

static int is_over(hs_py *generator)
{
    hs_py *frame = hs_py_api.PyObject_GetAttrString(generator, "gi_frame");
    if (frame)
        hs_py_api.Py_DecRef(frame);
    return frame == hs_py_api.none;
}

static int is_stream(const hs_py *object)
{
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (streams[i] == object)
            return 1;
    return 0;
}

/* A class whose objects the collector does not know must not have a finalizer. */
static int is_class_known(const struct hs_py_type *type)
{
    return !(type->finalize && type->dealloc == free_of_classes && !(type->flags & HAS_COLLECTOR_HEAD));
}

static int ends_unseen(hs_py *object)
{
    if (object->type->flags & IS_TYPE && !is_class_known((struct hs_py_type *)object))
        return 0;
    switch (fate_of(object->type)) {
    case UNSEEN: return 1;
    /* The head of an object is followed by what it refers to, and by the function. */
    case REFERENCE: return is_usual(((hs_py **)object)[3]);
    case GENERATOR: return is_over(object);
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
        if (!text || text != hs_py_api.PySys_GetObject(names[i][1]) || strcmp(text->type->name, "_io.TextIOWrapper") != 0)
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

/* Whether there is nothing by which a script is told of ends: functions that the collector calls, or warnings. */
static int nobody_is_told(void)
{
    struct hs_py_list *callbacks = (struct hs_py_list *)hs_python_attribute("gc", "callbacks");
    struct hs_py_list *warnings = (struct hs_py_list *)hs_py_api.PySys_GetObject("warnoptions");
    return (!callbacks || callbacks->size == 0) && warnings && warnings->base.type == hs_py_api.list && warnings->size == 0;
}

/* Whether types that had no finalizer when the zygote was examined still have none. */
static int are_plain(void)
{
    for (size_t i = 0; i < plain_count; i++)
        if (plain[i]->finalize || plain[i]->del)
            return 0;
    return 1;
}

static int note_plain(struct hs_py_type *type)
{
    if (type->finalize)
        return 1;
    if (plain_count == TYPES)
        return 0;
    plain[plain_count++] = type;
    return 1;
}

/* Whether nobody can see the end of these objects. Those of the zygote are examined once. */
int hs_python_ends_unseen(const struct hs_py_list *objects, int is_of_zygote)
{
    const hs_py *environment = hs_python_attribute("os", "environ");
    reference = dlsym(RTLD_DEFAULT, "_PyWeakref_RefType");
    if (is_of_zygote)
        free_of_classes = environment && environment->type->flags & HS_PY_HEAP_TYPE ? environment->type->dealloc : NULL;
    memset(known, 0, sizeof known);
    known_count = 0;
    if (!reference || !free_of_classes || !note_streams() || !nobody_is_told() || !are_plain() || dl_iterate_phdr(is_foreign, NULL))
        return 0;
    for (ssize_t i = 0; i < objects->size; i++) {
        hs_py *object = objects->items[i];
        if (!ends_unseen(object))
            return 0;
        if (is_of_zygote && object->type->flags & IS_TYPE && !note_plain((struct hs_py_type *)object))
            return 0;
    }
    return 1;
}

#endif
