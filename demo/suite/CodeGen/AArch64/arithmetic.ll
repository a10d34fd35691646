; RUN: llc -mtriple=aarch64-unknown-linux-gnu < %s | FileCheck %s

define i64 @multiply_add(i64 %a, i64 %b, i64 %c) {
; CHECK-LABEL: multiply_add:
; CHECK:         madd x0, x0, x1, x2
; CHECK-NEXT:    ret
  %m = mul i64 %a, %b
  %s = add i64 %m, %c
  ret i64 %s
}

define i64 @shifted_operand(i64 %a, i64 %b) {
; CHECK-LABEL: shifted_operand:
; CHECK:         add x0, x0, x1, lsl #3
  %s = shl i64 %b, 3
  %r = add i64 %a, %s
  ret i64 %r
}
