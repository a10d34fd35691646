; RUN: opt -S -passes='gvn<pre>' < %s | FileCheck %s
; RUN: opt -S -passes='gvn<no-pre;no-load-pre>' < %s | FileCheck %s --check-prefix=NOPRE

; Loaded on one way already: loading on the other makes the last load redundant.
define i32 @partial(i1 %c, ptr %p) {
; CHECK-LABEL: define i32 @partial(
; CHECK:       join:
; CHECK-NEXT:    phi i32
; CHECK-NOT:     load
; CHECK:         ret i32
; NOPRE-LABEL: define i32 @partial(
; NOPRE:       join:
; NOPRE:         load i32
entry:
  br i1 %c, label %left, label %right
left:
  %a = load i32, ptr %p, align 4
  br label %join
right:
  br label %join
join:
  %early = phi i32 [ %a, %left ], [ 0, %right ]
  %b = load i32, ptr %p, align 4
  %sum = add i32 %early, %b
  ret i32 %sum
}
