# REQUIRES: aarch64-registered-target
# Assembled, disassembled, compared: a pipeline of three.
# RUN: llvm-mc -triple=aarch64 -filetype=obj %s | llvm-objdump -d - | FileCheck %s
# RUN: llvm-mc -triple=aarch64 -filetype=obj < %s | llvm-readobj -h - | FileCheck %s --check-prefix=HEADER

# HEADER: Machine: EM_AARCH64
# CHECK: d2800540 {{.*}}mov x0, #{{42|0x2a}}
        mov x0, #42
# CHECK: d65f03c0 {{.*}}ret
        ret
