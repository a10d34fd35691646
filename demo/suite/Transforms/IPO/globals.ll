; RUN: opt -S -passes=globalopt < %s | FileCheck %s
; RUN: opt -S -passes=globaldce < %s | FileCheck %s --check-prefix=DCE

; CHECK-NOT: @only_read
; DCE: @only_read
@only_read = internal global i32 5
; DCE-NOT: @unused
@unused = internal global i32 6

define i32 @read() {
; CHECK-LABEL: define i32 @read()
; CHECK:         ret i32 5
  %v = load i32, ptr @only_read, align 4
  ret i32 %v
}
