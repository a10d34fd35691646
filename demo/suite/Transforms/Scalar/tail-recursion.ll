; RUN: opt -S -passes=tailcallelim < %s | FileCheck %s

; The recursive call becomes a jump.
define i32 @count_down(i32 %n, i32 %acc) {
; CHECK-LABEL: define i32 @count_down(
; CHECK:       tailrecurse:
; CHECK-NOT:     call i32 @count_down
; CHECK:         br label %tailrecurse
entry:
  %zero = icmp eq i32 %n, 0
  br i1 %zero, label %done, label %again
again:
  %less = sub i32 %n, 1
  %more = add i32 %acc, %n
  %r = tail call i32 @count_down(i32 %less, i32 %more)
  ret i32 %r
done:
  ret i32 %acc
}
