; RUN: opt -S -passes=instcombine < %s | FileCheck %s

define i32 @count_known() {
; CHECK-LABEL: define i32 @count_known(
; CHECK-NEXT:    ret i32 28
  %c = call i32 @llvm.ctlz.i32(i32 15, i1 false)
  ret i32 %c
}

define i32 @bswap_twice(i32 %x) {
; CHECK-LABEL: define i32 @bswap_twice(
; CHECK-NEXT:    ret i32 %x
  %a = call i32 @llvm.bswap.i32(i32 %x)
  %b = call i32 @llvm.bswap.i32(i32 %a)
  ret i32 %b
}

; CHECK-LABEL: define void @assume_true(
; CHECK-NEXT:    ret void
define void @assume_true() {
  call void @llvm.assume(i1 true)
  ret void
}

declare i32 @llvm.ctlz.i32(i32, i1)
declare i32 @llvm.bswap.i32(i32)
declare void @llvm.assume(i1)
