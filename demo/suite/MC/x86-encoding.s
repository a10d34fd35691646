# REQUIRES: x86-registered-target
# RUN: llvm-mc -triple=x86_64-unknown-unknown -show-encoding %s | FileCheck %s

# CHECK: movl $42, %eax
# CHECK-SAME: encoding: [0xb8,0x2a,0x00,0x00,0x00]
        movl $42, %eax
# CHECK: addq %rdi, %rsi
# CHECK-SAME: encoding: [0x48,0x01,0xfe]
        addq %rdi, %rsi
# CHECK: nop
# CHECK-SAME: encoding: [0x90]
        nop
