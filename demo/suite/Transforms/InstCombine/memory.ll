; RUN: opt -S -passes=instcombine < %s | FileCheck %s

; What was just stored need not be loaded.
define i32 @forward(ptr %p, i32 %x) {
; CHECK-LABEL: define i32 @forward(
; CHECK-NEXT:    store i32 %x, ptr %p, align 4
; CHECK-NEXT:    ret i32 %x
  store i32 %x, ptr %p, align 4
  %v = load i32, ptr %p, align 4
  ret i32 %v
}

; A small copy is a load and a store.
define void @copy4(ptr %d, ptr %s) {
; CHECK-LABEL: define void @copy4(
; CHECK-NEXT:    [[V:%.*]] = load i32, ptr %s, align 4
; CHECK-NEXT:    store i32 [[V]], ptr %d, align 4
; CHECK-NEXT:    ret void
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %d, ptr align 4 %s, i64 4, i1 false)
  ret void
}

; Nothing is stored where nothing can be.
define void @copy0(ptr %d, ptr %s) {
; CHECK-LABEL: define void @copy0(
; CHECK-NEXT:    ret void
  call void @llvm.memcpy.p0.p0.i64(ptr %d, ptr %s, i64 0, i1 false)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
