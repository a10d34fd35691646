; RUN: llc -mtriple=aarch64-unknown-linux-gnu -relocation-model=static < %s | FileCheck %s --check-prefixes=BOTH,STATIC
; RUN: llc -mtriple=aarch64-unknown-linux-gnu -relocation-model=pic < %s | FileCheck %s --check-prefixes=BOTH,PIC

@counter = dso_local global i32 3, align 4
@elsewhere = external global i32

define i32 @read() {
; BOTH-LABEL: read:
; STATIC:        adrp x8, counter
; STATIC-NEXT:   ldr w0, [x8, :lo12:counter]
; BOTH:          ret
  %v = load i32, ptr @counter, align 4
  ret i32 %v
}

define i32 @read_elsewhere() {
; BOTH-LABEL: read_elsewhere:
; PIC:           adrp x8, :got:elsewhere
; PIC-NEXT:      ldr x8, [x8, :got_lo12:elsewhere]
  %v = load i32, ptr @elsewhere, align 4
  ret i32 %v
}

; BOTH: counter:
; BOTH: .word 3
