; RUN: opt -S -passes=simplifycfg < %s | FileCheck %s

define i32 @chain(i32 %x) {
; CHECK-LABEL: define i32 @chain(
; CHECK-NEXT:  entry:
; CHECK-NEXT:    %a = add i32 %x, 1
; CHECK-NEXT:    %b = mul i32 %a, 3
; CHECK-NEXT:    ret i32 %b
entry:
  %a = add i32 %x, 1
  br label %next
next:
  %b = mul i32 %a, 3
  br label %last
last:
  ret i32 %b
}
