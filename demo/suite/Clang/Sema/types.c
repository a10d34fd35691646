// RUN: %clang_cc1 -fsyntax-only -verify %s
// RUN: not %clang_cc1 -fsyntax-only %s 2>&1 | FileCheck %s

int *pointer;
char *text;

void assign(void) {
  pointer = 3.5; // expected-error {{assigning to 'int *' from incompatible type 'double'}}
  undeclared = 1; // expected-error {{use of undeclared identifier 'undeclared'}}
}

// CHECK: types.c:[[@LINE-4]]:11: error: assigning to 'int *'
// CHECK: 2 errors generated.
