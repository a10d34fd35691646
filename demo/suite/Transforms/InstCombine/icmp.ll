; RUN: opt -S -passes=instcombine < %s \
; RUN:   | FileCheck %s

define i1 @swap_constant(i32 %x) {
; CHECK-LABEL: define i1 @swap_constant(
; CHECK-NEXT:    [[C:%.*]] = icmp slt i32 %x, 5
; CHECK-NEXT:    ret i1 [[C]]
  %c = icmp sgt i32 5, %x
  ret i1 %c
}

define i1 @add_eq(i32 %x) {
; CHECK-LABEL: define i1 @add_eq(
; CHECK-NEXT:    [[C:%.*]] = icmp eq i32 %x, 7
; CHECK-NEXT:    ret i1 [[C]]
  %a = add i32 %x, 3
  %c = icmp eq i32 %a, 10
  ret i1 %c
}

define i1 @known_by_mask(i32 %x) {
; CHECK-LABEL: define i1 @known_by_mask(
; CHECK-NEXT:    ret i1 true
  %a = and i32 %x, 15
  %c = icmp ult i32 %a, 16
  ret i1 %c
}

define i1 @not_of_compare(i32 %x, i32 %y) {
; CHECK-LABEL: define i1 @not_of_compare(
; CHECK-NEXT:    [[C:%.*]] = icmp ne i32 %x, %y
; CHECK-NEXT:    ret i1 [[C]]
  %c = icmp eq i32 %x, %y
  %n = xor i1 %c, true
  ret i1 %n
}
