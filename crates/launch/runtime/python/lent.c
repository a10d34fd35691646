/* Values of this process that modules of the standard library keep when they are imported, and that each fork renews: the number of the
 * main thread in `threading`, and the time of start in `logging`.
 *
 * Who has read such a value before the point has one that no fork renews. So each is an object in a page of its own, where nothing can be
 * written once the module has stored it. To read it is to refer to it, and to refer to it is to write: that ends the process.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "python.h"

#if HS_RESETS

#define PAGE 4096
enum { NUMBER, TIME, KINDS };

static struct lent {
    union {
        hs_py object;
        char bytes[PAGE];
    };
} lent[KINDS] __attribute__((aligned(PAGE)));
/* The function from which `logging` has its time of start; NULL if it was not imported. */
const char *hs_python_clock;
static hs_py_slot *functions[KINDS];
static enum { NOT_LENT, OPEN, CLOSED } states[KINDS];

/* The function that makes the value. */
void hs_python_lent(hs_py_slot *function, int is_time)
{
    functions[is_time ? TIME : NUMBER] = function;
}

static hs_py *lend(int kind, hs_py *module, hs_py *none)
{
    if (states[kind] != NOT_LENT)
        hs_python_refuse("a module of the standard library was imported twice");
    if (kind == TIME) {
        hs_py_api.Py_IncRef(module);
        hs_py_request.time = module;
    }
    hs_py *value = ((hs_py * (*)(hs_py *, hs_py *)) functions[kind])(module, none);
    hs_py *size = value ? hs_py_api.PyObject_CallMethod(value, "__sizeof__", NULL) : NULL;
    const long bytes = size ? hs_py_api.PyLong_AsLong(size) : 0;
    if (bytes <= 0 || bytes > PAGE)
        hs_python_refuse("a value of the process");
    memcpy(lent[kind].bytes, value, (size_t)bytes);
    lent[kind].object.references = 1;
    states[kind] = OPEN;
    hs_py_api.Py_DecRef(size);
    hs_py_api.Py_DecRef(value);
    return &lent[kind].object;
}

hs_py *hs_python_lend_number(hs_py *module, hs_py *none)
{
    return lend(NUMBER, module, none);
}

hs_py *hs_python_lend_time(hs_py *module, hs_py *none)
{
    return lend(TIME, module, none);
}

/* The module has stored its value, and nobody else has it. */
void hs_python_close_lent(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (states[kind] != OPEN)
            continue;
        if (lent[kind].object.references != 1 || mprotect(&lent[kind], PAGE, PROT_READ) != 0)
            hs_python_refuse("a number or a time that is not the same in each process was read");
        states[kind] = CLOSED;
    }
}

/* The module is imported, or is about to be: it holds its value, and can be found even if it is taken out of sys.modules later. */
void hs_python_note_keepers(void)
{
    const struct {
        hs_py **kept, *found;
    } keepers[] = {{&hs_py_request.generator, hs_python_attribute("random", "_inst")},
                   {&hs_py_request.thread, hs_python_attribute("threading", "_main_thread")},
                   {&hs_py_request.logging, hs_python_clock ? hs_python_module("logging") : NULL}};
    for (size_t i = 0; i < sizeof keepers / sizeof *keepers; i++)
        if (!*keepers[i].kept && keepers[i].found) {
            hs_py_api.Py_IncRef(keepers[i].found);
            *keepers[i].kept = keepers[i].found;
        }
}

static int keeps(hs_py *keeper, const char *name, int kind)
{
    if (states[kind] == NOT_LENT)
        return 1;
    hs_py *value = keeper ? hs_py_api.PyObject_GetAttrString(keeper, name) : NULL;
    if (!value)
        hs_py_api.PyErr_Clear();
    else
        hs_py_api.Py_DecRef(value);
    return value == &lent[kind].object;
}

/* NULL, or the value whose place is not known. When the values can be referred to. */
const char *hs_python_lost(void)
{
    if (!keeps(hs_py_request.thread, "_native_id", NUMBER))
        return "the module threading is not imported completely";
    if (!keeps(hs_py_request.logging, "_startTime", TIME))
        return "the module logging is not imported completely";
    if (states[NUMBER] == NOT_LENT)
        hs_python_forget(&hs_py_request.thread);
    return NULL;
}

/* The time now, as `logging` would get it. */
hs_py *hs_python_time(void)
{
    return ((hs_py * (*)(hs_py *, hs_py *)) functions[TIME])(hs_py_request.time, NULL);
}

/* From now on it is an object like others, but is never freed. */
void hs_python_open_lent(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (states[kind] == NOT_LENT)
            continue;
        mprotect(&lent[kind], PAGE, PROT_READ | PROT_WRITE);
        lent[kind].object.references += 1 << 20;
    }
}

#endif
