; RUN: opt -S -passes=inline < %s | FileCheck %s
; RUN: opt -S -passes='cgscc(inline),globaldce' < %s | FileCheck %s --check-prefix=GONE

; GONE-NOT: define internal i32 @square
define internal i32 @square(i32 %x) alwaysinline {
  %s = mul i32 %x, %x
  ret i32 %s
}

define i32 @caller(i32 %x) {
; CHECK-LABEL: define i32 @caller(
; CHECK-NOT:     call
; CHECK:         mul i32 %x, %x
; GONE-LABEL: define i32 @caller(
  %s = call i32 @square(i32 %x)
  ret i32 %s
}

; CHECK-LABEL: define i32 @kept(
; CHECK:         call i32 @stay(
define i32 @kept(i32 %x) {
  %s = call i32 @stay(i32 %x)
  ret i32 %s
}

define i32 @stay(i32 %x) noinline {
  ret i32 %x
}
