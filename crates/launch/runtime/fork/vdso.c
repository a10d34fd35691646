/* Keeps the kernel's vDSO from constructors.
 *
 * It tells the time, random bytes and the processor's number without a system call. An observer does not tell a process where it is, so that
 * libc makes system calls instead, which are judged. A zygote's loader and libc know it. For constructors it is hidden there, too, until
 * main: the auxiliary vector does not tell where it is, and nothing of it can be executed, nor the kernel's data be read. One that finds
 * functions there in spite of that ends by a fault, and the tool stays cold.
 *
 * The library is linked with -z initfirst: this runs before the constructors of all others. It leaves nothing on the tool's stack.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "runtime.h"

#define PARTS_MAX 8
#define STACK_BYTES (32 * 1024ul)

static struct {
    struct part {
        uintptr_t from, to;
        int access;
    } parts[PARTS_MAX];
    size_t count;
    Elf64_auxv_t *entry; /* of the auxiliary vector, which is ignored */
    int failed;
} vdso;

static char own_stack[STACK_BYTES] __attribute__((aligned(64)));

/* "[vdso]", and "[vvar]" or "[vvar_vclock]". */
static int is_data(const char *path)
{
    return path[0] == '[' && path[1] == 'v' && path[2] == 'v' && path[3] == 'a' && path[4] == 'r';
}

static int is_code(const char *path)
{
    return path[0] == '[' && path[1] == 'v' && path[2] == 'd' && path[3] == 's' && path[4] == 'o' && path[5] == ']';
}

static void hide(void)
{
    struct hs_mapping map;
    if (!hs_is_zygote())
        return;
    for (const char *at = hs_maps_read(); at && (at = hs_maps_next(at, &map));) {
        if (!is_data(map.path) && !is_code(map.path))
            continue;
        const int access = map.access[2] == 'x' ? PROT_READ | PROT_EXEC : PROT_READ;
        if (vdso.count == PARTS_MAX || HS_SYS(SYS_mprotect, map.from, map.to - map.from, is_data(map.path) ? PROT_NONE : PROT_READ) != 0) {
            vdso.failed = 1;
            return;
        }
        vdso.parts[vdso.count++] = (struct part){map.from, map.to, access};
    }
}

__attribute__((constructor)) static void begin(int argc, char **argv, char **envp)
{
    (void)argc, (void)argv;
    if (!getauxval(AT_SYSINFO_EHDR))
        return;
    hs_call_on(own_stack + sizeof own_stack, hide);
    while (vdso.count && *envp)
        envp++;
    for (Elf64_auxv_t *entry = (Elf64_auxv_t *)(envp + 1); vdso.count && entry->a_type != AT_NULL; entry++)
        if (entry->a_type == AT_SYSINFO_EHDR) {
            entry->a_type = AT_IGNORE;
            vdso.entry = entry;
        }
}

int hs_vdso_is_hidden(void)
{
    return vdso.count > 0;
}

/* Before main. Returns 0 if it was hidden, and is as before now. */
int hs_vdso_show(void)
{
    for (size_t i = 0; i < vdso.count; i++)
        if (HS_SYS(SYS_mprotect, vdso.parts[i].from, vdso.parts[i].to - vdso.parts[i].from, vdso.parts[i].access) != 0)
            vdso.failed = 1;
    if (vdso.entry)
        vdso.entry->a_type = AT_SYSINFO_EHDR;
    vdso.entry = NULL;
    vdso.count = 0;
    return vdso.failed ? -1 : 0;
}
