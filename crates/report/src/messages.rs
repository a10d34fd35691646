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

/// The part of the tests that shard `run` of `shards` runs: `selected` of `total` tests.
pub fn selecting_shard(run: usize, shards: usize, selected: usize, total: usize) -> String {
    let first: Vec<String> = (run..=total).step_by(shards).take(3).map(|n| n.to_string()).collect();
    let more = if selected > first.len() { ", ..." } else { "" };
    let first = first.join(", ");
    format!(
        "Selecting shard {run}/{shards} = size {selected}/{total} = tests #({shards}*k)+{run} = [{first}{more}]"
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_names_its_first_tests() {
        assert_eq!(selecting_shard(1, 3, 2, 5), "Selecting shard 1/3 = size 2/5 = tests #(3*k)+1 = [1, 4]");
        assert!(selecting_shard(2, 2, 5, 10).ends_with("#(2*k)+2 = [2, 4, 6, ...]"));
        assert!(selecting_shard(7, 7, 0, 5).ends_with("= []"));
    }
}
