//! Options that show details of a run.

use crate::args::flag::Flag;

pub(super) static FLAGS: [Flag; 4] = [
    Flag::switch(
        &["--debug"],
        |low| {
            low.debug = true;
            low.console.set_debug();
        },
        "Show which configs are loaded, and other steps of discovery",
    ),
    Flag::switch(&["--show-suites"], |low| low.show_suites = true, "List suites and exit"),
    Flag::switch(&["--show-tests"], |low| low.show_tests = true, "List tests and exit"),
    Flag::switch(
        &["--show-used-features"],
        |low| low.show_used_features = true,
        "List the features that XFAIL, UNSUPPORTED and REQUIRES lines name, and exit",
    ),
];
