# REQUIRES: x86-registered-target
# RUN: llvm-mc -triple=x86_64-unknown-linux-gnu -filetype=obj %s -o %t
# RUN: llvm-readelf -S %t | FileCheck %s --check-prefix=SECTIONS
# RUN: llvm-readelf -p .note.demo %t | FileCheck %s --check-prefix=STRINGS
# RUN: llvm-objcopy --remove-section=.note.demo %t %t.stripped
# RUN: llvm-readelf -S %t.stripped | FileCheck %s --check-prefix=STRIPPED --implicit-check-not=.note.demo

# SECTIONS: .note.demo PROGBITS
# SECTIONS: .data.rel PROGBITS
# STRINGS: from the demo suite
# STRIPPED: .data.rel
        .section .note.demo,"",@progbits
        .asciz "from the demo suite"
        .section .data.rel,"aw",@progbits
        .quad .text
        .balign 16
        .zero 16, 0xff
