//! Single lines of a run that other programs parse, all in one place.

use hotstart_model::RunEnd;

/// Nothing was found below the given paths.
pub fn no_tests_discovered() -> &'static str {
    "error: did not discover any tests for provided path(s)\n"
}

/// The filters matched none of this many tests; `allowed` by `--allow-empty-runs`.
pub fn filters_matched_nothing(discovered: usize, allowed: bool) -> String {
    let remedy = if allowed {
        "Suppressing error because '--allow-empty-runs' was specified.\n"
    } else {
        "Use '--allow-empty-runs' to suppress this error.\n"
    };
    format!("error: filter did not match any tests (of {discovered} discovered).  {remedy}")
}

/// This shard has no test.
pub fn empty_shard() -> &'static str {
    "warning: shard does not contain any tests.  Consider decreasing the number of shards.\n"
}

/// Errors during discovery.
pub fn discovery_errors(errors: u32) -> String {
    format!("{errors} errors, exiting.\n")
}

/// Errors, at the end of a run.
pub fn errors_in_tests(errors: u32) -> String {
    format!("\n{errors} error(s) in tests\n")
}

/// Warnings, at the end of a run.
pub fn warnings_in_tests(warnings: u32) -> String {
    format!("\n{warnings} warning(s) in tests\n")
}

/// Failures that do not count.
pub fn failures_ignored() -> &'static str {
    "\nExiting with status 0 instead of 1 because '--ignore-fail' was specified.\n"
}

/// The reason why the remaining tests are skipped, if the run ended early.
pub fn cut_short(end: RunEnd) -> Option<&'static str> {
    match end {
        RunEnd::Completed => None,
        RunEnd::Interrupted => Some("  interrupted by user, skipping remaining tests\n"),
        RunEnd::MaxFailures => {
            Some("warning: reached maximum number of test failures, skipping remaining tests\n")
        }
        RunEnd::MaxTime => Some("warning: reached timeout, skipping remaining tests\n"),
    }
}
