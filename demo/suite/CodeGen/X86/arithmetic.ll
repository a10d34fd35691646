; RUN: llc -mtriple=x86_64-unknown-linux-gnu < %s | FileCheck %s
; RUN: llc -mtriple=i686-unknown-linux-gnu < %s | FileCheck %s --check-prefix=X32

; Sum and constant in one address computation.
define i32 @lea(i32 %x, i32 %y) {
; CHECK-LABEL: lea:
; CHECK:         leal 7(%rdi,%rsi), %eax
; CHECK-NEXT:    retq
; X32-LABEL: lea:
; X32:         movl {{[0-9]+}}(%esp), %e
; X32:         retl
  %a = add i32 %x, %y
  %b = add i32 %a, 7
  ret i32 %b
}

; No division by a constant.
define i32 @by_ten(i32 %x) {
; CHECK-LABEL: by_ten:
; CHECK-NOT:     divl
; CHECK:         imulq
; CHECK:         shrq $35
  %d = udiv i32 %x, 10
  ret i32 %d
}
