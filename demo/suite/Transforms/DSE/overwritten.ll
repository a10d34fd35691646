; RUN: opt -S -passes=dse < %s | FileCheck %s

define void @overwritten(ptr %p) {
; CHECK-LABEL: define void @overwritten(
; CHECK-NEXT:    store i32 2, ptr %p
; CHECK-NEXT:    ret void
  store i32 1, ptr %p, align 4
  store i32 2, ptr %p, align 4
  ret void
}

; Stores to a slot that dies are dead.
define void @local() {
; CHECK-LABEL: define void @local(
; CHECK-NOT:     store
; CHECK:         ret void
  %slot = alloca i32, align 4
  store i32 1, ptr %slot, align 4
  ret void
}
