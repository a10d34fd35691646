; RUN: opt -S -passes=sroa < %s | FileCheck %s

; An address that escapes keeps its slot.
define i32 @escapes(i32 %x) {
; CHECK-LABEL: define i32 @escapes(
; CHECK:         alloca i32
; CHECK:         call void @take(ptr
; CHECK:         load i32
  %slot = alloca i32, align 4
  store i32 %x, ptr %slot, align 4
  call void @take(ptr %slot)
  %v = load i32, ptr %slot, align 4
  ret i32 %v
}

declare void @take(ptr)
