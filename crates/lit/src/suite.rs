//! Suites and their tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Config;

/// A test suite: a pair of roots and the config at the top.
#[derive(Debug)]
pub struct Suite {
    /// First part of its tests' names.
    pub name: String,
    /// Where tests are. Real path.
    pub source_root: PathBuf,
    /// Where they run. Real path.
    pub exec_root: PathBuf,
    /// The suite's own config.
    pub config: Arc<Config>,
}

/// One test.
#[derive(Clone, Debug)]
pub struct Test {
    /// Its suite.
    pub suite: Arc<Suite>,
    /// Components of its path below the suite's roots.
    pub path_in_suite: Vec<String>,
    /// Config of its directory.
    pub config: Arc<Config>,
    /// For googletest: the executable, if it is not the source path.
    pub gtest_executable: Option<PathBuf>,
}

impl Test {
    /// `SUITE :: DIR/FILE`.
    pub fn full_name(&self) -> String {
        format!("{} :: {}", self.config.name, self.path_in_suite.join("/"))
    }

    /// The test's file.
    pub fn source_path(&self) -> PathBuf {
        below(&self.suite.source_root, &self.path_in_suite)
    }

    /// Where the file would be in the exec tree; its directory is where the test runs.
    pub fn exec_path(&self) -> PathBuf {
        below(&self.suite.exec_root, &self.path_in_suite)
    }
}

fn below(root: &Path, components: &[String]) -> PathBuf {
    let mut path = root.to_path_buf();
    path.extend(components);
    path
}
