//! The user's settings that decide which tests there are and how they run.
//!
//! Plain data, filled in by the command line; docs/reference/lit-compat.md, 1.2 and 1.3, has the options. Output
//! options are here only if they change what is gathered, as the level of diagnostics does.

use std::path::PathBuf;
use std::sync::Arc;

use hotstart_model::{Environment, Severity, Wrap};

/// Cache of evaluated configs, kept from one run to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigCache {
    /// The directory.
    pub dir: PathBuf,
    /// Whether to evaluate all configs nevertheless and compare them with the cache.
    pub checks: bool,
}

/// Settings of `load`. [`Settings::default`] is lit's behaviour without options.
#[derive(Clone, Debug)]
pub struct Settings {
    /// TEST_PATH: files and directories, in the source or the build tree.
    pub paths: Vec<PathBuf>,
    /// Directory to which relative paths refer. Absolute.
    pub cwd: PathBuf,
    /// Program name in the diagnostics that configs print through `lit_config`.
    pub progname: String,
    /// Parameters given by a wrapper such as `llvm-lit`, values as JSON; `-D` overrides them.
    pub builtin_params: Vec<(String, String)>,
    /// `-D NAME=VALUE`, in order.
    pub params: Vec<(String, String)>,
    /// A wrapper's map from a main config's real path to the config to load instead.
    pub config_map: Vec<(PathBuf, PathBuf)>,
    /// `--config-prefix`.
    pub config_prefix: Option<String>,
    /// The Python that evaluates configs. Default: HOTSTART_LIT_PYTHON, else the first one found that has lit.
    pub python: Option<PathBuf>,
    /// A `lit` package to use in place of that Python's: its directory, or the parent of that.
    pub lit_package: Option<PathBuf>,
    /// `--path`. Absolute.
    pub path: Vec<PathBuf>,
    /// `--vg`.
    pub use_valgrind: bool,
    /// `--vg-leak`.
    pub valgrind_leak_check: bool,
    /// `--vg-arg`.
    pub valgrind_args: Vec<String>,
    /// `--no-execute`.
    pub no_execute: bool,
    /// `--debug`.
    pub debug: bool,
    /// The least serious kind of diagnostic that is shown: `Error`, `Warning` or `Note`.
    pub diagnostic_level: Severity,
    /// Whether the output of tests that did not fail is needed too.
    pub wants_all_output: bool,
    /// Whether a failing test's output names the command that failed, in a line.
    pub annotate: bool,
    /// Whether outcomes contain the time of each RUN line.
    pub line_times: bool,
    /// Whether the internal shell may run scripts for an external shell, where both behave identically.
    pub native_shell: bool,
    /// `--diagnose`: failing tests say which command failed and how to run it again. The environment of the shell into
    /// which users paste that.
    pub diagnose: Option<Arc<Environment>>,
    /// Cache of evaluated configs; `None` disables it.
    pub config_cache: Option<ConfigCache>,
    /// `--order`.
    pub order: Order,
    /// `--per-test-coverage`.
    pub per_test_coverage: bool,
    /// False with `--no-gtest-sharding`.
    pub gtest_sharding: bool,
    /// `--timeout`, in seconds; zero is none.
    pub timeout: Option<u64>,
    /// `--max-retries-per-test`.
    pub max_retries_per_test: Option<u32>,
    /// `--update-tests`.
    pub update_tests: bool,
    /// `--filter`, a Python regular expression.
    pub filter: Option<String>,
    /// `--filter-out`, likewise.
    pub filter_out: Option<String>,
    /// `--replay`: only these tests, by full name, in this order. Overrides all other selections.
    pub replay: Vec<String>,
    /// `--alone`, a Python regular expression: tests that run one by one, after all others.
    pub alone: Option<String>,
    /// `--repeat`: number of runs of each test, each with temporary files of its own.
    pub repeat: Option<u32>,
    /// `--wrap`: tools that other programs start.
    pub wraps: Arc<[Wrap]>,
    /// `--filter-failed`: only tests that failed last time.
    pub filter_failed: bool,
    /// `--run-shard` (from 1) and `--num-shards`.
    pub shard: Option<(usize, usize)>,
    /// `--max-tests`.
    pub max_tests: Option<usize>,
    /// `--xfail`: full names, or paths below the suite.
    pub xfail: Vec<String>,
    /// `--xfail-not`.
    pub xfail_not: Vec<String>,
    /// `--exclude-xfail`.
    pub exclude_xfail: bool,
    /// `--unsupported`.
    pub unsupported: Vec<String>,
    /// `--unsupported-not`.
    pub unsupported_not: Vec<String>,
}

/// The order in which tests start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By name.
    Lexical,
    /// A new random order each time.
    Random,
    /// Tests that failed last time first, then those that took longest.
    #[default]
    Smart,
}

impl Order {
    /// Returns lit's name of the order.
    pub fn name(self) -> &'static str {
        match self {
            Order::Lexical => "lexical",
            Order::Random => "random",
            Order::Smart => "smart",
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            paths: Vec::new(),
            cwd: PathBuf::from("/"),
            progname: "lit".to_owned(),
            builtin_params: Vec::new(),
            params: Vec::new(),
            config_map: Vec::new(),
            config_prefix: None,
            python: None,
            lit_package: None,
            path: Vec::new(),
            use_valgrind: false,
            valgrind_leak_check: false,
            valgrind_args: Vec::new(),
            no_execute: false,
            debug: false,
            diagnostic_level: Severity::Note,
            wants_all_output: false,
            annotate: false,
            line_times: false,
            config_cache: None,
            native_shell: false,
            diagnose: None,
            order: Order::Smart,
            per_test_coverage: false,
            gtest_sharding: true,
            timeout: None,
            max_retries_per_test: None,
            update_tests: false,
            filter: None,
            filter_out: None,
            replay: Vec::new(),
            filter_failed: false,
            alone: None,
            repeat: None,
            wraps: Arc::default(),
            shard: None,
            max_tests: None,
            xfail: Vec::new(),
            xfail_not: Vec::new(),
            exclude_xfail: false,
            unsupported: Vec::new(),
            unsupported_not: Vec::new(),
        }
    }
}
