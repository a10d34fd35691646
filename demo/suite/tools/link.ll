; RUN: split-file %s %t
; RUN: llvm-link -S %t/main.ll %t/lib.ll | FileCheck %s
; RUN: llvm-link -S %t/lib.ll %t/main.ll | opt -S -passes=inline | FileCheck %s --check-prefix=INLINED
; RUN: not llvm-link -S %t/lib.ll %t/lib.ll 2>&1 | FileCheck %s --check-prefix=TWICE

; CHECK-DAG: define i32 @main()
; CHECK-DAG: define i32 @answer()
; INLINED-LABEL: define i32 @main()
; INLINED-NEXT:    ret i32 42
; TWICE: symbol multiply defined!

;--- main.ll
declare i32 @answer()
define i32 @main() {
  %r = call i32 @answer()
  ret i32 %r
}

;--- lib.ll
define i32 @answer() {
  ret i32 42
}
