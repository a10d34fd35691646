; RUN: llc -mtriple=riscv64 -mattr=+m < %s | FileCheck %s --check-prefixes=BOTH,M
; RUN: llc -mtriple=riscv64 < %s | FileCheck %s --check-prefixes=BOTH,LIBCALL

define i64 @product(i64 %a, i64 %b) {
; BOTH-LABEL: product:
; M:           mul a0, a0, a1
; LIBCALL:     __muldi3
; M:           ret
  %p = mul i64 %a, %b
  ret i64 %p
}
