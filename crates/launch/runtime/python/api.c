/* Finds the interpreter's functions, and what is built into it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "python.h"

#if HS_RESETS

struct hs_py_api hs_py_api;
union hs_py_request hs_py_request;
_Static_assert(sizeof hs_py_request == sizeof hs_py_request.all, "each reference is in the list");

static size_t size_of(void *symbol)
{
    Dl_info info;
    const ElfW(Sym) *entry = NULL;
    return dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT) && entry ? entry->st_size : 0;
}

/* 9 for "3.9.2 (...)"; -1 for a version or a build with other layouts. */
static int minor_of(const char *version)
{
    if (strncmp(version, "3.", 2) != 0 || strstr(version, "free-threading") || strstr(version, "PyPy"))
        return -1;
    const int minor = atoi(version + 2);
    return minor >= 9 && minor <= 14 ? minor : -1;
}

/* NULL, or why this program cannot be stopped. Before Python is initialized. */
const char *hs_python_find(void)
{
#define FIND(type, name, arguments)                                       \
    hs_py_api.name = (__typeof__(hs_py_api.name))dlsym(RTLD_DEFAULT, #name); \
    if (!hs_py_api.name)                                                  \
        return "not CPython: no " #name;
    HS_PY_FUNCTIONS(FIND)
    const struct {
        const char *name;
        struct hs_py_type **to;
    } types[] = {{"PyList_Type", &hs_py_api.list},   {"PyDict_Type", &hs_py_api.dict},
                 {"PyBytes_Type", &hs_py_api.bytes}, {"PyUnicode_Type", &hs_py_api.text},
                 {"PyLong_Type", &hs_py_api.number}, {"PyCFunction_Type", &hs_py_api.function},
                 {"PyMethodDescr_Type", &hs_py_api.descriptor},
                 {"PySet_Type", &hs_py_api.set},     {"PyType_Type", &hs_py_api.type},
                 {"PyCode_Type", &hs_py_api.code},   {"PyFunction_Type", &hs_py_api.written},
                 {"PyCapsule_Type", &hs_py_api.capsule}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!(*types[i].to = dlsym(RTLD_DEFAULT, types[i].name)))
            return types[i].name;
    struct hs_py_type **const exception = dlsym(RTLD_DEFAULT, "PyExc_BaseException");
    hs_py_api.exception = exception ? *exception : NULL;
    hs_py_api.none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
    hs_py_api.type_size = size_of(hs_py_api.list);
    hs_py_api.minor = minor_of(hs_py_api.Py_GetVersion());
    if (!hs_py_api.none || hs_py_api.minor < 0 || hs_py_api.type_size < sizeof(struct hs_py_type))
        return "not CPython 3.9 to 3.14";
    hs_py_api.collect_never = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGC_Disable");
    hs_py_api.collect = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGC_Enable");
    hs_py_api.heap_type_size = (size_t)hs_py_api.type->basic_size;
    return NULL;
}

void hs_python_forget(hs_py **reference)
{
    hs_py *kept = *reference;
    *reference = NULL;
    if (kept)
        hs_py_api.Py_DecRef(kept);
}

/* Calls a function of a module that has neither arguments nor use for its module. */
hs_py *hs_python_call(const struct hs_py_method *method)
{
    return ((hs_py * (*)(hs_py *, hs_py *)) method->function)(hs_py_api.none, NULL);
}

/* A module that was imported, borrowed; NULL if it was not. */
hs_py *hs_python_module(const char *name)
{
    hs_py *modules = hs_py_api.PyImport_GetModuleDict();
    return modules ? hs_py_api.PyDict_GetItemString(modules, name) : NULL;
}

/* An attribute of a module that was imported, borrowed. */
hs_py *hs_python_attribute(const char *module, const char *name)
{
    hs_py *of = hs_python_module(module);
    hs_py *dict = of ? hs_py_api.PyModule_GetDict(of) : NULL;
    if (!dict)
        hs_py_api.PyErr_Clear();
    return dict ? hs_py_api.PyDict_GetItemString(dict, name) : NULL;
}

/* A builtin module, made anew, that does not get into sys.modules. */
hs_py *hs_python_builtin(const char *name)
{
    hs_py *specify = hs_python_attribute("_frozen_importlib", "ModuleSpec"), *imports = hs_python_module("_imp");
    hs_py *specification = specify && imports ? hs_py_api.PyObject_CallFunction(specify, "sO", name, hs_py_api.none) : NULL;
    hs_py *made = specification ? hs_py_api.PyObject_CallMethod(imports, "create_builtin", "O", specification) : NULL;
    if (specification)
        hs_py_api.Py_DecRef(specification);
    /* Before 3.10 it does. */
    if (made && hs_python_module(name) == made && hs_py_api.PyDict_DelItemString(hs_py_api.PyImport_GetModuleDict(), name) != 0)
        return NULL;
    return made;
}

/* Whether code is that of a file of the standard library, named by its path there: "/logging/__init__.py". */
int hs_python_is_of_library(hs_py *code, const char *name)
{
    hs_py *file = hs_py_api.PyObject_GetAttrString(code, "co_filename"), *os = hs_python_attribute("os", "__file__");
    const char *library = os ? hs_py_api.PyUnicode_AsUTF8(os) : NULL, *path = file ? hs_py_api.PyUnicode_AsUTF8(file) : NULL;
    const char *slash = library ? strrchr(library, '/') : NULL;
    const size_t length = slash ? (size_t)(slash - library) : 0;
    const int is_it = path && length && strncmp(path, library, length) == 0 && strcmp(path + length, name) == 0;
    if (file)
        hs_py_api.Py_DecRef(file);
    return is_it;
}

#endif
