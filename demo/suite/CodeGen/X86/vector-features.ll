; RUN: llc -mtriple=x86_64-- -mattr=+sse2 < %s | FileCheck %s --check-prefixes=ALL,SSE
; RUN: llc -mtriple=x86_64-- -mattr=+avx < %s | FileCheck %s --check-prefixes=ALL,AVX

define <4 x float> @add(<4 x float> %a, <4 x float> %b) {
; ALL-LABEL: add:
; SSE:         addps %xmm1, %xmm0
; AVX:         vaddps %xmm1, %xmm0, %xmm0
; ALL-NEXT:    retq
  %s = fadd <4 x float> %a, %b
  ret <4 x float> %s
}
