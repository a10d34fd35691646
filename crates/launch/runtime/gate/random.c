/* Has libc ask the kernel for random bytes, and not the vDSO.
 *
 * Since glibc 2.41 libc allocates states for the vDSO's random function, with signals blocked by a system call that cannot be patched, and
 * the function makes a system call of its own. Both would come to the gate by a signal, whose frame would stay on the tool's stack. libc
 * keeps to system calls if the size of a state is 0, as on older kernels. It has that size in its data, behind what else the vDSO has told
 * it when the process began. Where this is not found, a run that draws random bytes leaves such frames.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "runtime.h"

#if HS_RESETS

/* Asks for `struct told`. */
#define ASKS ((size_t)-1)

typedef long random_function(void *bytes, size_t size, unsigned flags, void *state, size_t state_size);

/* linux/random.h, vgetrandom_opaque_params. */
struct told {
    uint32_t size, access, flags, reserved[13];
};

/* As libc keeps it: `room` is the size in whole lines of the cache. */
struct kept {
    uint32_t flags, access, room, size;
};

struct search {
    struct kept wanted, *found;
    unsigned count;
};

static int is_random_function(void *place)
{
    const void *const library = (const void *)getauxval(AT_SYSINFO_EHDR);
    Dl_info info;
    return library && dladdr(place, &info) && info.dli_fbase == library && info.dli_sname && strstr(info.dli_sname, "getrandom");
}

/* The loader has the function's address in a table; NULL if there is none. */
static random_function *find_function(void)
{
    char *const table = dlsym(RTLD_DEFAULT, "_rtld_global_ro");
    const ElfW(Sym) *symbol = NULL;
    Dl_info info;
    if (!table || !dladdr1(table, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return NULL;
    for (void **at = (void **)table; (char *)(at + 1) <= table + symbol->st_size; at++)
        if (is_random_function(*at))
            return (random_function *)*at;
    return NULL;
}

static int is_libc(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_flags & PF_X && hs_gate_is_libcs(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, 1))
            return 1;
    return 0;
}

static int search_libc(struct dl_phdr_info *info, size_t size, void *data)
{
    struct search *const search = data;
    (void)size;
    if (!is_libc(info))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            continue;
        struct kept *at = (struct kept *)(info->dlpi_addr + ((part->p_vaddr + 3) & -4ul));
        for (; (uintptr_t)(at + 1) <= info->dlpi_addr + part->p_vaddr + part->p_memsz; at = (struct kept *)((uint32_t *)at + 1))
            if (at->flags == search->wanted.flags && at->access == search->wanted.access && at->size == search->wanted.size &&
                at->room >= at->size) {
                search->found = at;
                search->count++;
            }
    }
    return 0;
}

/* In the zygote. */
void hs_random_take(void)
{
    random_function *const random = find_function();
    struct told told = {0};
    if (!random || random(NULL, 0, 0, &told, ASKS) != 0)
        return;
    struct search search = {.wanted = {told.flags, told.access, 0, told.size}};
    dl_iterate_phdr(search_libc, &search);
    if (search.count == 1)
        search.found->size = 0;
}

#endif
