; RUN: opt -S -passes=simplifycfg < %s | FileCheck %s

define i32 @always() {
; CHECK-LABEL: define i32 @always(
; CHECK-NOT:     call void @never
; CHECK:         ret i32 1
entry:
  br i1 true, label %yes, label %no
yes:
  ret i32 1
no:
  call void @never()
  ret i32 2
}

define i32 @known_case() {
; CHECK-LABEL: define i32 @known_case(
; CHECK-NOT:     switch
; CHECK:         ret i32 20
  switch i32 2, label %other [
    i32 1, label %one
    i32 2, label %two
  ]
one:
  ret i32 10
two:
  ret i32 20
other:
  ret i32 30
}

declare void @never()
