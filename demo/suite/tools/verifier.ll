; RUN: not llvm-as -disable-output %s 2>&1 | FileCheck %s
; RUN: not opt -S -passes=verify %s 2>&1 | FileCheck %s

; CHECK: Instruction does not dominate all uses!
define i32 @uses_before(i32 %x) {
  %a = add i32 %b, 1
  %b = add i32 %x, 1
  ret i32 %a
}
