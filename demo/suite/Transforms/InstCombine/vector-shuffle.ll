; RUN: opt -S -passes=instcombine < %s | FileCheck %s

define <4 x i32> @reverse_twice(<4 x i32> %v) {
; CHECK-LABEL: define <4 x i32> @reverse_twice(
; CHECK-NEXT:    ret <4 x i32> %v
  %a = shufflevector <4 x i32> %v, <4 x i32> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  %b = shufflevector <4 x i32> %a, <4 x i32> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  ret <4 x i32> %b
}

define i32 @extract_of_insert(<2 x i32> %v, i32 %x) {
; CHECK-LABEL: define i32 @extract_of_insert(
; CHECK-NEXT:    ret i32 %x
  %i = insertelement <2 x i32> %v, i32 %x, i64 1
  %e = extractelement <2 x i32> %i, i64 1
  ret i32 %e
}
