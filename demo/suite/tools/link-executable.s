# REQUIRES: x86-registered-target, ld.lld, system-linux
# RUN: llvm-mc -triple=x86_64-unknown-linux-gnu -filetype=obj %s -o %t.o
# RUN: lld-of-this-llvm %t.o -o %t.exe --defsym=status=3
# RUN: llvm-readelf -h %t.exe | FileCheck %s
# CHECK: Type: EXEC

        .globl _start
_start:
        movl $60, %eax
        movl $status, %edi
        syscall
