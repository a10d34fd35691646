/* The resolution order of a copied type, by which C code that passes by the type's slots ends the process.
 *
 * Methods of a type (`list.__len__(sys.argv)`), special methods (`reversed`, `with`) and checks of a type (`PyObject_TypeCheck`) look at
 * the order. It is a tuple of two, whose second item lies in a page that cannot be read. The interpreter, when it specializes bytecode,
 * looks for `__getitem__`: that is found in the first item, and nothing else is.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#include "python.h"

#if HS_RESETS

#define PAGE 4096
#define TYPE_BYTES 2048
/* A type whose dictionary is looked up in the interpreter's state, and not in the type. */
#define STATIC_BUILTIN (1ul << 1)

static struct decoy {
    char readable[PAGE], unreadable[PAGE];
} decoys[HS_PY_DECOYS] __attribute__((aligned(PAGE)));
static union {
    struct hs_py_type type;
    char bytes[TYPE_BYTES];
} firsts[HS_PY_DECOYS];

/* NULL if there is none. `size` is that of `type`. */
hs_py *hs_python_decoy(int index, const struct hs_py_type *type, size_t size)
{
    const struct hs_py_type *tuple = dlsym(RTLD_DEFAULT, "PyTuple_Type");
    hs_py *dict = hs_py_api.PyDict_New();
    hs_py *item = hs_py_api.PyObject_GetAttrString((hs_py *)(uintptr_t)type, "__getitem__");
    hs_py_api.PyErr_Clear();
    if (!tuple || !dict || size > TYPE_BYTES || (item && hs_py_api.PyDict_SetItemString(dict, "__getitem__", item) != 0))
        return NULL;
    hs_python_forget(&item);
    hs_py_api.PyObject_GC_UnTrack(dict);
    hs_py_request.decoys[index] = dict;
    memcpy(&firsts[index], type, size);
    firsts[index].type.dict = dict;
    firsts[index].type.flags &= ~STATIC_BUILTIN;
    struct decoy *decoy = &decoys[index];
    /* The items follow the fixed part; the first one is the last word of its page. */
    char *items = decoy->unreadable - sizeof(void *);
    struct hs_py_bytes *made = (struct hs_py_bytes *)(void *)(items - tuple->basic_size);
    made->base.references = 1 << 20;
    made->base.type = (struct hs_py_type *)(uintptr_t)tuple;
    made->size = 2;
    *(struct hs_py_type **)(void *)items = &firsts[index].type;
    return mprotect(decoy->unreadable, PAGE, PROT_NONE) == 0 ? &made->base : NULL;
}

#endif
