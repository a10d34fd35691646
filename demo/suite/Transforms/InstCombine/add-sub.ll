; RUN: opt -S -passes=instcombine < %s | FileCheck %s

; x + y - y is x, whatever the order.
define i32 @cancel(i32 %x, i32 %y) {
; CHECK-LABEL: define i32 @cancel(
; CHECK-NEXT:    ret i32 %x
  %a = add i32 %y, %x
  %b = sub i32 %a, %y
  ret i32 %b
}

; Two constants become one.
define i32 @constants(i32 %x) {
; CHECK-LABEL: define i32 @constants(
; CHECK-NEXT:    [[R:%.*]] = add i32 %x, 42
; CHECK-NEXT:    ret i32 [[R]]
  %a = add i32 %x, 30
  %b = add i32 %a, 12
  ret i32 %b
}

; 0 - (0 - x) is x.
define <4 x i32> @negate_twice(<4 x i32> %x) {
; CHECK-LABEL: define <4 x i32> @negate_twice(
; CHECK-NEXT:    ret <4 x i32> %x
  %a = sub <4 x i32> zeroinitializer, %x
  %b = sub <4 x i32> zeroinitializer, %a
  ret <4 x i32> %b
}

; x + ~x is all ones.
define i8 @add_not(i8 %x) {
; CHECK-LABEL: define i8 @add_not(
; CHECK-NEXT:    ret i8 -1
  %n = xor i8 %x, -1
  %r = add i8 %x, %n
  ret i8 %r
}
