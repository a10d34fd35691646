//! googletest executables on the walk.
//!
//! The walk only records them. After the walk of an input, all are asked for their tests at once. Everything that
//! depends on the answers waits until then, and keeps lit's order.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotstart_model::{Diagnostic, Environment, Severity};
use hotstart_python::repr;

use super::select_files::{Listing, is_googletest};
use super::walk::{Name, Walk};
use crate::config::Format;
use crate::googletest::list::{self, Answer, Question};
use crate::googletest::shards;
use crate::suite::Detail;

/// Steps that wait for answers of executables.
#[derive(Debug)]
pub(super) enum Deferred {
    /// An executable's tests.
    Executable(Box<Executable>),
    /// Warning about an executable that was found before.
    Repeated(String),
    /// A nested suite without other tests. The items from `since` on decide whether it has any.
    NestedSuite { suite: usize, since: usize },
}

/// An executable to ask.
#[derive(Debug)]
pub(super) struct Executable {
    question: Question,
    found: Found,
}

/// Where an executable was found.
#[derive(Debug)]
struct Found {
    /// Number of the directory that was visited.
    directory: u32,
    /// Name of the suite's own config, which is part of the results file's name.
    suite_name: String,
    /// Components of its name below the suite.
    components: Vec<String>,
}

impl Walk<'_, '_> {
    /// Records the executables in a directory's subdirectories.
    pub fn take_executables(&mut self, suite: usize, path: &Path, source: &Path, id: u32) {
        let config = self.configs[id as usize].clone().expect("an evaluated config");
        let Some(Format::GoogleTest { test_sub_dirs, test_suffix, test_prefix, run_under }) = &config.format
        else {
            return;
        };
        let env = Arc::new(self.without_tmp_dir(&config.environment));
        let suite_config = self.configs[self.suites[suite].config as usize].as_ref();
        let suite_name = suite_config.map(|config| config.name.clone()).unwrap_or_default();
        let directory = self.directory(suite, path, id);
        for sub in test_sub_dirs {
            let Ok(listing) = Listing::read(&source.join(sub)) else { continue };
            let is_executable = |name: &&OsStr| is_googletest(name, test_suffix, test_prefix.as_deref());
            for name in listing.files.iter().map(|name| &**name).filter(is_executable) {
                let file = source.join(sub).join(name);
                if !self.seen_executables.entry(id).or_default().insert(file.clone().into()) {
                    let message = format!(
                        "Skip adding {} since it has been added to the test pool",
                        super::repr(&file)
                    );
                    self.googletests.push(Deferred::Repeated(message));
                    continue;
                }
                let file = file.to_string_lossy().into_owned();
                let before = list::words_before(&file, run_under, &self.probe.about().python);
                let above = path.iter().map(|part| part.to_string_lossy().into_owned());
                self.googletests.push(Deferred::Executable(Box::new(Executable {
                    question: Question { path: file, before, env: env.clone() },
                    found: Found {
                        directory,
                        suite_name: suite_name.clone(),
                        components: above.chain([sub.clone(), name.to_string_lossy().into_owned()]).collect(),
                    },
                })));
            }
        }
    }

    /// Reports that a nested suite has no tests, unless executables that were recorded since have some.
    pub fn nested_without_tests(&mut self, suite: usize, since: usize) {
        if self.googletests.is_empty() {
            let name = repr(&self.suites[suite].name);
            self.voice.warn(format!("test suite {name} contained no tests"));
        } else {
            self.googletests.push(Deferred::NestedSuite { suite, since });
        }
    }

    /// A copied format inherits the executables that the original has seen so far.
    pub fn inherit_executables(&mut self, above: u32, format: Option<Format>, id: Option<u32>) {
        let Some(id) = id else { return };
        let is_copy = self.configs[id as usize].as_ref().is_some_and(|config| config.format == format);
        let seen = self.seen_executables.get(&above).filter(|_| is_copy).cloned();
        if let Some(seen) = seen {
            self.seen_executables.insert(id, seen);
        }
    }

    /// Asks all recorded executables, and adds their shards.
    pub fn ask_googletests(&mut self) {
        let deferred = std::mem::take(&mut self.googletests);
        let mut questions = Vec::new();
        let mut executables = Vec::new();
        let mut order = Vec::new();
        for item in deferred {
            order.push(match item {
                Deferred::Executable(executable) => {
                    questions.push(executable.question);
                    executables.push(executable.found);
                    None
                }
                other => Some(other),
            });
        }
        let answers = list::ask_all(&questions, self.starter);
        let mut next = questions.into_iter().zip(executables).zip(answers);
        // Number of tests before each item.
        let mut counts = Vec::with_capacity(order.len());
        for item in order {
            counts.push(self.tests.len());
            match item {
                Some(Deferred::Repeated(message)) => self.voice.warn(message),
                Some(Deferred::NestedSuite { suite, since }) if counts[since] == self.tests.len() => {
                    let name = repr(&self.suites[suite].name);
                    self.voice.warn(format!("test suite {name} contained no tests"));
                }
                Some(_) => {}
                None => {
                    let ((question, found), answer) = next.next().expect("an answer to each question");
                    self.add_shards(&question.path, found, answer);
                }
            }
        }
    }

    fn add_shards(&mut self, path: &str, found: Found, answer: Answer) {
        let Found { directory, suite_name, components } = found;
        let mut add = |rest: &[String], results: Option<PathBuf>| {
            let components = components.iter().chain(rest).cloned().collect();
            let detail = Detail { components, file: Some(path.into()), results, carried: None };
            self.tests.push((directory, Name::Made(Arc::new(detail))));
        };
        let results = |rest: &str| format!("{path}-{suite_name}-{}{rest}.json", std::process::id()).into();
        match answer {
            Answer::Tests(_) if !self.settings.gtest_sharding => add(&[], Some(results(""))),
            Answer::Tests(tests) => {
                let total = shards(tests, list::cores());
                for index in 0..total {
                    add(&[index.to_string(), total.to_string()], Some(results(&format!("-{index}-{total}"))));
                }
            }
            Answer::Failed(warning) => {
                add(&["failed_to_discover_tests_from_gtest".to_owned()], None);
                self.voice.warn(warning);
            }
            Answer::NotStarted(message) => {
                let place = Some(format!("{path}:1"));
                self.voice.give_up(Diagnostic { severity: Severity::Fatal, place, message });
            }
        }
    }

    /// Returns the environment as configs made it: the directory for temporary files does not exist yet.
    fn without_tmp_dir(&self, env: &Environment) -> Environment {
        let Some(dir) = self.tmp_dir else { return env.clone() };
        env.iter().filter(|(_, value)| *value != dir.as_os_str()).collect()
    }
}
