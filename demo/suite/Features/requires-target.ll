; REQUIRES: x86-registered-target && (aarch64-registered-target || !no-such-feature)
; RUN: llc -mtriple=x86_64-- -filetype=null < %s
define void @f() {
  ret void
}
