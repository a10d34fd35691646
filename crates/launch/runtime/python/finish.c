/* Spares a fork the end of objects that nobody can see end.
 *
 * At its end the interpreter looks for cycles among all objects, and frees them: most of the time that a warm start takes. Only
 * finalizers can be noticed. So when a fork of a zygote without any ends, all objects are examined (harmless.c). If none has a finalizer,
 * they are frozen (gc.freeze), and the interpreter frees only what no cycle keeps. Until then the collector is as in a cold start.
 *
 * The fork is about to end, and its exit functions have run, when the interpreter gives SIGINT back its default action. A fork that has
 * another handler ends as a cold start does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "python.h"

#if HS_RESETS

#define PAGE 4096

static int is_spared;
static hs_py *collector;
static int (*is_finalizing)(void);
static int (*next_sigaction)(int, const struct sigaction *, struct sigaction *);

static void collect_by(const char *name)
{
    hs_py *done = hs_py_api.PyObject_CallMethod(collector, name, NULL);
    if (!done)
        hs_python_give_up();
    hs_py_api.Py_DecRef(done);
}

/* Whether the end of each object that the collector knows goes unseen. */
static int is_harmless(int is_of_zygote)
{
    hs_py *objects = hs_py_api.PyObject_CallMethod(collector, "get_objects", NULL);
    const int is_it = objects && hs_python_ends_unseen((struct hs_py_list *)objects, is_of_zygote);
    if (objects)
        hs_py_api.Py_DecRef(objects);
    return is_it;
}

static int on_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    if (is_spared && is_finalizing()) {
        hs_py *error[3];
        hs_py_api.PyErr_Fetch(&error[0], &error[1], &error[2]);
        /* Once. */
        is_spared = 0;
        const int is_unseen = is_harmless(0);
        hs_py_api.PyErr_Clear();
        if (is_unseen)
            collect_by("freeze");
        hs_py_api.PyErr_Restore(error[0], error[1], error[2]);
    }
    return next_sigaction(signal, action, old);
}

/* Puts `on_sigaction` into the slots by which the interpreter calls that function. */
static int set_slots(const ElfW(Rela) *slots, size_t count, ElfW(Addr) base, const ElfW(Sym) *symbols, const char *strings)
{
    int found = 0;
    for (size_t i = 0; slots && i < count; i++) {
        const unsigned long kind = ELF64_R_TYPE(slots[i].r_info);
        if ((kind != R_X86_64_JUMP_SLOT && kind != R_X86_64_GLOB_DAT) ||
            strcmp(strings + symbols[ELF64_R_SYM(slots[i].r_info)].st_name, "sigaction") != 0)
            continue;
        const uintptr_t at = base + slots[i].r_offset;
        void *page = (void *)(at & ~(uintptr_t)(PAGE - 1));
        if (mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0)
            return 0;
        *(uintptr_t *)at = (uintptr_t)on_sigaction;
        found++;
    }
    return found;
}

static int hook_object(struct dl_phdr_info *info, size_t size, void *is_done)
{
    (void)size;
    const ElfW(Dyn) *dynamic = NULL;
    int is_interpreter = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const ElfW(Addr) from = info->dlpi_addr + part->p_vaddr, code = (ElfW(Addr))hs_py_api.PyObject_CallMethod;
        if (part->p_type == PT_DYNAMIC)
            dynamic = (const void *)from;
        is_interpreter |= part->p_type == PT_LOAD && code >= from && code < from + part->p_memsz;
    }
    if (!is_interpreter || !dynamic)
        return 0;
    const ElfW(Rela) *tables[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_JMPREL: tables[0] = (const void *)entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: sizes[0] = entry->d_un.d_val; break;
        case DT_RELA: tables[1] = (const void *)entry->d_un.d_ptr; break;
        case DT_RELASZ: sizes[1] = entry->d_un.d_val; break;
        case DT_SYMTAB: symbols = (const void *)entry->d_un.d_ptr; break;
        case DT_STRTAB: strings = (const void *)entry->d_un.d_ptr; break;
        }
    }
    int found = 0;
    for (int i = 0; i < 2 && symbols && strings; i++)
        found += set_slots(tables[i], sizes[i] / sizeof *tables[i], info->dlpi_addr, symbols, strings);
    *(int *)is_done = found > 0;
    return 1;
}

/* Whether the interpreter's end is noticed: it sets the action of SIGINT, as this has a handler. */
static int is_end_noticed(void)
{
    hs_py *module = hs_python_module("_signal");
    hs_py *handler = module ? hs_py_api.PyObject_CallMethod(module, "getsignal", "i", SIGINT) : NULL;
    const int is_usual = handler && handler == hs_python_attribute("_signal", "default_int_handler");
    if (handler)
        hs_py_api.Py_DecRef(handler);
    is_finalizing = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!is_finalizing)
        is_finalizing = (int (*)(void))dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    next_sigaction = (__typeof__(next_sigaction))dlsym(RTLD_NEXT, "sigaction");
    return is_usual && is_finalizing && next_sigaction;
}

/* Lets forks spare themselves their end, if that of the zygote's objects goes unseen. */
void hs_python_spare(void)
{
    int is_hooked = 0;
    hs_py *error[3];
    hs_py_api.PyErr_Fetch(&error[0], &error[1], &error[2]);
    collector = hs_python_module("gc");
    /* Imported, it would be in sys.modules. */
    hs_py *made = collector ? NULL : hs_python_builtin("gc");
    if (made)
        collector = made;
    if (collector && is_end_noticed() && is_harmless(1)) {
        dl_iterate_phdr(hook_object, &is_hooked);
        is_spared = is_hooked;
    }
    if (collector && !made)
        hs_py_api.Py_IncRef(collector);
    hs_py_api.PyErr_Clear();
    hs_py_api.PyErr_Restore(error[0], error[1], error[2]);
}

#endif
