; RUN: opt -S -passes=loop-unroll-full < %s | FileCheck %s
; RUN: opt -S -passes='loop-unroll' -unroll-count=2 -unroll-runtime < %s | FileCheck %s --check-prefix=TWO

; Four iterations become four calls.
define void @four() {
; CHECK-LABEL: define void @four(
; CHECK-COUNT-4: call void @body(
; CHECK-NOT:     call void @body(
; CHECK:         ret void
; TWO-LABEL: define void @four(
; TWO:         call void @body(
; TWO:         call void @body(
; TWO:         br
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  call void @body(i32 %i)
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 4
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

declare void @body(i32)
