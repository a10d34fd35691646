// RUN: %clang_cc1 -ffreestanding -fsyntax-only -verify %s
// RUN: env CPATH=%S/Inputs/nowhere %clang_cc1 -ffreestanding -fsyntax-only -verify %s
// expected-no-diagnostics
#include <stddef.h>
#include <stdint.h>

_Static_assert(sizeof(uint64_t) == 8, "");
_Static_assert(offsetof(struct { char c; int32_t i; }, i) == 4, "");
