; Fails on purpose: the check asks for a multiplication that instcombine turns into a shift.
; REQUIRES: show-failure
; RUN: llvm-as < %s | llvm-dis | FileCheck %s --check-prefix=FINE
; RUN: opt -S -passes=instcombine < %s | FileCheck %s

; FINE: mul i32 %x, 8
; CHECK-LABEL: define i32 @times_eight(
; CHECK-NEXT:    [[R:%.*]] = mul i32 %x, 8
define i32 @times_eight(i32 %x) {
  %m = mul i32 %x, 8
  ret i32 %m
}
