; RUN: opt -S -passes='loop-mssa(licm)' < %s | FileCheck %s

define void @hoist(ptr %p, i32 %x, i32 %y, i32 %n) {
; CHECK-LABEL: define void @hoist(
; CHECK-NEXT:  entry:
; CHECK-NEXT:    %product = mul i32 %x, %y
; CHECK:       loop:
; CHECK-NOT:     mul
; CHECK:         br i1
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %product = mul i32 %x, %y
  %at = getelementptr i32, ptr %p, i32 %i
  store i32 %product, ptr %at, align 4
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
