; RUN: opt -S -passes=indvars,loop-deletion < %s | FileCheck %s

; The value at the exit is known without running the loop.
define i32 @sum_of_steps() mustprogress {
; CHECK-LABEL: define i32 @sum_of_steps(
; CHECK:         ret i32 300
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %sum.next = add i32 %sum, 3
  %next = add nuw nsw i32 %i, 1
  %done = icmp eq i32 %next, 100
  br i1 %done, label %exit, label %loop
exit:
  ret i32 %sum.next
}
