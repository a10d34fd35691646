; RUN: opt -S -passes=early-cse < %s | FileCheck %s

define i32 @common(i32 %x, i32 %y) {
; CHECK-LABEL: define i32 @common(
; CHECK-NEXT:    %a = add i32 %x, %y
; CHECK-NEXT:    %m = mul i32 %a, %a
; CHECK-NEXT:    ret i32 %m
  %a = add i32 %x, %y
  %b = add i32 %y, %x
  %m = mul i32 %a, %b
  ret i32 %m
}
