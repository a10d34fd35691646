; RUN: opt -S -passes=loop-rotate < %s | FileCheck %s

; The test moves to the end of the body.
define void @while(i32 %n) {
; CHECK-LABEL: define void @while(
; CHECK-NEXT:  entry:
; CHECK:         br i1 {{.*}}, label %[[BODY:.*]], label %
; CHECK:       [[BODY]]:
; CHECK:         call void @work()
; CHECK:         icmp slt i32
entry:
  br label %header
header:
  %i = phi i32 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i32 %i, %n
  br i1 %more, label %body, label %exit
body:
  call void @work()
  %next = add i32 %i, 1
  br label %header
exit:
  ret void
}

declare void @work()
