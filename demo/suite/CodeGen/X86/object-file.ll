; The object file has what the assembly says: symbols, a relocation against the callee.
; RUN: llc -mtriple=x86_64-unknown-linux-gnu -filetype=obj -o %t.o < %s
; RUN: llvm-readobj --symbols %t.o | FileCheck %s --check-prefix=SYM
; RUN: llvm-objdump -d -r --no-show-raw-insn %t.o | FileCheck %s --check-prefix=DIS
; RUN: llvm-nm --defined-only %t.o | count 1

; SYM: Name: caller
; SYM: Name: callee
; DIS-LABEL: <caller>:
; DIS:         callq
; DIS-NEXT:    R_X86_64_PLT32 callee
define void @caller() {
  call void @callee()
  ret void
}

declare void @callee()
