; Text to bitcode to text: nothing is lost.
; RUN: llvm-as < %s | llvm-dis | FileCheck %s
; RUN: llvm-as %s -o %t.bc
; RUN: llvm-dis %t.bc -o %t.1.ll
; RUN: llvm-as %t.1.ll -o - | llvm-dis -o %t.2.ll
; RUN: sed 1,2d %t.1.ll > %t.1.body
; RUN: sed 1,2d %t.2.ll > %t.2.body
; RUN: cmp %t.1.body %t.2.body

; CHECK: @table = constant [3 x i16] [i16 1, i16 2, i16 3]
@table = constant [3 x i16] [i16 1, i16 2, i16 3]

; CHECK: define i16 @at(i64 %i) {
define i16 @at(i64 %i) {
  %p = getelementptr [3 x i16], ptr @table, i64 0, i64 %i
  %v = load i16, ptr %p, align 2
  ret i16 %v
}
