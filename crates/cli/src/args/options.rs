//! The options of a run. The parser fills in the values as typed, one by one; then `resolve` fills in defaults and combines related
//! options. It is one struct for both, so that an option is named once.

use std::ffi::OsString;
use std::path::PathBuf;

use hotstart_lit::settings::Order;
use hotstart_report::files::Requested;
use hotstart_report::histogram::Slowest;
use hotstart_report::time_by::TimeBy;

use super::Invocation;
use super::builtin::Builtin;
use super::console::ConsoleOptions;
use super::remote::RemoteOptions;
use super::warm::WarmOptions;
use super::words::Words;

/// Values of `--shell`, and whether each permits the internal shell.
pub const SHELLS: [(&str, bool); 2] = [("auto", false), ("native", true)];

/// Number of repetitions of a test under `--until-fail`, unless `--repeat` gives one.
const UNTIL_FAIL: u32 = 1000;

/// The use of the config cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigCacheUse {
    /// Configs are stored, and used instead of an evaluation.
    On,
    /// Configs are stored and compared with an evaluation.
    Check,
    /// The cache is not used.
    #[default]
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
    /// Tests on other machines.
    pub remote: RemoteOptions,
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LitOptions {
    /// Files and directories, as typed. Never empty.
    pub test_paths: Vec<OsString>,
    /// Most tests at a time. Zero until it is resolved, if not given.
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

    /// Whether googletest executables are not split into shards.
    pub no_gtest_sharding: bool,
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
    /// `--num-shards`.
    pub num_shards: Option<usize>,
    /// `--run-shard`.
    pub run_shard: Option<usize>,
    /// The shard to run, from 1, and the number of shards, once they are resolved.
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

impl LitOptions {
    /// Fills in defaults and combines related options. Returns lit's message for options that contradict each other.
    pub(super) fn resolve(mut self, invocation: &Invocation<'_>) -> Result<LitOptions, String> {
        if self.time_tests.is_some() && self.skip_test_time_recording {
            let message = "argument --skip-test-time-recording: not allowed with argument --time-tests";
            return Err(message.to_owned());
        }
        self.shard = shard(self.run_shard, self.num_shards)?;
        if self.own.until_fail {
            self.own.repeat.get_or_insert(UNTIL_FAIL);
        }
        if self.workers == 0 {
            self.workers = invocation.cores.max(1);
        }
        if !self.own.replay.is_empty() {
            self.workers = 1;
            self.own.warm.repeat_exactly();
        }
        Ok(self)
    }
}

fn shard(run: Option<usize>, shards: Option<usize>) -> Result<Option<(usize, usize)>, String> {
    match (run, shards) {
        (None, None) => Ok(None),
        (Some(run), Some(shards)) if run <= shards => Ok(Some((run, shards))),
        (Some(_), Some(_)) => Err("--run-shard must be between 1 and --num-shards (inclusive)".to_owned()),
        _ => Err("--num-shards and --run-shard must be used together".to_owned()),
    }
}
