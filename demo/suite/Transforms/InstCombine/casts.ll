; RUN: opt -S -passes=instcombine -o - %s | FileCheck %s

define i8 @there_and_back(i8 %x) {
; CHECK-LABEL: define i8 @there_and_back(
; CHECK-NEXT:    ret i8 %x
  %w = sext i8 %x to i64
  %n = trunc i64 %w to i8
  ret i8 %n
}

define i64 @zext_chain(i8 %x) {
; CHECK-LABEL: define i64 @zext_chain(
; CHECK-NEXT:    [[R:%.*]] = zext i8 %x to i64
; CHECK-NEXT:    ret i64 [[R]]
  %a = zext i8 %x to i16
  %b = zext i16 %a to i32
  %c = zext i32 %b to i64
  ret i64 %c
}

define ptr @int_ptr(ptr %p) {
; CHECK-LABEL: define ptr @int_ptr(
; CHECK-NEXT:    [[I:%.*]] = ptrtoint ptr %p to i64
; CHECK-NEXT:    call void @keep(i64 [[I]])
; CHECK-NEXT:    ret ptr %p
  %i = ptrtoint ptr %p to i64
  call void @keep(i64 %i)
  ret ptr %p
}

declare void @keep(i64)
