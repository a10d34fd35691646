/* What differs between processors: the order of clone's arguments, relocation types. */
#ifndef HOTSTART_ARCH_H
#define HOTSTART_ARCH_H

#include <elf.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define HS_JUMP_SLOT R_X86_64_JUMP_SLOT
static inline long hs_clone(unsigned long flags, int *parent_tid, int *child_tid)
{
    return syscall(SYS_clone, flags, 0L, parent_tid, child_tid, 0L);
}
#elif defined(__aarch64__)
#define HS_JUMP_SLOT R_AARCH64_JUMP_SLOT
static inline long hs_clone(unsigned long flags, int *parent_tid, int *child_tid)
{
    return syscall(SYS_clone, flags, 0L, parent_tid, 0L, child_tid);
}
#else
#error "hotstart's runtime knows x86-64 and aarch64 only"
#endif

#endif
