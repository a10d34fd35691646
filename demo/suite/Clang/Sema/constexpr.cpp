// RUN: %clang_cc1 -std=c++20 -fsyntax-only -verify %s
// RUN: %clang_cc1 -std=c++20 -fsyntax-only -verify -DGOOD %s

constexpr int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

static_assert(factorial(5) == 120);
#ifndef GOOD
static_assert(factorial(4) == 25); // expected-error-re {{static{{_assert| assertion}} failed{{.*}}}} expected-note 0-1 {{evaluates to '24 == 25'}}
#else
// expected-no-diagnostics
#endif
