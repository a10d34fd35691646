/* Slots and ways: trampolines that make system calls in place of the tool's own instructions (gate.c).
 *
 * A slot replaces an instruction of libc or ld.so, which now jumps there. The slot asks calls.c by a plain call, makes the system call, and
 * jumps back. A way serves any other instruction: the gate's signal handler has asked calls.c already, so the way only makes the call and
 * jumps back. Both leave every register as the kernel would have left it at the tool's instruction.
 *
 * In the first thread a slot works on a stack of the runtime's, so that it leaves nothing on the tool's: a function that is called later
 * may read what it has not written.
 */
#define _GNU_SOURCE
/* A patched call keeps vector registers, as the system call would. */
#pragma GCC target("general-regs-only")
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "runtime.h"

#if HS_RESETS

#define SLOT_BYTES 128
#define SLOTS 256
#define WAYS 256
#define WAY_BYTES 16
/* Of the runtime's stack, below which nothing is mapped. */
#define STACK_BYTES (64 * 1024ul)

/* Offsets in a slot. rcx and r11 are free, as a system call changes them; the flags are not.
 *    0 what loads the number, or nothing     5 mov %fs:0, %r11           14 mov work(%rip), %rcx
 *   21 lea (%r11, %rcx), %rcx: 0 in the first thread                     25 lea native(%rip), %r11
 *   32 jrcxz first                          34 jmp hs_gate_entry         39 first: jmp hs_gate_entry_first
 *   44 native: syscall                      46 mov made(%rip), %rcx: where the site has made it, as the kernel would leave it
 *   53 cmp $-4096, %rax if the site has that, or nothing                 59 jmp *back(%rip)
 *   72 back: where the site goes on         80 made */
#define NATIVE 44
#define BACK 72
#define MADE 80

/* To an unwinder a slot is a frame that was called, with all registers, from the address in it (at BACK; register 16 is rip). */
__asm__(".pushsection .text\n\t.balign 4096\n\t.globl hs_gate_slots\n\t.hidden hs_gate_slots\n"
        "hs_gate_slots:\n\t.cfi_startproc simple\n\t.cfi_signal_frame\n\t.cfi_def_cfa rsp, 0\n\t"
        ".cfi_escape 0x10, 0x10, 0x07, 0x80, 0x00, 0x09, 0x80, 0x1a, 0x23, 0x48\n\t"
        ".fill 32768, 1, 0xcc\n\t.cfi_endproc\n\t.balign 4096\n\t.popsection");
extern unsigned char hs_gate_slots[SLOTS * SLOT_BYTES];

/* A slot's call, as hs_gate_entry makes it. */
struct passage {
    struct hs_system_call call;
    uintptr_t rbp, rbx;
    uintptr_t next;  /* the slot's native part */
    uintptr_t stack; /* as it is in the slot */
    uint64_t flags;
};

/* Where the first thread works. `is_free` is 0 while it does: a handler that interrupts it then works on the stack that it has. One that
 * leaves by siglongjmp leaves it so for the rest of the run. */
__attribute__((used)) static struct {
    uintptr_t minus_first; /* the thread's pointer, negated */
    uintptr_t high;
    uint32_t is_free;
} work;

/* Slot i, for i < count, goes on at back[i]. */
static struct {
    uintptr_t back[SLOTS];
    uint32_t count;
} slots;

/* Completes the passage, calls hs_gate_called, and restores registers. The flags have been pushed; rcx has the tool's stack pointer, and
 * r11 the address of the slot's native part. */
#define ASK \
    "push %rcx\n\tpush %r11\n\tpush %rbx\n\tpush %rbp\n\t" \
    "push %r9\n\tpush %r8\n\tpush %r10\n\tpush %rdx\n\tpush %rsi\n\tpush %rdi\n\tpush %rax\n\t" \
    /* The frame is rbx+80 -> stack; registers are at rbx+n, and the address that follows is in the slot that rbx+72 leads to. */ \
    "mov %rsp, %rbx\n\t.cfi_escape 0x0f, 0x04, 0x73, 0xd0, 0x00, 0x06\n\t" \
    ".cfi_escape 0x10, 0x10, 0x06, 0x73, 0xc8, 0x00, 0x06, 0x23, 0x1c\n\t" \
    ".cfi_escape 0x10, 0x03, 0x03, 0x73, 0xc0, 0x00\n\t.cfi_escape 0x10, 0x06, 0x02, 0x73, 0x38\n\t" \
    ".cfi_escape 0x10, 0x09, 0x02, 0x73, 0x30\n\t.cfi_escape 0x10, 0x08, 0x02, 0x73, 0x28\n\t" \
    ".cfi_escape 0x10, 0x0a, 0x02, 0x73, 0x20\n\t.cfi_escape 0x10, 0x01, 0x02, 0x73, 0x18\n\t" \
    ".cfi_escape 0x10, 0x04, 0x02, 0x73, 0x10\n\t.cfi_escape 0x10, 0x05, 0x02, 0x73, 0x08\n\t" \
    ".cfi_escape 0x10, 0x00, 0x02, 0x73, 0x00\n\t" \
    "mov %rsp, %rdi\n\tand $-16, %rsp\n\tcld\n\tcall hs_gate_called\n\tmov %rbx, %rsp\n\t" \
    "pop %rax\n\tpop %rdi\n\tpop %rsi\n\tpop %rdx\n\tpop %r10\n\tpop %r8\n\tpop %r9\n\tpop %rbp\n\tpop %rbx\n\tpop %rcx\n\t"
/* To an unwinder the entries are a part of the slot's frame; r11 leads to its native part. */
#define OF_SLOT ".cfi_signal_frame\n\t.cfi_def_cfa rsp, 0\n\t.cfi_escape 0x10, 0x10, 0x02, 0x7b, 0x1c\n\t"

/* The entries restore the flags that the call came with, and leave a copy in r11, as the kernel would. */
__attribute__((naked, used)) static void hs_gate_entry(void)
{
    __asm__(OF_SLOT "mov %rsp, %rcx\n\t.cfi_def_cfa rcx, 0\n\tlea -128(%rsp), %rsp\n\tpushfq\n\t" ASK
                    "lea 8(%rsp), %rsp\n\t.cfi_def_cfa rsp, 136\n\tmov (%rsp), %r11\n\tpopfq\n\tlea 128(%rsp), %rsp\n\t"
                    ".cfi_def_cfa rsp, 0\n\tjmp *%rcx");
}

__attribute__((naked, used)) static void hs_gate_entry_first(void)
{
    __asm__(OF_SLOT "mov work+16(%rip), %ecx\n\tjrcxz 1f\n\tmovl $0, work+16(%rip)\n\tmov work+8(%rip), %rcx\n\t"
                    "xchg %rcx, %rsp\n\t.cfi_def_cfa rcx, 0\n\tpushfq\n\t" ASK
                    "pop %r11\n\t.cfi_def_cfa r11, 0\n\tpopfq\n\txchg %r11, %rsp\n\t.cfi_def_cfa rsp, 0\n\t"
                    "mov -8(%r11), %r11\n\tmovl $1, work+16(%rip)\n\tjmp *%rcx\n1:\tjmp hs_gate_entry");
}
_Static_assert(sizeof(struct passage) == 96, "as hs_gate_entry makes it");

/* A patched site was reached: makes the call, or leaves it to the slot. */
__attribute__((used)) static void hs_gate_called(struct passage *passage)
{
    const struct hs_call_place place = {*(const uintptr_t *)(passage->next - NATIVE + BACK), passage->stack, NULL};
    /* Between two runs the runtime itself calls libc. */
    if (!hs_gate_follows())
        return;
    void *const before = hs_cancel_begin(NULL);
    const enum hs_call_outcome outcome = hs_call_decide(&passage->call, &place);
    hs_cancel_end(before);
    hs_watch_wipe();
    switch (outcome) {
    case HS_CALL_DONE: passage->next += HS_CALL_BYTES; break;
    case HS_CALL_AT_SITE: hs_gate_reveal(); break;
    case HS_CALL_ARRIVES: passage->next = hs_watch_arrive_by_slot(passage->next - NATIVE, passage->flags); break;
    case HS_CALL_VFORKS: passage->next = (uintptr_t)hs_children_branch; break;
    default: break;
    }
}

/* Ways by which calls that came by a signal are made and go on, one for each instruction that has made one in this run:
 *   0 syscall   2 mov place(%rip), %rcx   9 jmp *%rcx
 * The stack is the tool's meanwhile: a signal that interrupts the call, and a call that asks where it is, find it as it was, and the
 * way back is where neither the call nor another thread can reach it. The kernel leaves in rcx where a call was made, and in r11 the
 * flags, which no instruction here changes. */
#ifdef HS_WITHOUT_RCX
#define BY "%r11"
#else
#define BY "%rcx"
#endif
__asm__(".pushsection .text\n\t.balign 16\n\t.globl hs_gate_ways\n\t.hidden hs_gate_ways, hs_gate_places\nhs_gate_ways:\n\t"
        ".set hs_gate_way, 0\n\t.rept 256\n\t.balign 16, 0xcc\n\tsyscall\n\tmov hs_gate_places+8*hs_gate_way(%rip), " BY
        "\n\tjmp *" BY "\n\t.set hs_gate_way, hs_gate_way+1\n\t.endr\n\t.balign 16, 0xcc\n\t.popsection");
extern const unsigned char hs_gate_ways[WAYS * WAY_BYTES];
/* Where each way goes on; 0 if it is free. Any thread takes one, and none gives one back in a run. */
uintptr_t hs_gate_places[WAYS] HS_HIDDEN;

/* The way of calls that go on there; 0 if there are no more. */
uintptr_t hs_slots_way(uintptr_t back)
{
    for (uint32_t i = 0; i < WAYS; i++) {
        uintptr_t found = 0;
        if (__atomic_compare_exchange_n(&hs_gate_places[i], &found, back, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || found == back)
            return (uintptr_t)hs_gate_ways + i * WAY_BYTES;
    }
    return 0;
}

int hs_slots_is_call(uintptr_t place)
{
    static const unsigned char code[HS_CALL_BYTES] = {0x0f, 0x05};
    return memcmp((const void *)place, code, sizeof code) == 0;
}

/* Where a site that goes on at `back` makes its call: right before, or before the comparison that was replaced as well. */
static uintptr_t made_at(uintptr_t back)
{
    return hs_slots_is_call(back - HS_CALL_BYTES) ? back : back - HS_TAIL_BYTES + HS_CALL_BYTES;
}

/* A slot for a site; `load` is NULL if the number is there already. */
static void write_slot(unsigned char *slot, const unsigned char *load, uintptr_t back)
{
    static const unsigned char code[] = {
        0x0f, 0x1f, 0x44, 0x00, 0x00, 0x64, 0x4c, 0x8b, 0x1c, 0x25, 0,    0,    0,    0,    0x48, 0x8b, 0x0d, 0,    0,    0,    0,    0x49,
        0x8d, 0x0c, 0x0b, 0x4c, 0x8d, 0x1d, 12,   0,    0,    0,    0xe3, 5,    0xe9, 0,    0,    0,    0,    0xe9, 0,    0,    0,    0,
        0x0f, 0x05, 0x48, 0x8b, 0x0d, 27,   0,    0,    0,    0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xff, 0x25, 7,    0,    0,    0};
    static const unsigned char compare[] = {0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff};
    const uintptr_t made = made_at(back);
    const struct {
        int at;
        uintptr_t target;
    } relative[] = {{17, (uintptr_t)&work}, {35, (uintptr_t)hs_gate_entry}, {40, (uintptr_t)hs_gate_entry_first}};
    memcpy(slot, code, sizeof code);
    if (load)
        memcpy(slot, load, HS_MOVE_BYTES);
    for (size_t i = 0; i < sizeof relative / sizeof *relative; i++) {
        unsigned char *const place = slot + relative[i].at;
        const int32_t distance = (int32_t)(relative[i].target - (uintptr_t)(place + sizeof distance));
        memcpy(place, &distance, sizeof distance);
    }
    if (made != back)
        memcpy(slot + NATIVE + 9, compare, sizeof compare);
    memcpy(slot + BACK, &back, sizeof back);
    memcpy(slot + MADE, &made, sizeof made);
}

/* The slot of a site that goes on at `back`; NULL if it has none. */
const unsigned char *hs_slots_find(uintptr_t back)
{
    for (uint32_t i = 0; i < slots.count; i++)
        if (slots.back[i] == back)
            return hs_gate_slots + (size_t)i * SLOT_BYTES;
    return NULL;
}

/* The same, and makes it, while there is one thread only: NULL if there are no more. `load` is what loads the number, or NULL. */
const unsigned char *hs_slots_make(uintptr_t back, const unsigned char *load)
{
    const unsigned char *found = hs_slots_find(back);
    unsigned char *slot = hs_gate_slots + (size_t)slots.count * SLOT_BYTES;
    if (found || slots.count == SLOTS || !hs_gate_set_writable((uintptr_t)slot, (uintptr_t)slot + SLOT_BYTES, 1))
        return found;
    write_slot(slot, load, back);
    slots.back[slots.count++] = back;
    return hs_gate_set_writable((uintptr_t)slot, (uintptr_t)slot + SLOT_BYTES, 0) ? slot : NULL;
}

/* Whether the code at `place` sets the flags of arithmetic before it reads any. Of a slot, that is the code behind its call. */
int hs_slots_set_flags_anew(uintptr_t place)
{
    const uintptr_t number = (place - (uintptr_t)hs_gate_slots) / SLOT_BYTES;
    if (number >= slots.count)
        return hs_flags_are_set_anew(place);
    const uintptr_t back = slots.back[number];
    return made_at(back) != back || hs_flags_are_set_anew(back);
}

/* Makes all slots writable, or read-only. */
int hs_slots_set_writable(int is)
{
    return hs_gate_set_writable((uintptr_t)hs_gate_slots, (uintptr_t)hs_gate_slots + sizeof hs_gate_slots, is);
}

/* Changes the registers of a thread in a slot to those that it has where the slot stands for: before the system call or behind it. Returns
 * whether that is possible. */
static int leave_slot(long long *regs)
{
    enum { BEHIND_CALL = NATIVE + HS_CALL_BYTES, COMPARED = NATIVE + 15 };
    const uintptr_t slot = (uintptr_t)regs[REG_RIP] & -(uintptr_t)SLOT_BYTES, at = (uintptr_t)regs[REG_RIP] - slot;
    const uintptr_t back = *(const uintptr_t *)(slot + BACK), made = *(const uintptr_t *)(slot + MADE);
    const int has_tail = made != back;
    const greg_t carry = 1, zero = 1 << 6, others = 1 << 2 | 1 << 4 | 1 << 7 | 1 << 11;
    if (at < NATIVE)
        return 0;
    /* The kernel leaves there where the call was made. */
    if ((uintptr_t)regs[REG_RCX] == slot + BEHIND_CALL)
        regs[REG_RCX] = (greg_t)made;
    regs[REG_RIP] = (greg_t)(at == NATIVE ? made - HS_CALL_BYTES : back);
    if (has_tail && at >= BEHIND_CALL && at < COMPARED) {
        /* The comparison that was replaced. */
        regs[REG_EFL] &= ~(carry | zero | others);
        regs[REG_EFL] |= ((unsigned long)regs[REG_RAX] < -4096ul ? carry : 0) | (regs[REG_RAX] == -4096 ? zero : 0);
    }
    /* A thread that has made the call stands behind the comparison here, and before it in other processes. */
    return !has_tail || at == NATIVE;
}

/* Does the same for a thread on a way. */
static void leave_way(long long *regs)
{
    const uintptr_t from = (uintptr_t)regs[REG_RIP] - (uintptr_t)hs_gate_ways, made = (uintptr_t)hs_gate_ways + HS_CALL_BYTES;
    const uintptr_t back = hs_gate_places[from / WAY_BYTES], at = from % WAY_BYTES;
    if ((uintptr_t)regs[REG_RCX] == made + from - at)
        regs[REG_RCX] = (greg_t)back;
    regs[REG_RIP] = (greg_t)(at == 0 ? back - HS_CALL_BYTES : back);
}

/* Changes the registers of a thread that makes a system call for the tool to those where the tool made that. Returns 0 if the thread is
 * elsewhere. */
int hs_slots_leave(long long *regs)
{
    const uintptr_t at = (uintptr_t)regs[REG_RIP], first = (uintptr_t)hs_gate_slots, ways = (uintptr_t)hs_gate_ways;
    if (at >= first && at < first + (uintptr_t)slots.count * SLOT_BYTES)
        return leave_slot(regs);
    if (at < ways || at >= ways + sizeof hs_gate_ways)
        return 0;
    leave_way(regs);
    return 1;
}

/* Takes memory to work in, in the zygote, when the tool's has been saved; -1 if there is none. */
int hs_slots_take_stack(void)
{
    void *made = hs_own_map(STACK_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (made == MAP_FAILED)
        return -1;
    work.minus_first = -(uintptr_t)__builtin_thread_pointer();
    work.high = (uintptr_t)made + STACK_BYTES;
    return 0;
}

/* Before each run. */
void hs_slots_begin(void)
{
    work.is_free = work.high != 0;
    for (uint32_t i = 0; i < WAYS && hs_gate_places[i]; i++)
        hs_gate_places[i] = 0;
}

#endif
