/* Finds functions of the kernel's own library (vDSO) without libc's help. */
#ifndef KERNELS_FUNCTION_H
#define KERNELS_FUNCTION_H

#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

/* Returns the address of a function whose name contains this; NULL if there is none. */
static inline void *kernels_function(const char *name)
{
    const char *const base = (const char *)getauxval(AT_SYSINFO_EHDR);
    const ElfW(Ehdr) *const head = (const ElfW(Ehdr) *)base;
    const ElfW(Phdr) *part = (const ElfW(Phdr) *)(base + head->e_phoff);
    while (part->p_type != PT_DYNAMIC)
        part++;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    size_t size = 0;
    for (const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(base + part->p_vaddr); entry->d_tag != DT_NULL; entry++) {
        const char *const place = entry->d_un.d_ptr < (uintptr_t)base ? base + entry->d_un.d_ptr : (const char *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)place;
        else if (entry->d_tag == DT_STRTAB)
            names = place;
        else if (entry->d_tag == DT_STRSZ)
            size = entry->d_un.d_val;
    }
    /* The names lie behind the symbols. */
    for (const ElfW(Sym) *symbol = symbols + 1; (const char *)(symbol + 1) <= names && symbol->st_name < size; symbol++)
        if (strstr(names + symbol->st_name, name))
            return (void *)(uintptr_t)(base + symbol->st_value);
    return NULL;
}

#endif
