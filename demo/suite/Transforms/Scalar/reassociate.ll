; RUN: opt -S -passes=reassociate,instcombine < %s | FileCheck %s

; The constants meet although others stand between them.
define i32 @gather(i32 %x, i32 %y) {
; CHECK-LABEL: define i32 @gather(
; CHECK:         add i32 {{.*}}, 15
; CHECK-NOT:     add i32 {{.*}}, {{[0-9]}}
  %a = add i32 %x, 5
  %b = add i32 %a, %y
  %c = add i32 %b, 10
  ret i32 %c
}
