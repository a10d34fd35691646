; RUN: opt -S -passes=correlated-propagation < %s | FileCheck %s

; Below 100 and not negative: no need to ask again.
define i1 @inside(i32 %x) {
; CHECK-LABEL: define i1 @inside(
; CHECK:       small:
; CHECK-NEXT:    ret i1 true
entry:
  %c = icmp ult i32 %x, 100
  br i1 %c, label %small, label %big
small:
  %d = icmp ult i32 %x, 200
  ret i1 %d
big:
  ret i1 false
}
