//! Options for the execution of tests. They include reports where lit lists them so.

use crate::args::flag::Flag;
use crate::args::values;

pub(super) static FLAGS: [Flag; 21] = [
    Flag::switch(
        &["--gtest-sharding"],
        |options| options.no_gtest_sharding = false,
        "Split googletest executables into shards (default)",
    ),
    Flag::switch(
        &["--no-gtest-sharding"],
        |options| options.no_gtest_sharding = true,
        "Run googletest executables as a whole",
    ),
    Flag::value(
        &["--path"],
        "PATH",
        |options, value, invocation| {
            options.path.push(values::absolute(value, invocation.cwd));
            Ok(())
        },
        "Put PATH before the PATH of tests; may be given more than once",
    ),
    Flag::switch(&["--vg"], |options| options.use_valgrind = true, "Run tests under valgrind"),
    Flag::switch(&["--vg-leak"], |options| options.valgrind_leak_check = true, "Let valgrind look for leaks"),
    Flag::value(
        &["--vg-arg"],
        "ARG",
        |options, value, _| {
            options.valgrind_args.push(values::text(value));
            Ok(())
        },
        "Give valgrind one more argument; may be given more than once",
    ),
    Flag::switch(
        &["--no-execute"],
        |options| options.no_execute = true,
        "Run nothing and take all tests as \
         passed",
    ),
    Flag::value(
        &["--xunit-xml-output"],
        "PATH",
        |options, value, _| {
            options.reports.xunit = Some(value.into());
            Ok(())
        },
        "Write results as xUnit's XML to PATH",
    ),
    Flag::switch(
        &["--report-failures-only"],
        |options| options.reports.failures_only = true,
        "Leave tests that did not fail out of all reports",
    ),
    Flag::value(
        &["--resultdb-output"],
        "PATH",
        |options, value, _| {
            options.reports.resultdb = Some(value.into());
            Ok(())
        },
        "Write results as JSON for LUCI's ResultDB to PATH",
    ),
    Flag::value(
        &["--time-trace-output"],
        "PATH",
        |options, value, _| {
            options.reports.time_trace = Some(value.into());
            Ok(())
        },
        "Write when each test ran as JSON for Chrome's trace viewer to PATH",
    ),
    Flag::switch(&["--use-unique-output-file-name"], |options| options.reports.unique_names = true, "")
        .hidden(),
    Flag::value(
        &["--timeout"],
        "SECONDS",
        |options, value, _| {
            options.timeout = Some(values::non_negative(value)?);
            Ok(())
        },
        "End each test after SECONDS; 0 is no limit (default: what the suite's config says, else 0)",
    ),
    Flag::value(
        &["--max-retries-per-test"],
        "N",
        |options, value, _| {
            options.max_retries_per_test = Some(values::positive(value)?);
            Ok(())
        },
        "Retry a failing test at most N times, where neither its ALLOW_RETRIES line nor its config's \
         test_retry_attempts says otherwise",
    ),
    Flag::value(
        &["--max-failures"],
        "N",
        |options, value, _| {
            options.max_failures = Some(values::positive(value)?);
            Ok(())
        },
        "End the run after N failures",
    ),
    Flag::switch(
        &["--allow-empty-runs"],
        |options| options.allow_empty_runs = true,
        "Take it as no error if the filters leave no test",
    ),
    Flag::switch(
        &["--per-test-coverage"],
        |options| options.per_test_coverage = true,
        "Give each command a coverage file of its own",
    ),
    Flag::switch(
        &["--ignore-fail"],
        |options| options.ignore_fail = true,
        "Exit with 0 although tests failed",
    ),
    Flag::switch(
        &["--update-tests"],
        |options| options.update_tests = true,
        "Change failing tests to expect what happened, where that is possible",
    ),
    Flag::switch(
        &["--skip-test-time-recording"],
        |options| options.skip_test_time_recording = true,
        "Do not record how long tests took",
    ),
    Flag::switch(
        &["--time-tests"],
        |options| options.time_tests = Some(hotstart_report::histogram::DEFAULT_SLOWEST),
        "Print a histogram of times and the 20 slowest tests; --time-tests=N prints the N slowest, \
         --time-tests=all all",
    ),
];
