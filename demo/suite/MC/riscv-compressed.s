# REQUIRES: riscv-registered-target
# RUN: llvm-mc -triple=riscv64 -mattr=+c -show-encoding %s | FileCheck %s --check-prefix=C
# RUN: llvm-mc -triple=riscv64 -show-encoding %s | FileCheck %s --check-prefix=NOC

# C: encoding: [0x2d,0x05]
# NOC: encoding: [0x13,0x05,0xb5,0x00]
addi a0, a0, 11
