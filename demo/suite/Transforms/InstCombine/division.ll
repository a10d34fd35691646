; RUN: opt -S -passes=instcombine < %s | FileCheck %s
; RUN: opt -S -passes=instcombine < %s | not grep -w 'udiv\|urem'

define i32 @udiv_pow2(i32 %x) {
; CHECK-LABEL: define i32 @udiv_pow2(
; CHECK-NEXT:    [[R:%.*]] = lshr i32 %x, 4
; CHECK-NEXT:    ret i32 [[R]]
  %d = udiv i32 %x, 16
  ret i32 %d
}

define i32 @urem_pow2(i32 %x) {
; CHECK-LABEL: define i32 @urem_pow2(
; CHECK-NEXT:    [[R:%.*]] = and i32 %x, 15
; CHECK-NEXT:    ret i32 [[R]]
  %r = urem i32 %x, 16
  ret i32 %r
}
