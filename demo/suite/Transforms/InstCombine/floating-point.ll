; RUN: opt -S -passes=instcombine < %s | FileCheck %s
; RUN: opt -S -passes=instcombine < %s | FileCheck %s --check-prefix=STRICT --implicit-check-not=fneg

define double @times_one(double %x) {
; CHECK-LABEL: define double @times_one(
; CHECK-NEXT:    ret double %x
  %m = fmul double %x, 1.0
  ret double %m
}

; -0.0 is kept: x + 0.0 is not x.
define double @plus_zero(double %x) {
; STRICT-LABEL: define double @plus_zero(
; STRICT-NEXT:    [[A:%.*]] = fadd double %x, 0.0
; STRICT-NEXT:    ret double [[A]]
  %a = fadd double %x, 0.0
  ret double %a
}

define float @fast_reassociated(float %x) {
; CHECK-LABEL: define float @fast_reassociated(
; CHECK-NEXT:    [[M:%.*]] = fmul fast float %x, 6.0
; CHECK-NEXT:    ret float [[M]]
  %a = fmul fast float %x, 2.0
  %b = fmul fast float %a, 3.0
  ret float %b
}
