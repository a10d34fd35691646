/* Tests of runtime/deferred/flags.c: code by its bytes, as an assembler makes them. */
#include "../../deferred/flags.c"
#include "unit.h"

#if HS_RESETS

static int is_set_anew(const char *code)
{
    return hs_flags_are_set_anew((uintptr_t)code);
}

static void comparisons_set_flags(void)
{
    CHECK(is_set_anew("\x80\x3a\x40"));                 /* cmpb $0x40, (%rdx) */
    CHECK(is_set_anew("\x85\xc0"));                     /* test %eax, %eax */
    CHECK(is_set_anew("\x0f\xb6\x02\x84\xc0"));         /* movzbl (%rdx), %eax; test %al, %al */
    CHECK(is_set_anew("\x8a\x02\x48\x8d\x7a\x01\x84\xc0")); /* mov (%rdx), %al; lea 1(%rdx), %rdi; test %al, %al */
    CHECK(is_set_anew("\x48\x8b\x44\x24\x08\x48\x39\xd0")); /* mov 8(%rsp), %rax; cmp %rdx, %rax */
    CHECK(is_set_anew("\x48\x8b\x05\x78\x56\x34\x12\x29\xc8")); /* mov 0x12345678(%rip), %rax; sub %ecx, %eax */
    CHECK(is_set_anew("\x8b\x04\x8d\x78\x56\x34\x12\x3c\x2d")); /* mov 0x12345678(,%rcx,4), %eax; cmp $0x2d, %al */
    CHECK(is_set_anew("\xf6\x07\x01"));                 /* testb $1, (%rdi) */
    CHECK(is_set_anew("\xe8\x01\0\0\0\xc3\x85\xc0"));     /* call of a function that has test %eax, %eax */
    CHECK(is_set_anew("\xf3\x0f\x1e\xfa\x85\xc0"));      /* endbr64; test %eax, %eax */
}

static void what_reads_flags_or_is_not_known_is_noticed(void)
{
    CHECK(!is_set_anew("\x74\x02"));                    /* je */
    CHECK(!is_set_anew("\x8a\x02\x7a\x02"));            /* mov (%rdx), %al; jp */
    CHECK(!is_set_anew("\x80\x12\x01"));                /* adcb $1, (%rdx) */
    CHECK(!is_set_anew("\x12\x02"));                    /* adc (%rdx), %al */
    CHECK(!is_set_anew("\x1b\x02"));                    /* sbb (%rdx), %eax */
    CHECK(!is_set_anew("\x0f\x94\xc0"));                /* sete %al */
    CHECK(!is_set_anew("\x0f\x44\xc1"));                /* cmove %ecx, %eax */
    CHECK(!is_set_anew("\xc3"));                        /* ret: an assembler's function may give flags back */
    CHECK(!is_set_anew("\xe8\x01\0\0\0\x90\x0f\x94\xc0")); /* call of a function that has sete %al */
    CHECK(!is_set_anew("\xf3\x66\xb8\x01\0\x9f\x0f\x94\xc0\x31\xc0")); /* mov $1, %ax with one more prefix; lahf */
    CHECK(!is_set_anew("\x9c"));                        /* pushf */
    CHECK(!is_set_anew("\x8a\x02\x8a\x01\x84\xc0"));     /* mov (%rdx), %al; mov (%rcx), %al, which may fault; test %al, %al */
    CHECK(!is_set_anew("\x8a\x02\x80\x39\x01"));         /* mov (%rdx), %al; cmpb $1, (%rcx) */
    CHECK(!is_set_anew("\x8a\x02\x55\x84\xc0"));         /* mov (%rdx), %al; push %rbp; test %al, %al */
    CHECK(!is_set_anew("\xff\xc0"));                    /* inc %eax leaves the carry flag */
    CHECK(!is_set_anew("\xc5\xfd\x74\x0f"));            /* vpcmpeqb (%rdi), %ymm0, %ymm1 */
    CHECK(!is_set_anew("\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x85\xc0"));
}

const struct unit_test tests_of_flags[] = {
    {"flags: comparisons set flags", comparisons_set_flags},
    {"flags: what reads flags or is not known is noticed", what_reads_flags_or_is_not_known_is_noticed},
    {NULL, NULL},
};

#else

const struct unit_test tests_of_flags[] = {{NULL, NULL}};

#endif
