// REQUIRES: native
// The whole driver, with its own cc1 and its integrated assembler.
// RUN: %clang -c -O1 %s -o %t.o
// RUN: llvm-nm %t.o | FileCheck %s
// RUN: %clang -S -emit-llvm -g -O0 -o - %s | FileCheck %s --check-prefix=DEBUG

// CHECK: T increment
// DEBUG: !DILocalVariable(name: "x"
int increment(int x) { return x + 1; }
