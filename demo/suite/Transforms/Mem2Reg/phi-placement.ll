; RUN: opt -S -passes=mem2reg < %s | FileCheck %s
; RUN: opt -S -passes='function(mem2reg)' < %s > %t.explicit.ll
; RUN: opt -S -passes=mem2reg -o %t.short.ll < %s
; RUN: diff %t.explicit.ll %t.short.ll

define i32 @one_phi(i1 %c) {
; CHECK-LABEL: define i32 @one_phi(
; CHECK-NOT:     alloca
; CHECK:       join:
; CHECK-NEXT:    [[P:%.*]] = phi i32 [ 1, %left ], [ 2, %right ]
; CHECK-NEXT:    ret i32 [[P]]
entry:
  %slot = alloca i32, align 4
  br i1 %c, label %left, label %right
left:
  store i32 1, ptr %slot, align 4
  br label %join
right:
  store i32 2, ptr %slot, align 4
  br label %join
join:
  %v = load i32, ptr %slot, align 4
  ret i32 %v
}
