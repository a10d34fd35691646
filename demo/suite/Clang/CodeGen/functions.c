// RUN: %clang_cc1 -triple x86_64-unknown-linux-gnu -emit-llvm -o - %s | FileCheck %s
// RUN: %clang_cc1 -triple i386-unknown-linux-gnu -emit-llvm -o - %s | FileCheck %s --check-prefix=I386

// CHECK-LABEL: define{{.*}} i64 @length(
// I386-LABEL: define{{.*}} i32 @length(
unsigned long length(const char *s) {
  const char *p = s;
  while (*p)
    ++p;
  return p - s;
}

struct pair { long a, b; };

// CHECK-LABEL: define{{.*}} i64 @first(
// CHECK-SAME: i64 {{.*}}, i64
long first(struct pair p) { return p.a; }
