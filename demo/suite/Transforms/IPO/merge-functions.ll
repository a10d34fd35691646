; RUN: opt -S -passes=mergefunc < %s | FileCheck %s

define i32 @first(i32 %x) unnamed_addr {
  %a = mul i32 %x, 17
  %b = xor i32 %a, 5
  %c = add i32 %b, %x
  ret i32 %c
}

; CHECK-LABEL: define i32 @second(
; CHECK:         tail call i32 @first(
define i32 @second(i32 %x) {
  %a = mul i32 %x, 17
  %b = xor i32 %a, 5
  %c = add i32 %b, %x
  ret i32 %c
}
