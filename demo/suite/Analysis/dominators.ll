; RUN: opt -disable-output -passes='print<domtree>' %s 2>&1 | FileCheck %s
; RUN: opt -disable-output -passes='print<loops>' %s 2>&1 | FileCheck %s --check-prefix=LOOPS

; CHECK: Inorder Dominator Tree
; CHECK: [1] %entry
; CHECK-DAG: [2] %left
; CHECK-DAG: [2] %right
; CHECK-DAG: [2] %join
; LOOPS: Loop at depth 1 containing: %join<header><latch><exiting>
define void @diamond(i1 %c) {
entry:
  br i1 %c, label %left, label %right
left:
  br label %join
right:
  br label %join
join:
  br i1 %c, label %join, label %exit
exit:
  ret void
}
