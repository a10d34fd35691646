; RUN: opt -disable-output '-passes=print<scalar-evolution>' < %s 2>&1 | FileCheck %s

; CHECK: %i = phi i32
; CHECK-NEXT: -->  {0,+,2}
; CHECK: Loop %loop: backedge-taken count is
define void @by_two() {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %next = add nuw nsw i32 %i, 2
  %more = icmp ult i32 %next, 50
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
