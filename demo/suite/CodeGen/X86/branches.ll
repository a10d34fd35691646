; RUN: llc -mtriple=x86_64-unknown-linux-gnu -o - %s | FileCheck %s
; RUN: llc -mtriple=x86_64-unknown-linux-gnu -O0 -o - %s | FileCheck %s --check-prefix=O0

define i32 @smaller(i32 %x, i32 %y) {
; CHECK-LABEL: smaller:
; CHECK:         cmpl
; CHECK-NEXT:    cmovl
; CHECK-NEXT:    retq
; O0-LABEL: smaller:
; O0:            retq
  %c = icmp slt i32 %x, %y
  %m = select i1 %c, i32 %x, i32 %y
  ret i32 %m
}

define void @call_if(i1 %c) {
; CHECK-LABEL: call_if:
; CHECK:         testb $1, %dil
; CHECK-NEXT:    je .LBB1_
; CHECK:         callq target@PLT
  br i1 %c, label %yes, label %no
yes:
  call void @target()
  ret void
no:
  ret void
}

declare void @target()
