; RUN: opt -passes=aa-eval -print-all-alias-modref-info -disable-output < %s 2>&1 | FileCheck %s

; CHECK-LABEL: Function: fields
; CHECK-DAG: NoAlias:{{.*}}%first{{.*}}%second
; CHECK-DAG: MayAlias:{{.*}}%first{{.*}}%other
define void @fields(ptr %p, ptr %other) {
  %first = getelementptr { i32, i32 }, ptr %p, i32 0, i32 0
  %second = getelementptr { i32, i32 }, ptr %p, i32 0, i32 1
  store i32 1, ptr %first
  store i32 2, ptr %second
  store i32 3, ptr %other
  ret void
}
