; RUN: opt -S -passes='simplifycfg<switch-range-to-icmp>' < %s | FileCheck %s

define i1 @range(i32 %x) {
; CHECK-LABEL: define i1 @range(
; CHECK-NOT:     switch i32
; CHECK:         icmp ult i32
  switch i32 %x, label %no [
    i32 10, label %yes
    i32 11, label %yes
    i32 12, label %yes
  ]
yes:
  call void @hit()
  ret i1 true
no:
  ret i1 false
}

declare void @hit()
