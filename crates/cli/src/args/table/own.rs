//! What lit does not have.

use crate::args::flag::Flag;
use crate::args::values;

pub(super) static FLAGS: [Flag; 3] = [
    Flag::value(
        &["--lit-python"],
        "PATH",
        |low, value, invocation| {
            low.own.lit_python = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "Evaluate config files with this Python; it needs the lit package, unless --lit-package gives one",
    ),
    Flag::value(
        &["--lit-package"],
        "DIR",
        |low, value, invocation| {
            low.own.lit_package = Some(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "Evaluate config files with the lit package in DIR (for example llvm/utils/lit), and follow its \
         version's \
         rules",
    ),
    Flag::switch(
        &["--debug-times"],
        |low| low.own.debug_times = true,
        "Print to standard error how long each step before the first test took",
    ),
];
