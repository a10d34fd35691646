// RUN: %clang_cc1 -triple x86_64-unknown-linux-gnu -std=c++17 -emit-llvm -o - %s | FileCheck %s

namespace shape {
struct Circle {
  double radius;
  double area() const;
};
// CHECK-DAG: define{{.*}} double @_ZNK5shape6Circle4areaEv(
double Circle::area() const { return 3.14 * radius * radius; }

template <typename T> T twice(T t) { return t + t; }
// CHECK-DAG: define {{.*}}i32 @_ZN5shape5twiceIiEET_S1_(
template int twice<int>(int);
} // namespace shape
