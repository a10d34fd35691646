; RUN: opt -S -passes=gvn < %s | FileCheck %s

; The second load has the value of the first.
define i32 @twice(ptr %p) {
; CHECK-LABEL: define i32 @twice(
; CHECK-NEXT:    %a = load i32, ptr %p
; CHECK-NEXT:    [[S:%.*]] = add i32 %a, %a
; CHECK-NEXT:    ret i32 [[S]]
  %a = load i32, ptr %p, align 4
  %b = load i32, ptr %p, align 4
  %s = add i32 %a, %b
  ret i32 %s
}

; A call may have written; the load stays.
define i32 @call_between(ptr %p) {
; CHECK-LABEL: define i32 @call_between(
; CHECK:         load i32
; CHECK:         call void @unknown()
; CHECK:         load i32
  %a = load i32, ptr %p, align 4
  call void @unknown()
  %b = load i32, ptr %p, align 4
  %s = add i32 %a, %b
  ret i32 %s
}

declare void @unknown()
