// RUN: rm -rf %t && split-file %s %t
// RUN: %clang_cc1 -E -P -I %t/include %t/main.c | FileCheck %s
// RUN: cd %t && %clang_cc1 -E -P -I include main.c > %t/relative.i
// RUN: FileCheck %s < %t/relative.i
// RUN: not %clang_cc1 -E %t/main.c 2>&1 | FileCheck %s --check-prefix=MISSING

// CHECK: int value = 40 + 2;
// MISSING: main.c:1:10: fatal error: 'constants.h' file not found

//--- include/constants.h
#pragma once
#define FORTY 40
//--- main.c
#include "constants.h"
#include "constants.h"
int value = FORTY + 2;
