; RUN: opt -S -passes='default<O2>' < %s | FileCheck %s
; RUN: opt -S -passes='default<O0>' < %s | FileCheck %s --check-prefix=O0

; The loop that sums 1 to 10 is a number.
define i32 @sum() {
; CHECK-LABEL: define {{.*}}i32 @sum()
; CHECK:         ret i32 55
; O0-LABEL: define i32 @sum()
; O0:           phi i32
; O0:           phi i32
entry:
  br label %loop
loop:
  %i = phi i32 [ 1, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %more, %loop ]
  %more = add i32 %sum, %i
  %next = add i32 %i, 1
  %done = icmp sgt i32 %next, 10
  br i1 %done, label %exit, label %loop
exit:
  ret i32 %more
}
