; RUN: opt -S -passes=instcombine %s | FileCheck %s

define i32 @absorb(i32 %x, i32 %y) {
; CHECK-LABEL: define i32 @absorb(
; CHECK-NEXT:    ret i32 %x
  %or = or i32 %x, %y
  %and = and i32 %or, %x
  ret i32 %and
}

define i32 @masks(i32 %x) {
; CHECK-LABEL: define i32 @masks(
; CHECK-NEXT:    [[R:%.*]] = and i32 %x, 12
; CHECK-NEXT:    ret i32 [[R]]
  %a = and i32 %x, 60
  %b = and i32 %a, 15
  ret i32 %b
}

define i1 @xor_self(i32 %x) {
; CHECK-LABEL: define i1 @xor_self(
; CHECK-NEXT:    ret i1 true
  %z = xor i32 %x, %x
  %c = icmp eq i32 %z, 0
  ret i1 %c
}

; De Morgan.
define i8 @demorgan(i8 %x, i8 %y) {
; CHECK-LABEL: define i8 @demorgan(
; CHECK-NEXT:    [[OR:%.*]] = or i8 %x, %y
; CHECK-NEXT:    [[NOT:%.*]] = xor i8 [[OR]], -1
; CHECK-NEXT:    ret i8 [[NOT]]
  %nx = xor i8 %x, -1
  %ny = xor i8 %y, -1
  %r = and i8 %nx, %ny
  ret i8 %r
}
