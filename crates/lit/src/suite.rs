//! Suites and their tests.
//!
//! A run may have 50,000 tests in a few thousand directories, so a test holds little more than its file's name.
//! Facts that it shares with its neighbours are in their `Directory`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Config;

/// A test suite: a pair of roots and the config at the top.
#[derive(Debug)]
pub struct Suite {
    /// Its place among the suites of the run; names need not be unique.
    pub index: usize,
    /// First part of its tests' names.
    pub name: String,
    /// Directory of the tests. Real path.
    pub source_root: PathBuf,
    /// Directory below which they run. Real path.
    pub exec_root: PathBuf,
    /// The suite's own config.
    pub config: Arc<Config>,
}

/// A directory of a suite in which there are tests.
#[derive(Debug)]
pub struct Directory {
    /// The suite.
    pub suite: Arc<Suite>,
    /// Path below the suite's roots; empty at the top.
    pub path: PathBuf,
    /// The config that holds here.
    pub config: Arc<Config>,
}

/// Expectations for a test from the command line, in addition to those in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// `--xfail`: expected to fail.
    pub xfail: bool,
    /// `--xfail-not`: no XFAIL applies, not even `--xfail`.
    pub xfail_not: bool,
    /// `--unsupported`: not supported.
    pub unsupported: bool,
    /// `--unsupported-not`: no UNSUPPORTED applies, not even `--unsupported`.
    pub unsupported_not: bool,
    /// `--exclude-xfail`: not run if expected to fail.
    pub exclude_xfail: bool,
}

/// Details of a test that is not just a file: a part of a program, a name that a format made up, or more than a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// The components of its name below the suite; they may be empty, `.`, or have slashes in them.
    pub components: Vec<String>,
    /// The file that it comes from, if its name does not name it.
    pub file: Option<PathBuf>,
    /// File in which googletest writes the results of single tests, if it writes any.
    pub results: Option<PathBuf>,
    /// The test in Python's pickle, if its format has given it more than a name: conditions, or a config of its own.
    pub carried: Option<String>,
}

/// One test.
#[derive(Clone, Debug)]
pub struct Test {
    directory: Arc<Directory>,
    name: Box<OsStr>,
    detail: Option<Arc<Detail>>,
    /// Expectations from the command line.
    pub marks: Marks,
    /// Duration of its last run in seconds, negative if it failed; zero if unknown.
    pub previous: f64,
}

impl Test {
    /// Creates the test of this name in a directory.
    pub fn new(directory: Arc<Directory>, name: Box<OsStr>) -> Self {
        Test { directory, name, detail: None, marks: Marks::default(), previous: 0.0 }
    }

    /// Creates a test that is not just a file.
    pub fn with_detail(directory: Arc<Directory>, detail: Arc<Detail>) -> Self {
        let name = detail.components.last().map_or("", String::as_str);
        Test { detail: Some(detail.clone()), ..Test::new(directory, OsStr::new(name).into()) }
    }

    /// Returns the details, if the test is not just a file.
    pub fn detail(&self) -> Option<&Detail> {
        self.detail.as_deref()
    }

    /// Returns the directory in which it was found.
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Returns its suite.
    pub fn suite(&self) -> &Arc<Suite> {
        &self.directory.suite
    }

    /// Returns the config of its directory.
    pub fn config(&self) -> &Arc<Config> {
        &self.directory.config
    }

    /// Returns the file's name.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns its path below the suite's roots.
    pub fn relative_path(&self) -> PathBuf {
        if let Some(detail) = &self.detail {
            return detail.components.join("/").into();
        }
        self.directory.path.join(&*self.name)
    }

    /// Returns the components of its path below the suite's roots.
    pub fn path_in_suite(&self) -> Vec<String> {
        if let Some(detail) = &self.detail {
            return detail.components.clone();
        }
        self.relative_path().iter().map(|part| part.to_string_lossy().into_owned()).collect()
    }

    /// Returns `DIR/FILE`.
    pub fn path_text(&self) -> String {
        self.relative_path().to_string_lossy().into_owned()
    }

    /// Returns `SUITE :: DIR/FILE`.
    pub fn full_name(&self) -> String {
        // The name in the suite's config: a local config may set another one, to no effect.
        let mut name = self.suite().config.name.clone();
        name.push_str(" :: ");
        if let Some(detail) = &self.detail {
            name.push_str(&detail.components.join("/"));
            return name;
        }
        let directory = self.directory.path.to_string_lossy();
        if !directory.is_empty() {
            name.push_str(&directory);
            name.push('/');
        }
        name.push_str(&self.name.to_string_lossy());
        name
    }

    /// Returns the file that the test comes from.
    pub fn file_path(&self) -> PathBuf {
        let named = self.detail.as_ref().and_then(|detail| detail.file.clone());
        named.unwrap_or_else(|| self.source_path())
    }

    /// Returns the file that the test's name names, in the source tree.
    pub fn source_path(&self) -> PathBuf {
        self.below(&self.suite().source_root)
    }

    /// Returns the same path in the exec tree, where no file need exist. The test runs in its directory.
    pub fn exec_path(&self) -> PathBuf {
        self.below(&self.suite().exec_root)
    }

    /// Returns whether its last run failed.
    pub fn previous_failure(&self) -> bool {
        self.previous < 0.0
    }

    fn below(&self, root: &Path) -> PathBuf {
        let mut path =
            PathBuf::with_capacity(root.as_os_str().len() + self.directory.path.as_os_str().len() + 64);
        path.push(root);
        if let Some(detail) = &self.detail {
            detail.components.iter().for_each(|part| path.push(part));
            return path;
        }
        path.push(&self.directory.path);
        path.push(&*self.name);
        path
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a test of a suite at /src and /obj.
    pub(crate) fn test_at(suite: &str, directory: &str, name: &str) -> Test {
        let config = Arc::new(Config { name: suite.to_owned(), ..Config::default() });
        let roots = (PathBuf::from("/src"), PathBuf::from("/obj"));
        let suite = Suite {
            index: 0,
            name: suite.to_owned(),
            source_root: roots.0,
            exec_root: roots.1,
            config: config.clone(),
        };
        let directory = Directory { suite: Arc::new(suite), path: directory.into(), config };
        Test::new(Arc::new(directory), OsStr::new(name).into())
    }

    #[test]
    fn paths_and_names_are_made_of_suite_directory_and_file() {
        let deep = test_at("S", "a/b", "t.ll");
        assert_eq!(deep.full_name(), "S :: a/b/t.ll");
        assert_eq!(deep.source_path(), Path::new("/src/a/b/t.ll"));
        assert_eq!(deep.path_in_suite(), ["a", "b", "t.ll"]);
        let top = test_at("S", "", "t.ll");
        assert_eq!(top.full_name(), "S :: t.ll");
        assert_eq!(top.exec_path(), Path::new("/obj/t.ll"));
    }
}
