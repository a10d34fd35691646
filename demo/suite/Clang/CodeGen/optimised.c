// Front end, optimiser, back end, one after another.
// REQUIRES: x86-registered-target
// RUN: %clang_cc1 -triple x86_64-unknown-linux-gnu -O1 -disable-llvm-passes -emit-llvm -o - %s \
// RUN:   | opt -S -passes='default<O2>' \
// RUN:   | FileCheck %s --check-prefix=IR
// RUN: %clang_cc1 -triple x86_64-unknown-linux-gnu -O2 -S -o - %s | FileCheck %s --check-prefix=ASM

int triangle(void) {
  int sum = 0;
  for (int i = 1; i <= 20; ++i)
    sum += i;
  return sum;
}
// IR-LABEL: @triangle(
// IR:         ret i32 210
// ASM-LABEL: triangle:
// ASM:        movl $210, %eax
