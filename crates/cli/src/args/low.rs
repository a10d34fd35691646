//! The command line as typed, one field for each option.

use std::ffi::OsString;
use std::path::PathBuf;

use hotstart_report::files::Requested;
use hotstart_report::histogram::Slowest;

use super::console::ConsoleOptions;
use super::options::{Order, OwnOptions};
use super::words::Words;

/// The arguments as typed, values checked one by one. `None` means not given.
#[derive(Debug, Default)]
pub(super) struct LowArgs {
    pub test_paths: Vec<OsString>,
    pub workers: Option<usize>,
    pub config_prefix: Option<String>,
    pub user_params: Vec<(String, String)>,

    pub console: ConsoleOptions,
    pub relative_paths: bool,
    pub shown_codes: Vec<&'static str>,
    pub reports: Requested,

    pub no_gtest_sharding: bool,
    pub path: Vec<PathBuf>,
    pub use_valgrind: bool,
    pub valgrind_leak_check: bool,
    pub valgrind_args: Vec<String>,
    pub no_execute: bool,
    pub timeout: Option<u64>,
    pub max_retries_per_test: Option<usize>,
    pub max_failures: Option<usize>,
    pub allow_empty_runs: bool,
    pub per_test_coverage: bool,
    pub ignore_fail: bool,
    pub update_tests: bool,
    pub skip_test_time_recording: bool,
    pub time_tests: Option<Slowest>,

    pub max_tests: Option<usize>,
    pub max_time: Option<u64>,
    pub order: Order,
    pub incremental: bool,
    pub filter: Option<String>,
    pub filter_out: Option<String>,
    pub filter_failed: bool,
    pub xfail: Vec<String>,
    pub xfail_not: Vec<String>,
    pub exclude_xfail: bool,
    pub unsupported: Vec<String>,
    pub unsupported_not: Vec<String>,
    pub num_shards: Option<usize>,
    pub run_shard: Option<usize>,

    pub debug: bool,
    pub show_suites: bool,
    pub show_tests: bool,
    pub show_used_features: bool,
    pub own: OwnOptions,
    pub words: Words,
}
