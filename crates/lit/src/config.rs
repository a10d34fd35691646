//! The configuration of a suite or directory, as Python evaluated it.
//!
//! Values are exactly the config objects' own, but for `lit-tmp` in the environment; nothing else is computed.
//! `probe` fetches them. Large values are shared, as most directories' configs differ little.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hotstart_model::{ColdTools, Dialect, Environment};

/// One distinct config object: a suite's, or a directory's with a local config.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Number that the Python helper uses for it.
    pub id: u32,
    /// Its file and parent, from which another helper can read it again.
    pub origin: Option<Arc<Origin>>,
    /// The suite's name, first part of its tests' names.
    pub name: String,
    /// Matching depends on the dialect: docs/reference/lit-compat.md, 2.5.
    pub suffixes: BTreeSet<String>,
    /// Exact basenames of files and directories to skip.
    pub excludes: BTreeSet<String>,
    /// How tests are found and run; `None` where the config sets none.
    pub format: Option<Format>,
    /// The whole environment of test processes, with the run's temporary directory set.
    pub environment: Arc<Environment>,
    /// In the order of application.
    pub substitutions: Arc<Vec<Substitution>>,
    /// Features that conditions can name.
    pub available_features: Arc<BTreeSet<String>>,
    /// Whether all tests are unsupported.
    pub unsupported: bool,
    /// Whether a pipeline fails when any stage fails.
    pub pipefail: bool,
    /// If not empty, only tests that require one of these run.
    pub limit_to_features: BTreeSet<String>,
    /// Group of tests of which a limited number runs at once.
    pub parallelism_group: Option<ParallelismGroup>,
    /// Whether tests run only when named one by one.
    pub standalone_tests: bool,
    /// Passes of recursive substitution; `None` is a single, non-recursive pass.
    pub recursive_expansion_limit: Option<u32>,
    /// Attempts in addition to the first, from `config.test_retry_attempts`.
    pub test_retry_attempts: Option<u32>,
    /// Directory of the tests, as the config sets it.
    pub test_source_root: Option<PathBuf>,
    /// Directory below which tests run, as the config sets it.
    pub test_exec_root: Option<PathBuf>,
    /// lit 23: this config's limit per test. Zero in Python is `None` here.
    pub max_individual_test_time: Option<Duration>,
    /// `config.hotstart_cold`, which lit does not have: tools that always start cold.
    pub hotstart_cold: ColdTools,
    /// `config.hotstart_alone`, which lit does not have either: tests that run alone, after all others.
    pub hotstart_alone: Alone,
}

/// Tests of a config that run alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alone {
    /// All of them.
    All,
    /// Tests with these names: the last components of their paths.
    Named(BTreeSet<String>),
}

impl Default for Alone {
    fn default() -> Self {
        Alone::Named(BTreeSet::new())
    }
}

impl Alone {
    /// Returns whether the test of this name runs alone.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Alone::All => true,
            Alone::Named(names) => names.contains(name),
        }
    }
}

/// The source of a config's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The config file.
    pub file: PathBuf,
    /// Number of the config that it extends; `None` for a suite's, which extends lit's defaults.
    pub parent: Option<u32>,
}

/// A key, which is a Python regular expression, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitution {
    /// Python `re` pattern, unanchored.
    pub key: String,
    /// Replacement.
    pub value: String,
    /// Whether the value is a template with group references in every dialect (`SubstituteCaptures`).
    pub captures: bool,
}

/// How tests are found and run.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// RUN lines.
    ShTest {
        /// Whether the suite requests an external shell.
        execute_external: bool,
        /// Substitutions applied before the config's.
        extra_substitutions: Vec<Substitution>,
        /// Commands run before each test's own.
        preamble_commands: Vec<String>,
    },
    /// googletest executables.
    GoogleTest {
        /// Subdirectories of each visited directory that contain executables.
        test_sub_dirs: Vec<String>,
        /// End of an executable's name.
        test_suffix: String,
        /// Beginning of an executable's name (lit 23).
        test_prefix: Option<String>,
        /// Words put before the command.
        run_under: Vec<String>,
    },
    /// Test files that are executed themselves.
    Executable,
    /// Any other class: only Python can find and run its tests. The class's qualified name.
    Python(String),
}

/// `config.parallelism_group`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParallelismGroup {
    /// One name for all tests.
    Named(String),
    /// A Python callable of the test.
    Callable,
}

/// Returns whether configs of this lit have the limit of a test's time; before, `lit_config` has it, for all tests.
pub fn has_limits_in_configs(lit_version: (u32, u32, u32)) -> bool {
    lit_version.0 >= 23
}

/// The facts of a whole run: the lit that evaluates the configs, and the state of its `lit_config`.
#[derive(Clone, Debug)]
pub struct Session {
    /// Version of the `lit` package.
    pub lit_version: (u32, u32, u32),
    /// The version as the package words it: `19.1.7dev`.
    pub lit_version_text: String,
    /// The rules of that version.
    pub dialect: Dialect,
    /// Directory of the `lit` package, which lit's `cat` and `diff` put into PYTHONPATH.
    pub package_dir: PathBuf,
    /// The Python that evaluates configs.
    pub python: PathBuf,
    /// Result of `getBashPath()`; `None` means `/bin/sh`. Requested only if a config wants an external shell.
    pub bash: Option<PathBuf>,
    /// Parameters from the command line and from configs, as text.
    pub params: BTreeMap<String, String>,
    /// Words that `--vg` puts before commands of an external shell.
    pub valgrind_args: Vec<String>,
    /// Whether each command gets a coverage file of its own.
    pub per_test_coverage: bool,
    /// Sizes of parallelism groups; `None` is unlimited.
    pub parallelism_groups: BTreeMap<String, Option<u32>>,
    /// Limit per test that the command line or (before lit 23) a config set for all suites.
    pub max_individual_test_time: Option<Duration>,
    /// Whether the internal shell may run scripts for an external shell, where both behave identically.
    pub native_shell: bool,
    /// With `--diagnose`: the environment of the shell into which users paste commands.
    pub diagnose: Option<Arc<Environment>>,
    /// Directory for the tests' temporary files, created just before they run; `None` with LIT_PRESERVES_TMP.
    pub tmp_dir: Option<PathBuf>,
}
