; RUN: opt -S -passes=sroa < %s | FileCheck %s

%pair = type { i32, i32 }

define i32 @fields(i32 %x, i32 %y) {
; CHECK-LABEL: define i32 @fields(
; CHECK-NOT:     alloca
; CHECK:         [[S:%.*]] = sub i32 %x, %y
; CHECK-NEXT:    ret i32 [[S]]
  %pair = alloca %pair, align 4
  %second = getelementptr inbounds %pair, ptr %pair, i32 0, i32 1
  store i32 %x, ptr %pair, align 4
  store i32 %y, ptr %second, align 4
  %a = load i32, ptr %pair, align 4
  %b = load i32, ptr %second, align 4
  %s = sub i32 %a, %b
  ret i32 %s
}
