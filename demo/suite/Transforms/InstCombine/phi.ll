; RUN: opt -S -passes=instcombine < %s | FileCheck %s

; The same operation in both arms is done once, behind the join.
define i32 @sink_operation(i1 %c, i32 %x, i32 %y) {
; CHECK-LABEL: define i32 @sink_operation(
; CHECK:       join:
; CHECK-NEXT:    [[P:%.*]] = phi i32 [ %x, %left ], [ %y, %right ]
; CHECK-NEXT:    [[R:%.*]] = add i32 [[P]], 9
; CHECK-NEXT:    ret i32 [[R]]
  br i1 %c, label %left, label %right
left:
  %a = add i32 %x, 9
  br label %join
right:
  %b = add i32 %y, 9
  br label %join
join:
  %p = phi i32 [ %a, %left ], [ %b, %right ]
  ret i32 %p
}
