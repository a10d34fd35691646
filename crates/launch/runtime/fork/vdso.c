/* Keeps the kernel's vDSO from constructors.
 *
 * It tells the time, random bytes and the processor's number without a system call. A constructor that asks it, by libc or by itself
 * (getauxval), would have each run believe what the zygote was told, and no observer would notice. So nothing of it can be executed until
 * main. An observer sees the fault, and in a zygote it is the end: the tool stays cold. Where the kernel seals its pages
 * (CONFIG_MSEAL_SYSTEM_MAPPINGS), an observer does not tell a process where they are (sys/vdso.rs), and libc asks by system calls.
 *
 * The library is linked with -z initfirst: this runs before the constructors of all others, unless another library has that place, too.
 * So an observer hides it before the first instruction, and its data as well. It leaves nothing on the tool's stack.
 */
#define _GNU_SOURCE
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "runtime.h"

#define PAGE 4096ul
#define STACK_BYTES (32 * 1024ul)

static struct {
    uintptr_t from;
    size_t size; /* 0 if it is not hidden */
} vdso;

static char own_stack[STACK_BYTES] __attribute__((aligned(64)));

static int protect(int access)
{
    return HS_SYS(SYS_mprotect, vdso.from, vdso.size, access) == 0 ? 0 : -1;
}

static void hide(void)
{
    const ElfW(Ehdr) *const head = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
    const ElfW(Phdr) *const parts = (const ElfW(Phdr) *)((uintptr_t)head + head->e_phoff);
    size_t end = 0;
    for (int i = 0; i < head->e_phnum; i++)
        if (parts[i].p_type == PT_LOAD && parts[i].p_vaddr + parts[i].p_memsz > end)
            end = parts[i].p_vaddr + parts[i].p_memsz;
    vdso.from = (uintptr_t)head;
    vdso.size = (end + PAGE - 1) & -PAGE;
    if (protect(PROT_READ) != 0)
        vdso.size = 0;
}

#if HS_RESETS
__attribute__((used)) static void *const own_stack_top = own_stack + sizeof own_stack;

__attribute__((used)) static void begin_apart(int argc, char **argv, char **envp)
{
    if (!hs_is_zygote())
        return;
    hs_asked_begin(&(struct hs_start){argc, argv, envp});
    if (getauxval(AT_SYSINFO_EHDR))
        hide();
}

/* Leaves nothing on the tool's stack, nor in its vector registers. */
__attribute__((naked, constructor)) static void begin(void)
{
    __asm__("mov %rsp, %rax\n\tmov own_stack_top(%rip), %rsp\n\tpush %rax\n\tpush %rax\n\t" HS_WITH_VECTORS("call begin_apart")
            "pop %rax\n\tpop %rsp\n\tret");
}
#else
static void begin_apart(void)
{
    if (hs_is_zygote())
        hide();
}

__attribute__((constructor)) static void begin(void)
{
    if (getauxval(AT_SYSINFO_EHDR))
        hs_call_on(own_stack + sizeof own_stack, begin_apart);
}
#endif

int hs_vdso_is_hidden(void)
{
    return vdso.size > 0;
}

/* Before main. Returns 0 if it is as it was. */
int hs_vdso_show(void)
{
    const int failed = vdso.size && protect(PROT_READ | PROT_EXEC) != 0;
    vdso.size = 0;
    return failed ? -1 : 0;
}
