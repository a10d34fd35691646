; RUN: opt -S -passes=jump-threading,simplifycfg < %s | FileCheck %s

; The second test of the same condition is not made.
define i32 @same_test_twice(i1 %c) {
; CHECK-LABEL: define i32 @same_test_twice(
; CHECK-COUNT-1: br i1 %c
; CHECK-NOT:     br i1 %c
entry:
  br i1 %c, label %a, label %b
a:
  call void @first()
  br label %mid
b:
  call void @second()
  br label %mid
mid:
  br i1 %c, label %x, label %y
x:
  call void @third()
  ret i32 1
y:
  ret i32 2
}

declare void @first()
declare void @second()
declare void @third()
