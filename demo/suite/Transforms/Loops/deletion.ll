; RUN: opt -S -passes=loop-deletion < %s | FileCheck %s

; A loop without effect that must end is no loop.
define void @idle(i32 %n) mustprogress {
; CHECK-LABEL: define void @idle(
; CHECK-NOT:   loop:
; CHECK:         ret void
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
