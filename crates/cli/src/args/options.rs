//! The options of a run: the command line with defaults filled in and related options combined.

use std::ffi::OsString;
use std::path::PathBuf;

use hotstart_report::files::Requested;
use hotstart_report::histogram::Slowest;
use hotstart_report::time_by::TimeBy;

use super::Invocation;
use super::builtin::Builtin;
use super::console::ConsoleOptions;
use super::low::LowArgs;
use super::warm::WarmOptions;
use super::words::Words;

/// The order in which tests start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By name.
    Lexical,
    /// Shuffled.
    Random,
    /// Tests that failed last time first, then the longest ones.
    #[default]
    Smart,
}

/// Values of `--shell`, and whether each permits the internal shell.
pub const SHELLS: [(&str, bool); 2] = [("auto", false), ("native", true)];

/// Number of repetitions of a test under `--until-fail`, unless `--repeat` gives one.
const UNTIL_FAIL: u32 = 1000;

/// The use of the config cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigCacheUse {
    /// Configs are stored, and used instead of an evaluation.
    #[default]
    On,
    /// Configs are stored and compared with an evaluation.
    Check,
    /// The cache is not used.
    Off,
}

/// hotstart's own options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnOptions {
    /// The Python that evaluates configs; `None` searches for one.
    pub lit_python: Option<PathBuf>,
    /// The `lit` package that evaluates configs, or its parent directory; `None` takes the one that Python finds.
    pub lit_package: Option<PathBuf>,
    /// The CMake build tree whose site configs are used for paths in its source trees.
    pub build_tree: Option<PathBuf>,
    /// Parameters of a wrapper such as `llvm-lit`.
    pub builtin: Builtin,
    /// Whether the times of the phases before the first test are printed.
    pub debug_times: bool,
    /// The way in which tools are started.
    pub warm: WarmOptions,
    /// The comparison with another lit.
    pub ab: AbOptions,
    /// Whether the internal shell runs scripts for an external shell if both give the same result; `None` if the command
    /// line does not say.
    pub native_shell: Option<bool>,
    /// Whether every FileCheck runs as a process, so that none passes without one.
    pub no_filecheck: bool,
    /// Whether no pass of FileCheck is remembered between runs.
    pub no_check_cache: bool,
    /// Whether tests are remembered that passed, and not run while their inputs are the same.
    pub remember: Remember,
    /// Whether the inputs of tests are listed.
    pub inputs: bool,
    /// Files; the tests that a change to one of them would run are listed.
    pub affected: Vec<PathBuf>,
    /// Whether the failed command, and how to rerun it, follow a failing test's result line.
    pub diagnose: bool,
    /// Whether only tests run that failed last time. An empty selection is then no error.
    pub rerun_failed: bool,
    /// The groups by which the run's time is summed up.
    pub time_by: Vec<TimeBy>,
    /// Whether tests are listed as JSON, and nothing is run.
    pub list: bool,
    /// Tests that run one by one, after all others.
    pub alone: Option<String>,
    /// A regular expression. Failures whose output matches run once more, one by one after all other tests.
    pub rerun_serially: Option<String>,
    /// Number of runs of each test.
    pub repeat: Option<u32>,
    /// Whether repetitions end at the first failure.
    pub until_fail: bool,
    /// Tools that are started through other programs, as typed.
    pub wraps: Vec<String>,
    /// The record of an earlier run; its tests run in the same order in the same workers.
    pub replay_record: Option<PathBuf>,
    /// The use of the config cache.
    pub config_cache: ConfigCacheUse,
    /// The only tests to run, by full name, one after the other in this order.
    pub replay: Vec<String>,
}

/// Which tests are not run because they passed before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remember {
    /// None.
    #[default]
    Nothing,
    /// Those whose inputs are the same files, with the same times.
    SameFiles,
    /// Those whose inputs have the same content.
    SameContent,
}

/// Options of a comparison with another lit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AbOptions {
    /// The other lit's command line, as typed; `None` for no comparison.
    pub with: Option<OsString>,
    /// Rounds, each with one run of both.
    pub runs: Option<usize>,
    /// Files for the report, each in the format of its extension.
    pub reports: Vec<PathBuf>,
}

/// All options of a command line.
#[derive(Clone, Debug, PartialEq)]
pub struct LitOptions {
    /// Files and directories, as typed. Never empty.
    pub test_paths: Vec<OsString>,
    /// Most tests at a time.
    pub workers: usize,
    /// Prefix of config files' names in place of `lit`.
    pub config_prefix: Option<String>,
    /// Parameters for configs, in order; later ones win.
    pub user_params: Vec<(String, String)>,

    /// Options for the output; see [`ConsoleOptions::levels`].
    pub console: ConsoleOptions,
    /// Whether lists of tests show paths relative to the working directory.
    pub relative_paths: bool,
    /// Names of result codes whose tests are listed although they are not failures.
    pub shown_codes: Vec<&'static str>,
    /// The reports to write.
    pub reports: Requested,
    /// Lines to print to standard output before anything else.
    pub notices: Vec<&'static str>,

    /// Whether googletest executables are split into shards.
    pub gtest_sharding: bool,
    /// Directories put before PATH in tests' environments. Absolute.
    pub path: Vec<PathBuf>,
    /// Whether tests run under valgrind.
    pub use_valgrind: bool,
    /// Whether valgrind looks for leaks.
    pub valgrind_leak_check: bool,
    /// More arguments for valgrind.
    pub valgrind_args: Vec<String>,
    /// Whether tests are only parsed.
    pub no_execute: bool,
    /// Seconds per test. `Some(0)` is no limit; `None` leaves the limit to the configs.
    pub timeout: Option<u64>,
    /// Retries of a test for which neither the test nor its config gives a number.
    pub max_retries_per_test: Option<usize>,
    /// Number of failures after which the run ends.
    pub max_failures: Option<usize>,
    /// Whether it is no error if filters exclude all tests.
    pub allow_empty_runs: bool,
    /// Whether each command has its own coverage file.
    pub per_test_coverage: bool,
    /// Whether failures leave the exit code 0.
    pub ignore_fail: bool,
    /// Whether failing tests are updated.
    pub update_tests: bool,
    /// Whether times are not recorded for the next run.
    pub skip_test_time_recording: bool,
    /// Number of the slowest tests that `--time-tests` lists, if given.
    pub time_tests: Option<Slowest>,

    /// Most tests to run.
    pub max_tests: Option<usize>,
    /// Seconds after which the run ends.
    pub max_time: Option<u64>,
    /// The order in which tests start.
    pub order: Order,
    /// Case-insensitive regular expression of the tests to run; `None` runs all.
    pub filter: Option<String>,
    /// Case-insensitive regular expression of the tests to exclude; `None` excludes none.
    pub filter_out: Option<String>,
    /// Whether only tests run that failed last time.
    pub filter_failed: bool,
    /// Tests that are expected to fail, by path in suite or full name.
    pub xfail: Vec<String>,
    /// Tests that are not expected to fail, in spite of their XFAIL lines and of `xfail`.
    pub xfail_not: Vec<String>,
    /// Whether tests that are expected to fail are excluded.
    pub exclude_xfail: bool,
    /// Tests to report as unsupported.
    pub unsupported: Vec<String>,
    /// Tests whose UNSUPPORTED lines are ignored.
    pub unsupported_not: Vec<String>,
    /// The shard to run, from 1, and the number of shards.
    pub shard: Option<(usize, usize)>,

    /// Whether debug messages are shown.
    pub debug: bool,
    /// Whether suites are listed, and nothing is run.
    pub show_suites: bool,
    /// Whether tests are listed, and nothing is run.
    pub show_tests: bool,
    /// Whether the features that conditions name are listed, and nothing is run.
    pub show_used_features: bool,
    /// hotstart's own options.
    pub own: OwnOptions,
    /// The command line word by word, to run it once more.
    pub words: Words,
}

/// Combines related options. Returns lit's message for options that contradict each other.
pub(super) fn resolve(low: LowArgs, invocation: &Invocation<'_>) -> Result<LitOptions, String> {
    if low.time_tests.is_some() && low.skip_test_time_recording {
        return Err("argument --skip-test-time-recording: not allowed with argument --time-tests".to_owned());
    }
    let shard = shard(low.run_shard, low.num_shards)?;
    let mut own = low.own;
    if own.until_fail {
        own.repeat.get_or_insert(UNTIL_FAIL);
    }
    let mut workers = low.workers.unwrap_or(invocation.cores).max(1);
    if !own.replay.is_empty() {
        workers = 1;
        own.warm.repeat_exactly();
    }
    let incremental = "WARNING: --incremental is deprecated. Failing tests now always run first.";
    Ok(LitOptions {
        test_paths: low.test_paths,
        workers,
        config_prefix: low.config_prefix,
        user_params: low.user_params,
        console: low.console,
        relative_paths: low.relative_paths,
        shown_codes: low.shown_codes,
        reports: low.reports,
        notices: if low.incremental { vec![incremental] } else { Vec::new() },
        gtest_sharding: !low.no_gtest_sharding,
        path: low.path,
        use_valgrind: low.use_valgrind,
        valgrind_leak_check: low.valgrind_leak_check,
        valgrind_args: low.valgrind_args,
        no_execute: low.no_execute,
        timeout: low.timeout,
        max_retries_per_test: low.max_retries_per_test,
        max_failures: low.max_failures,
        allow_empty_runs: low.allow_empty_runs,
        per_test_coverage: low.per_test_coverage,
        ignore_fail: low.ignore_fail,
        update_tests: low.update_tests,
        skip_test_time_recording: low.skip_test_time_recording,
        time_tests: low.time_tests,
        max_tests: low.max_tests,
        max_time: low.max_time,
        order: low.order,
        filter: low.filter,
        filter_out: low.filter_out,
        filter_failed: low.filter_failed,
        xfail: low.xfail,
        xfail_not: low.xfail_not,
        exclude_xfail: low.exclude_xfail,
        unsupported: low.unsupported,
        unsupported_not: low.unsupported_not,
        shard,
        debug: low.debug,
        show_suites: low.show_suites,
        show_tests: low.show_tests,
        show_used_features: low.show_used_features,
        own,
        words: low.words,
    })
}

fn shard(run: Option<usize>, shards: Option<usize>) -> Result<Option<(usize, usize)>, String> {
    match (run, shards) {
        (None, None) => Ok(None),
        (Some(run), Some(shards)) if run <= shards => Ok(Some((run, shards))),
        (Some(_), Some(_)) => Err("--run-shard must be between 1 and --num-shards (inclusive)".to_owned()),
        _ => Err("--num-shards and --run-shard must be used together".to_owned()),
    }
}
