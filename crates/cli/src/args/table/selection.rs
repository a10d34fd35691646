//! Options that select and order tests.

use hotstart_lit::settings::Order;

use crate::args::flag::Flag;
use crate::args::values;

const INCREMENTAL: &str = "WARNING: --incremental is deprecated. Failing tests now always run first.";

pub(super) static FLAGS: [Flag; 15] = [
    Flag::value(
        &["--max-tests"],
        "N",
        |options, value, _| {
            options.max_tests = Some(values::positive(value)?);
            Ok(())
        },
        "Run at most N tests",
    ),
    Flag::value(
        &["--max-time"],
        "N",
        |options, value, _| {
            options.max_time = Some(values::positive(value)? as u64);
            Ok(())
        },
        "End the run after N seconds",
    ),
    Flag::value(
        &["--order"],
        "{lexical,random,smart}",
        |options, value, _| {
            options.order = values::order(value)?;
            Ok(())
        },
        "Start tests by name, shuffled, or those first that failed last time and those that took \
         longest (default: \
         smart)",
    ),
    Flag::switch(
        &["--shuffle"],
        |options| options.order = Order::Random,
        "Same as --order=random (deprecated)",
    ),
    Flag::switch(
        &["-i", "--incremental"],
        |options| options.notices = vec![INCREMENTAL],
        "Without effect: tests that failed last time come first anyway (deprecated)",
    ),
    Flag::value(
        &["--filter"],
        "REGEX",
        |options, value, invocation| {
            options.filter = Some(values::pattern(value, invocation)?);
            Ok(())
        },
        "Run only tests whose names match REGEX, in any case of letters (default: $LIT_FILTER)",
    )
    .or_env("LIT_FILTER"),
    Flag::value(
        &["--filter-out"],
        "REGEX",
        |options, value, invocation| {
            options.filter_out = Some(values::pattern(value, invocation)?);
            Ok(())
        },
        "Leave out tests whose names match REGEX, in any case of letters (default: $LIT_FILTER_OUT)",
    )
    .or_env("LIT_FILTER_OUT"),
    Flag::switch(
        &["--filter-failed"],
        |options| options.filter_failed = true,
        "Run only tests that failed last time",
    ),
    Flag::value(
        &["--xfail"],
        "LIST",
        |options, value, _| {
            options.xfail = values::semicolon_list(value);
            Ok(())
        },
        "Expect these tests to fail: paths in the suite or full names, with semicolons between them \
         (default: \
         $LIT_XFAIL)",
    )
    .or_env("LIT_XFAIL"),
    Flag::value(
        &["--xfail-not"],
        "LIST",
        |options, value, _| {
            options.xfail_not = values::semicolon_list(value);
            Ok(())
        },
        "Expect these tests to pass, whatever they or --xfail say (default: $LIT_XFAIL_NOT)",
    )
    .or_env("LIT_XFAIL_NOT"),
    Flag::switch(
        &["--exclude-xfail"],
        |options| options.exclude_xfail = true,
        "Leave out tests that are expected to fail, but for those in --xfail-not",
    ),
    Flag::value(
        &["--unsupported"],
        "LIST",
        |options, value, _| {
            options.unsupported = values::semicolon_list(value);
            Ok(())
        },
        "Take these tests as UNSUPPORTED (default: $LIT_UNSUPPORTED)",
    )
    .or_env("LIT_UNSUPPORTED"),
    Flag::value(
        &["--unsupported-not"],
        "LIST",
        |options, value, _| {
            options.unsupported_not = values::semicolon_list(value);
            Ok(())
        },
        "Ignore UNSUPPORTED lines of these tests (default: $LIT_UNSUPPORTED_NOT)",
    )
    .or_env("LIT_UNSUPPORTED_NOT"),
    Flag::value(
        &["--num-shards"],
        "M",
        |options, value, _| {
            options.num_shards = Some(values::positive(value)?);
            Ok(())
        },
        "Split the tests into M parts and run one (default: $LIT_NUM_SHARDS)",
    )
    .or_env("LIT_NUM_SHARDS"),
    Flag::value(
        &["--run-shard"],
        "N",
        |options, value, _| {
            options.run_shard = Some(values::positive(value)?);
            Ok(())
        },
        "Run part N, from 1 (default: $LIT_RUN_SHARD)",
    )
    .or_env("LIT_RUN_SHARD"),
];
