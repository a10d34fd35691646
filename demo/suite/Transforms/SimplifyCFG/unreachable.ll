; RUN: opt -S -passes=simplifycfg < %s | FileCheck %s

; A branch to unreachable code need not be taken.
define i32 @one_way_left(i1 %c, i32 %x) {
; CHECK-LABEL: define i32 @one_way_left(
; CHECK-NOT:     br
; CHECK:         ret i32 %x
  br i1 %c, label %good, label %bad
good:
  ret i32 %x
bad:
  unreachable
}

; Blocks that nothing reaches are gone.
define void @island() {
; CHECK-LABEL: define void @island(
; CHECK-NEXT:    ret void
; CHECK-NOT:   island.body
  ret void
island.body:
  call void @effect()
  br label %island.body
}

declare void @effect()
