; RUN: opt -S -passes=simplifycfg < %s | FileCheck %s

define i32 @two_way(i1 %c, i32 %x, i32 %y) {
; CHECK-LABEL: define i32 @two_way(
; CHECK:         [[S:%.*]] = select i1 %c, i32 %x, i32 %y
; CHECK-NEXT:    ret i32 [[S]]
; CHECK-NOT:   br
entry:
  br i1 %c, label %then, label %join
then:
  br label %join
join:
  %p = phi i32 [ %x, %then ], [ %y, %entry ]
  ret i32 %p
}
