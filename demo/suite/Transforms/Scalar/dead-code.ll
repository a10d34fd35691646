; RUN: opt -S -passes=dce < %s | FileCheck %s --check-prefixes=CHECK,DCE
; RUN: opt -S -passes=adce < %s | FileCheck %s --check-prefixes=CHECK,ADCE

define i32 @unused(i32 %x) {
; CHECK-LABEL: define i32 @unused(
; CHECK-NEXT:    ret i32 %x
  %dead = mul i32 %x, 77
  %deader = add i32 %dead, 1
  ret i32 %x
}

; Only the aggressive one removes values that keep each other alive.
define void @cycle(i1 %c) {
; CHECK-LABEL: define void @cycle(
; DCE:           phi i32
; ADCE-NOT:      phi i32
; CHECK:         ret void
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %next = add i32 %i, 1
  call void @effect()
  br i1 %c, label %loop, label %exit
exit:
  ret void
}

declare void @effect()
