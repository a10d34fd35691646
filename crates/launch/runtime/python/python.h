/* The parts of CPython's interface that are the same from 3.9 to 3.14, without its headers: a runtime serves every version.
 *
 * Functions are looked up in the running interpreter. The layouts are those of builds with a global interpreter lock on 64-bit
 * systems; hs_python_begin refuses others.
 */
#ifndef HOTSTART_PYTHON_H
#define HOTSTART_PYTHON_H

#include <stddef.h>
#include <sys/types.h>
#include <wchar.h>

#include "runtime.h"

struct hs_py_type;
typedef struct hs_py {
    ssize_t references;
    struct hs_py_type *type;
} hs_py;

typedef void hs_py_slot(void);

/* Tables of slots: ten for sequences, three for mappings, 36 for numbers. */
#define HS_PY_SEQUENCE_SLOTS 10
#define HS_PY_MAPPING_SLOTS 3
#define HS_PY_NUMBER_SLOTS 36

/* The beginning of a type, up to what differs between versions. */
struct hs_py_type {
    hs_py base;
    ssize_t size;
    const char *name;
    ssize_t basic_size, item_size;
    hs_py_slot *dealloc;
    ssize_t vectorcall_offset;
    hs_py_slot *getattr, *setattr, *as_async, *repr;
    hs_py_slot **as_number, **as_sequence, **as_mapping;
    hs_py_slot *hash, *call, *str, *getattro, *setattro, *as_buffer;
    unsigned long flags;
    const char *doc;
    hs_py_slot *traverse, *clear, *richcompare;
    ssize_t weaklist_offset;
    hs_py_slot *iter, *iternext;
    void *methods, *members, *getset;
    struct hs_py_type *parent;
    hs_py *dict;
    hs_py_slot *descr_get, *descr_set;
    ssize_t dict_offset;
    hs_py_slot *init, *alloc, *make, *release, *is_gc;
    hs_py *bases, *mro, *cache, *subclasses, *weaklist;
    hs_py_slot *del;
    unsigned version_tag;
    hs_py_slot *finalize;
};
#define HS_PY_HEAP_TYPE (1ul << 9)
#define HS_PY_VALID_VERSION (1ul << 19)

struct hs_py_list {
    hs_py base;
    ssize_t size;
    hs_py **items;
    ssize_t allocated;
};
struct hs_py_bytes {
    hs_py base;
    ssize_t size;
    ssize_t hash;
    char text[];
};
/* A builtin function, and its definition, which the interpreter reads at each call. */
struct hs_py_method {
    const char *name;
    hs_py_slot *function;
    int flags;
    const char *doc;
};
struct hs_py_function {
    hs_py base;
    struct hs_py_method *method;
};
/* A method of a builtin type. */
struct hs_py_descriptor {
    hs_py base;
    struct hs_py_type *of;
    hs_py *name, *qualified_name;
    struct hs_py_method *method;
};
enum { HS_PY_NO_ARGUMENTS = 4, HS_PY_O = 8, HS_PY_FASTCALL = 0x80 };

typedef int hs_py_hook(const char *event, hs_py *arguments, void *own);

#define HS_PY_FUNCTIONS(X)                                             \
    X(int, PySys_AddAuditHook, (hs_py_hook *, void *))                 \
    X(const char *, Py_GetVersion, (void))                             \
    X(hs_py *, PySys_GetObject, (const char *))                        \
    X(hs_py *, PyImport_GetModuleDict, (void))                         \
    X(hs_py *, PyDict_GetItemString, (hs_py *, const char *))          \
    X(int, PyDict_Next, (hs_py *, ssize_t *, hs_py **, hs_py **))      \
    X(void, PyDict_Clear, (hs_py *))                                   \
    X(hs_py *, PyDict_New, (void))                                     \
    X(int, PyDict_DelItemString, (hs_py *, const char *))              \
    X(int, PyDict_SetItemString, (hs_py *, const char *, hs_py *))     \
    X(hs_py *, PyDict_SetDefault, (hs_py *, hs_py *, hs_py *))         \
    X(hs_py *, PyModule_GetDict, (hs_py *))                            \
    X(hs_py *, PyObject_GetAttrString, (hs_py *, const char *))        \
    X(int, PyObject_SetAttrString, (hs_py *, const char *, hs_py *))   \
    X(hs_py *, PyObject_CallMethod, (hs_py *, const char *, const char *, ...)) \
    X(hs_py *, PyObject_CallFunction, (hs_py *, const char *, ...))    \
    X(int, PyObject_RichCompareBool, (hs_py *, hs_py *, int))          \
    X(int, PyType_IsSubtype, (struct hs_py_type *, struct hs_py_type *)) \
    X(hs_py *, PyTuple_GetItem, (hs_py *, ssize_t))                    \
    X(ssize_t, PyTuple_Size, (hs_py *))                                \
    X(hs_py *, PyList_New, (ssize_t))                                  \
    X(hs_py *, PyBytes_FromStringAndSize, (const char *, ssize_t))     \
    X(hs_py *, PyUnicode_FromString, (const char *))                   \
    X(hs_py *, PyUnicode_FromWideChar, (const wchar_t *, ssize_t))     \
    X(const char *, PyUnicode_AsUTF8, (hs_py *))                       \
    X(hs_py *, PyLong_FromLong, (long))                                \
    X(long, PyLong_AsLong, (hs_py *))                                  \
    X(hs_py *, PyBool_FromLong, (long))                                \
    X(wchar_t *, Py_DecodeLocale, (const char *, size_t *))            \
    X(void *, PyMem_RawMalloc, (size_t))                               \
    X(void, PyMem_RawFree, (void *))                                   \
    X(char *, _Py_GetConfig, (void))                                   \
    X(void, Py_GetArgcArgv, (int *, wchar_t ***))                      \
    X(void *, PyInterpreterState_Head, (void))                         \
    X(void *, PyInterpreterState_Next, (void *))                       \
    X(void, PyObject_GC_UnTrack, (void *))                             \
    X(void, PyObject_GC_Track, (void *))                               \
    X(void, Py_IncRef, (hs_py *))                                      \
    X(void, Py_DecRef, (hs_py *))                                      \
    X(void, PyErr_Fetch, (hs_py **, hs_py **, hs_py **))               \
    X(void, PyErr_Restore, (hs_py *, hs_py *, hs_py *))                \
    X(void, PyErr_Clear, (void))                                       \
    X(hs_py *, PyEval_GetFrame, (void))                                \
    X(hs_py *, PyFrame_GetCode, (hs_py *))                             \
    X(hs_py *, PyFrame_GetBack, (hs_py *))                             \
    X(int, PyFrame_GetLineNumber, (hs_py *))                           \
    X(hs_py *, PyFunction_GetCode, (hs_py *))                          \
    X(hs_py *, PyFunction_GetDefaults, (hs_py *))                      \
    X(hs_py *, PyObject_GenericGetAttr, (hs_py *, hs_py *))            \
    X(hs_py *, _PyType_Lookup, (struct hs_py_type *, hs_py *))         \
    X(ssize_t, PyObject_Size, (hs_py *))                               \
    X(hs_py_slot *, PyCapsule_GetDestructor, (hs_py *))

#define HS_PY_POINTER(type, name, arguments) type (*name) arguments;
HS_HIDDEN extern struct hs_py_api {
    HS_PY_FUNCTIONS(HS_PY_POINTER)
    struct hs_py_type *list, *dict, *set, *bytes, *text, *number, *function, *descriptor;
    struct hs_py_type *type, *written, *code, *capsule; /* `written`: functions in Python; `function`: those in C */
    struct hs_py_type *exception; /* BaseException */
    hs_py *none;
    size_t type_size; /* of a type that is no heap type */
    size_t heap_type_size;
    int (*collect_never)(void), (*collect)(void); /* the switch of the collector, since 3.10 */
    int minor; /* 9 for 3.9 */
} hs_py_api;

/* The runtime's own references. A fork forgets them all, or its objects would not end as those of a cold start: no other variable keeps
 * one beyond the halt. */
#define HS_PY_DECOYS 3
HS_HIDDEN extern union hs_py_request {
    struct {
        /* What the request is known by, from when it is trapped until a fork has filled it. */
        hs_py *arguments, *original; /* sys.argv, sys.orig_argv */
        hs_py *environment, *posix;  /* posix.environ, and the module */
        hs_py *streams[3];
        hs_py *open;   /* the function of `_io` */
        hs_py *random; /* the type of generators */
        /* What keeps a value of the process since it was imported: the generator of `random`, the main thread, and the module `logging`. */
        hs_py *generator, *thread, *logging;
        hs_py *time; /* the module from which `logging` has its time of start */
        hs_py *decoys[HS_PY_DECOYS]; /* dictionaries of decoy.c */
    };
    hs_py *all[13 + HS_PY_DECOYS];
} hs_py_request;

/* When a trap halts the interpreter. */
enum hs_python_kind {
    HS_PY_TOUCHES, /* always */
    HS_PY_METHOD,  /* an attribute of a list: always, but only a method is known */
    HS_PY_ITEM,    /* an item of a list, unless it is the script's name */
    HS_PY_NAME,    /* a store to a list, unless it gives the script another name */
    HS_PY_VARIABLE, /* never: the name of the variable goes into the key */
    HS_PY_STREAM,  /* an attribute of a stream, unless it is the same for each request */
    HS_PY_PATH,    /* a file's path, unless it is absolute */
    HS_PY_THREAD,  /* the number of the thread, unless `threading` asks for its main thread */
    HS_PY_SEED,    /* the generator of `random`, unless that is imported now */
    HS_PY_PASSES,  /* never: it ends the import of a module that has taken a value of the process */
    HS_PY_INSTANCE, /* a check of a type, if it is that of what tells of the request */
    HS_PY_REMADE,  /* the making of a builtin module that exists: it would have values of its own */
    HS_PY_CLOCK,   /* the time, unless `logging` asks when it was started */
};

/* api.c */
HS_HIDDEN const char *hs_python_find(void);
HS_HIDDEN void hs_python_forget(hs_py **reference);
HS_HIDDEN hs_py *hs_python_call(const struct hs_py_method *method);
HS_HIDDEN hs_py *hs_python_module(const char *name);
HS_HIDDEN hs_py *hs_python_attribute(const char *module, const char *name);
HS_HIDDEN hs_py *hs_python_builtin(const char *name);
HS_HIDDEN int hs_python_is_of_library(hs_py *code, const char *file);

/* traps.c */
HS_HIDDEN const char *hs_python_arm(void);
HS_HIDDEN void hs_python_disarm(void);
HS_HIDDEN void hs_python_hide_environment(void);
HS_HIDDEN void hs_python_trap(struct hs_py_method *method, enum hs_python_kind kind);

/* functions.c */
HS_HIDDEN int hs_python_is_one_of(const char *name, const char *list);
HS_HIDDEN const char *hs_python_arm_functions(void);
HS_HIDDEN void hs_python_arm_late(void);
HS_HIDDEN void hs_python_arm_made(hs_py *module);

/* decoy.c */
HS_HIDDEN hs_py *hs_python_decoy(int index, const struct hs_py_type *type, size_t size);

/* lent.c */
HS_HIDDEN void hs_python_note_keepers(void);
HS_HIDDEN const char *hs_python_lost(void);
HS_HIDDEN hs_py *hs_python_time(void);
HS_HIDDEN hs_py *hs_python_lend_number(hs_py *module, hs_py *none);
HS_HIDDEN hs_py *hs_python_lend_time(hs_py *module, hs_py *none);
HS_HIDDEN extern const char *hs_python_clock;
HS_HIDDEN void hs_python_lent(hs_py_slot *function, int is_time);
HS_HIDDEN void hs_python_close_lent(void);
HS_HIDDEN void hs_python_open_lent(void);

/* hook.c */
__attribute__((noreturn)) HS_HIDDEN void hs_python_refuse(const char *why);
HS_HIDDEN void hs_python_touched(const char *what);
HS_HIDDEN int hs_python_draws(void);
HS_HIDDEN void hs_python_tell(enum hs_python_mark mark, const char *text);

/* place.c */
HS_HIDDEN void hs_python_note_locale(void);
HS_HIDDEN const char *hs_python_refuses(const struct hs_start *start);
HS_HIDDEN uint64_t hs_python_place(const char *what);
HS_HIDDEN const char *hs_python_line(const char *text);

/* config.c */
HS_HIDDEN int hs_python_is_alone(void);
HS_HIDDEN const char *hs_python_find_configuration(const struct hs_start *start);
HS_HIDDEN void hs_python_fill_configuration(const char *texts, uint32_t count, uint32_t before);

/* finish.c */
HS_HIDDEN void hs_python_spare(void);

/* harmless.c */
HS_HIDDEN void hs_python_note_libraries(void);
HS_HIDDEN void hs_python_note_filters(void);
HS_HIDDEN int hs_python_ends_unseen(const struct hs_py_method *asks_debugging, hs_py *lists_objects);

/* resume.c */
__attribute__((noreturn)) HS_HIDDEN void hs_python_give_up(void);
HS_HIDDEN void hs_python_resume(const struct hs_start *start, const struct hs_job *job);

#endif
