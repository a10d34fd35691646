; RUN: opt -S -mtriple=x86_64-unknown-linux-gnu -passes=sroa,instcombine < %s | FileCheck %s

target datalayout = "e-p:64:64-i64:64"

; The low byte of what was stored, without memory.
define i8 @low_byte(i32 %x) {
; CHECK-LABEL: define i8 @low_byte(
; CHECK-NOT:     alloca
; CHECK:         [[T:%.*]] = trunc i32 %x to i8
; CHECK-NEXT:    ret i8 [[T]]
  %slot = alloca i32, align 4
  store i32 %x, ptr %slot, align 4
  %b = load i8, ptr %slot, align 4
  ret i8 %b
}
