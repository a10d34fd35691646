; RUN: opt -S -passes=gvn < %s | FileCheck %s

; Where x is known to be 7, 7 is used.
define i32 @branch(i32 %x) {
; CHECK-LABEL: define i32 @branch(
; CHECK:       equal:
; CHECK-NEXT:    ret i32 7
; CHECK:       other:
; CHECK-NEXT:    ret i32 %x
  %c = icmp eq i32 %x, 7
  br i1 %c, label %equal, label %other
equal:
  ret i32 %x
other:
  ret i32 %x
}
