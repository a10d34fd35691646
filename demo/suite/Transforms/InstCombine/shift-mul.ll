; RUN: opt -S -passes=instcombine < %s | FileCheck %s

define i32 @mul_pow2(i32 %x) {
; CHECK-LABEL: define i32 @mul_pow2(
; CHECK-NEXT:    [[R:%.*]] = shl i32 %x, 3
; CHECK-NEXT:    ret i32 [[R]]
  %m = mul i32 %x, 8
  ret i32 %m
}

define i32 @shifts_add_up(i32 %x) {
; CHECK-LABEL: define i32 @shifts_add_up(
; CHECK-NEXT:    [[R:%.*]] = lshr i32 %x, 5
; CHECK-NEXT:    ret i32 [[R]]
  %a = lshr i32 %x, 2
  %b = lshr i32 %a, 3
  ret i32 %b
}

define i32 @shift_back(i32 %x) {
; CHECK-LABEL: define i32 @shift_back(
; CHECK-NEXT:    [[R:%.*]] = and i32 %x, -16
; CHECK-NEXT:    ret i32 [[R]]
  %a = lshr i32 %x, 4
  %b = shl i32 %a, 4
  ret i32 %b
}
