; RUN: opt -S -passes=deadargelim < %s | FileCheck %s

define internal i32 @takes_three(i32 %used, i32 %dead1, ptr %dead2) noinline {
; CHECK-LABEL: define internal i32 @takes_three(i32 %used)
  ret i32 %used
}

define i32 @caller() {
; CHECK-LABEL: define i32 @caller(
; CHECK:         call i32 @takes_three(i32 1)
  %r = call i32 @takes_three(i32 1, i32 2, ptr null)
  ret i32 %r
}
