; One command over several lines, with others of the test's lines between.
; RUN: opt -S \
; A remark that is no part of the command.
; RUN:   -passes=instcombine \
; REQUIRES: system-linux
; RUN:   < %s | \
; RUN: FileCheck %s \
; RUN:   --check-prefix=KEPT

; KEPT: ret i32 5
define i32 @five() {
  %s = add i32 2, 3
  ret i32 %s
}
