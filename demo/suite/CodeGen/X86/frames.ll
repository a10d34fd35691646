; RUN: llc -mtriple=x86_64-unknown-linux-gnu -frame-pointer=all < %s | FileCheck %s --check-prefix=FP
; RUN: llc -mtriple=x86_64-unknown-linux-gnu -frame-pointer=none < %s | FileCheck %s --implicit-check-not=%%rbp

; CHECK-LABEL: spill:
; CHECK:         callq fill
; FP-LABEL: spill:
; FP:            pushq %rbp
; FP:            movq %rsp, %rbp
define i32 @spill() {
  %slot = alloca [40 x i8], align 16
  call void @fill(ptr %slot)
  %v = load i32, ptr %slot, align 4
  ret i32 %v
}

declare void @fill(ptr)
