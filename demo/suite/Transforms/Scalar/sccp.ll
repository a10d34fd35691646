; RUN: opt -S -passes=sccp < %s | FileCheck %s

; The branch is decided by a constant that only propagation finds.
define i32 @decided() {
; CHECK-LABEL: define i32 @decided(
; CHECK-NOT:     br i1
; CHECK-NOT:     @dead_arm
; CHECK:         ret i32 11
entry:
  %x = add i32 4, 6
  %c = icmp eq i32 %x, 10
  br i1 %c, label %yes, label %no
yes:
  %r = add i32 %x, 1
  ret i32 %r
no:
  call void @dead_arm()
  ret i32 0
}

; CHECK: declare void @dead_arm()
declare void @dead_arm()
