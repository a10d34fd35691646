# REQUIRES: x86-registered-target
# The same bytes from both syntaxes, compared by way of three tools.
# RUN: split-file %s %t
# RUN: llvm-mc -triple=x86_64 -filetype=obj %t/att.s -o %t/att.o
# RUN: llvm-mc -triple=x86_64 -filetype=obj -x86-asm-syntax=intel %t/intel.s -o %t/intel.o
# RUN: llvm-objdump -d --no-leading-addr %t/att.o | sed -e 1,3d > %t/att.dis
# RUN: llvm-objdump -d --no-leading-addr %t/intel.o | sed -e 1,3d > %t/intel.dis
# RUN: diff %t/att.dis %t/intel.dis
# RUN: grep -c xorl %t/att.dis | FileCheck %s
# CHECK: {{^1$}}

#--- att.s
        xorl %eax, %eax
        leaq 8(%rdi,%rcx,4), %rdx
        retq
#--- intel.s
        xor eax, eax
        lea rdx, [rdi + 4*rcx + 8]
        ret
