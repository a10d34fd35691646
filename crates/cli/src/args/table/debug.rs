//! Options that show details of a run.

use crate::args::flag::Flag;

pub(super) static FLAGS: [Flag; 4] = [
    Flag::switch(
        &["--debug"],
        |options| {
            options.debug = true;
            options.console.set_debug();
        },
        "Show which configs are loaded, and other steps of discovery",
    ),
    Flag::switch(&["--show-suites"], |options| options.show_suites = true, "List suites and exit"),
    Flag::switch(&["--show-tests"], |options| options.show_tests = true, "List tests and exit"),
    Flag::switch(
        &["--show-used-features"],
        |options| options.show_used_features = true,
        "List the features that XFAIL, UNSUPPORTED and REQUIRES lines name, and exit",
    ),
];
