//! Options for output and reports.

use crate::args::flag::Flag;
use crate::args::values;

pub(super) static FLAGS: [Flag; 22] = [
    Flag::value(
        &["--test-output"],
        "{off,failed,failed-or-flaky,all}",
        |options, value, _| {
            options.console.set_output_level(values::shown(value)?);
            Ok(())
        },
        "Of which tests commands and output are shown (default: off). Tests of which output is shown \
         get a result line \
         too, whatever --print-result-after said before",
    ),
    Flag::value(
        &["--print-result-after"],
        "{off,failed,failed-or-flaky,all}",
        |options, value, _| {
            options.console.set_results_level(values::shown(value)?);
            Ok(())
        },
        "Which tests get a result line as they end (default: all). Lowers --test-output to the same \
         level if it is \
         higher",
    ),
    Flag::value(
        &["--diagnostic-level"],
        "{error,warning,note}",
        |options, value, _| {
            options.console.set_diagnostics(values::diagnostic_level(value)?);
            Ok(())
        },
        "The least serious messages that are shown (default: note)",
    ),
    Flag::switch(
        &["--terse-summary"],
        |options| options.console.set_terse_summary(true),
        "Leave times, and counts of tests that did not fail, out of the summary",
    ),
    Flag::switch(
        &["--no-terse-summary"],
        |options| options.console.set_terse_summary(false),
        "Show times and all counts in the summary (default)",
    ),
    Flag::switch(
        &["-q", "--quiet"],
        |options| options.console.be_quiet(),
        "Show only what went wrong: --print-result-after=failed --test-output=off --diagnostic-level=error \
         --terse-summary. With a lit of version 19, no result lines either",
    ),
    Flag::switch(
        &["-s", "--succinct"],
        |options| options.console.be_succinct(),
        "Show a progress bar, and result lines of failures only: --progress-bar \
         --print-result-after=failed",
    ),
    Flag::switch(
        &["-v", "--verbose"],
        |options| options.console.be_verbose(),
        "Show commands and output of tests that fail; the last command shown is the one that failed. \
         Same as \
         --test-output=failed",
    ),
    Flag::switch(
        &["-vv", "--echo-all-commands"],
        |options| options.console.be_verbose(),
        "Same as -v \
         (deprecated)",
    ),
    Flag::switch(
        &["-a", "--show-all"],
        |options| options.console.show_all(),
        "Show commands and output of all tests. Same as --test-output=all",
    ),
    Flag::switch(
        &["-r", "--relative-paths"],
        |options| options.relative_paths = true,
        "In lists of tests, show paths relative to the working directory",
    ),
    Flag::value(
        &["-o", "--output"],
        "PATH",
        |options, value, _| {
            options.reports.json = Some(value.into());
            Ok(())
        },
        "Write results as JSON to PATH",
    ),
    Flag::switch(&["--progress-bar"], |options| options.console.want_progress_bar(), "Show a progress bar"),
    Flag::switch(
        &["--no-progress-bar"],
        |options| options.console.refuse_progress_bar(),
        "Show no progress bar (default)",
    ),
    Flag::value(
        &["--min-output-interval"],
        "INTERVAL",
        |options, value, _| {
            options.console.set_min_output_interval(values::non_negative_float(value)?);
            Ok(())
        },
        "Redraw the progress bar at most every INTERVAL seconds (default: 0, no limit)",
    ),
    Flag::switch(
        &["--show-excluded"],
        |options| options.shown_codes.push("EXCLUDED"),
        "List tests that were not selected (EXCLUDED)",
    ),
    Flag::switch(
        &["--show-skipped"],
        |options| options.shown_codes.push("SKIPPED"),
        "List tests that the end of the run left out (SKIPPED)",
    ),
    Flag::switch(
        &["--show-unsupported"],
        |options| options.shown_codes.push("UNSUPPORTED"),
        "List tests whose requirements are not met (UNSUPPORTED)",
    ),
    Flag::switch(
        &["--show-pass"],
        |options| options.shown_codes.push("PASS"),
        "List tests that passed (PASS)",
    ),
    Flag::switch(
        &["--show-flakypass"],
        |options| options.shown_codes.push("FLAKYPASS"),
        "List tests that passed after a retry (FLAKYPASS)",
    ),
    Flag::switch(
        &["--show-fixed"],
        |options| options.shown_codes.push("FIXED"),
        "List tests that passed after an update (FIXED)",
    ),
    Flag::switch(
        &["--show-xfail"],
        |options| options.shown_codes.push("XFAIL"),
        "List tests that failed as expected (XFAIL)",
    ),
];
