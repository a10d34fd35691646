; REQUIRES: x86-registered-target
; RUN: opt -S -mtriple=x86_64-unknown-linux-gnu -mattr=+sse2 -passes=loop-vectorize -force-vector-width=4 \
; RUN:   -force-vector-interleave=1 < %s | FileCheck %s
; RUN: opt -S -mtriple=x86_64-unknown-linux-gnu -passes=loop-vectorize -force-vector-width=1 \
; RUN:   -force-vector-interleave=1 < %s | FileCheck %s --check-prefix=SCALAR --implicit-check-not='<4 x i32>'

; CHECK-LABEL: define void @increment(
; CHECK:       vector.body:
; CHECK:         [[W:%.*]] = load <4 x i32>, ptr
; CHECK:         add <4 x i32> [[W]]
; CHECK:         store <4 x i32>
; SCALAR-LABEL: define void @increment(
define void @increment(ptr noalias %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i32, ptr %p, i64 %i
  %v = load i32, ptr %at, align 4
  %w = add i32 %v, 1
  store i32 %w, ptr %at, align 4
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, 1024
  br i1 %done, label %exit, label %loop
exit:
  ret void
}
