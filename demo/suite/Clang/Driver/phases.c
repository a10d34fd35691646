// RUN: %clang -### -c -target x86_64-unknown-linux-gnu %s 2>&1 | FileCheck %s --check-prefix=COMPILE
// RUN: %clang -### -S -O2 -target aarch64-unknown-linux-gnu %s 2>&1 | FileCheck %s --check-prefix=ASSEMBLE
// RUN: %clang -ccc-print-phases -c %s 2>&1 | FileCheck %s --check-prefix=PHASES
// RUN: not %clang -fno-such-option -c %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// COMPILE: "-cc1" "-triple" "x86_64-unknown-linux-gnu" "-emit-obj"
// ASSEMBLE-DAG: "-cc1" "-triple" "aarch64-unknown-linux-gnu"
// ASSEMBLE-DAG: "-S"
// ASSEMBLE-DAG: "-O2"
// PHASES: 0: input,
// PHASES: preprocessor
// PHASES: assembler, {{.*}}, object
// UNKNOWN: error: unknown argument
