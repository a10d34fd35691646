; What opt cannot do: it sees no formula in a product of unknown factors.
; XFAIL: *
; RUN: opt -S -passes=instcombine < %s | FileCheck %s
; CHECK: ret i32 42
define i32 @f(i32 %x, i32 %y) {
  %m = mul i32 %x, %y
  ret i32 %m
}
