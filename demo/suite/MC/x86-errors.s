# REQUIRES: x86-registered-target
# RUN: not llvm-mc -triple=x86_64 %s 2>&1 | FileCheck %s -DFILE=%s
# RUN: not llvm-mc -triple=x86_64 %s -o /dev/null 2> %t.err
# RUN: FileCheck %s -DFILE=%s < %t.err

# CHECK: [[FILE]]:[[@LINE+1]]:{{[0-9]+}}: error: invalid instruction mnemonic 'no_such_thing'
        no_such_thing %eax
# CHECK: [[FILE]]:[[@LINE+1]]:{{[0-9]+}}: error:
        movq %rax
