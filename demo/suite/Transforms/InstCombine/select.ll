; RUN: opt -S -passes=instcombine < %s | FileCheck %s

define i32 @same_arms(i1 %c, i32 %x) {
; CHECK-LABEL: define i32 @same_arms(
; CHECK-NEXT:    ret i32 %x
  %s = select i1 %c, i32 %x, i32 %x
  ret i32 %s
}

define i32 @max(i32 %x, i32 %y) {
; CHECK-LABEL: define i32 @max(
; CHECK:         call i32 @llvm.smax.i32(i32 %x, i32 %y)
  %c = icmp sgt i32 %x, %y
  %s = select i1 %c, i32 %x, i32 %y
  ret i32 %s
}

define i32 @bool_to_int(i1 %c) {
; CHECK-LABEL: define i32 @bool_to_int(
; CHECK-NEXT:    [[R:%.*]] = zext i1 %c to i32
; CHECK-NEXT:    ret i32 [[R]]
  %s = select i1 %c, i32 1, i32 0
  ret i32 %s
}
