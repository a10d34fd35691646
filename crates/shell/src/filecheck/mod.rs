//! Passes of FileCheck without a process.
//!
//! The matcher (`hotstart-filecheck`) decides passes only. For everything that it leaves undecided, the FileCheck that
//! the script names runs with the same input. The matcher replaces a FileCheck only after both gave the same answers to
//! a battery of cases, once for each FileCheck ([`trust`]). docs/design/filecheck.md has the rules.

mod battery;
mod stage;
mod store;
mod trust;
mod waiting;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hotstart_filecheck::{MAX_INPUT, Prepared, Request, Undecided};
use hotstart_launch::{EnvBlock, Group, Launcher};
use hotstart_model::Environment;
use hotstart_python::path::join;
use rustix::fs::{FileType, SeekFrom};

use crate::pump;

use trust::{Tool, Trust};
pub(crate) use waiting::{Started, Waiting};

/// Decides passes of FileCheck. Shared by all workers.
#[derive(Debug)]
pub struct FileChecks {
    /// Starts the FileChecks that the battery tests.
    launcher: Arc<Launcher>,
    /// The group of their processes.
    group: Group,
    trust: Trust,
    is_off: AtomicBool,
    matched: AtomicU64,
    left: Mutex<BTreeMap<&'static str, u64>>,
}

/// Counts of FileCheck runs, by how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCheckCounts {
    /// Passes without a process.
    pub matched: u64,
    /// Runs of FileCheck itself, by reason.
    pub left: BTreeMap<&'static str, u64>,
    /// FileChecks whose answers to the battery differed, or that differed in a test, with the difference.
    pub refused: Vec<(PathBuf, String)>,
}

impl FileCheckCounts {
    /// Returns the number of all runs of FileCheck itself.
    pub fn left_total(&self) -> u64 {
        self.left.values().sum()
    }
}

/// A FileCheck that is to run.
pub(crate) struct Call<'c> {
    pub program: &'c Path,
    pub args: &'c [String],
    pub env: &'c Environment,
    pub cwd: &'c str,
}

impl FileChecks {
    /// `launcher` starts the FileChecks that the battery tests. Verdicts are stored below `dir`; without one they are
    /// not stored.
    pub fn new(launcher: Arc<Launcher>, dir: Option<PathBuf>) -> Self {
        FileChecks {
            launcher,
            group: Group::new(),
            trust: Trust::new(dir.map(|dir| dir.join("filecheck"))),
            is_off: AtomicBool::new(false),
            matched: AtomicU64::new(0),
            left: Mutex::default(),
        }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> FileCheckCounts {
        FileCheckCounts {
            matched: self.matched.load(Ordering::Relaxed),
            left: self.left.lock().expect("no panic while locked").clone(),
            refused: self.trust.refused(),
        }
    }

    /// Leaves everything to the FileChecks from now on, because `test` showed a difference. Later runs do not trust
    /// those that were trusted, either.
    pub fn distrust(&self, test: &str) {
        self.is_off.store(true, Ordering::Relaxed);
        self.trust.refuse_all(&format!("a run with it differed in {test}"));
    }

    /// Runs the battery on the FileChecks that were used often enough and have no verdict yet. Returns when that is
    /// done, or when `is_over` returns true.
    pub fn test_pending(&self, is_over: &(dyn Fn() -> bool + Sync)) {
        while let Some(tool) = self.trust.next_pending() {
            if is_over() {
                return;
            }
            let verdict = battery::verdict(&tool, &self.launcher, &self.group, is_over);
            self.trust.settle(&tool, verdict);
        }
    }

    /// Whether this FileCheck is trusted. Runs the battery now if there is no verdict yet.
    pub fn test_now(&self, program: &Path, env: &Environment) -> bool {
        let tool = Tool::new(program, env);
        if !self.trust.is_known(&tool) {
            let verdict = battery::verdict(&tool, &self.launcher, &self.group, &|| false);
            self.trust.settle(&tool, verdict);
        }
        self.trust.believes(&tool)
    }

    /// Whether this FileCheck passes with these arguments, in this environment and directory. Calls `stdin` only if the
    /// input is needed.
    pub fn passes(
        &self,
        program: &Path,
        args: &[String],
        (env, cwd): (&Environment, &str),
        stdin: &mut dyn FnMut() -> Vec<u8>,
    ) -> bool {
        let Ok((prepared, input_file)) = self.attempt(&Call { program, args, env, cwd }) else {
            return false;
        };
        let input = match input_file {
            Some(file) => regular_file(&join(cwd, &file)),
            None => Some(stdin()),
        };
        input.is_some_and(|input| self.decide(prepared, &input))
    }

    /// Returns the check of a call, ready for its input. `None` if FileCheck itself must run.
    pub(crate) fn prepare(&self, call: &Call<'_>) -> Option<(Prepared, Option<String>)> {
        let name = call.program.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with("FileCheck") {
            return None;
        }
        match self.attempt(call) {
            Ok(prepared) => Some(prepared),
            Err(Undecided(why)) => {
                self.leave(why);
                None
            }
        }
    }

    fn attempt(&self, call: &Call<'_>) -> Result<(Prepared, Option<String>), Undecided> {
        if self.is_off.load(Ordering::Relaxed) {
            return Err(Undecided("switched off after a difference"));
        }
        if call.env.get("LD_PRELOAD").is_some() {
            return Err(Undecided("LD_PRELOAD"));
        }
        self.trust.ask(&Tool::new(call.program, call.env)).map_err(Undecided)?;
        let opts = call.env.get("FILECHECK_OPTS").map(|opts| opts.to_string_lossy());
        let request = Request::parse(call.args, opts.as_deref())?;
        let input_file = request.input_file.clone();
        let check = regular_file(&join(call.cwd, &request.check_file)).ok_or(Undecided("no check file"))?;
        Ok((request.prepare(&check)?, input_file))
    }

    /// Decides an input, and counts the result.
    pub(crate) fn decide(&self, prepared: Prepared, input: &[u8]) -> bool {
        match prepared.decide(input) {
            Ok(()) => {
                self.matched.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(Undecided(why)) => {
                self.leave(why);
                false
            }
        }
    }

    /// Counts a run that is left to FileCheck.
    pub(crate) fn leave(&self, why: &'static str) {
        *self.left.lock().expect("no panic while locked").entry(why).or_default() += 1;
    }
}

/// Returns the content of a regular file. Reading another kind of file may change it.
pub(crate) fn regular_file(path: &str) -> Option<Vec<u8>> {
    let is_regular = fs::metadata(path).is_ok_and(|found| found.is_file());
    is_regular.then(|| fs::read(path).ok()).flatten()
}

/// Returns the content of a regular file that was just opened, and leaves the file at its start.
pub(crate) fn whole(file: &OwnedFd) -> Option<Vec<u8>> {
    let found = rustix::fs::fstat(file).ok()?;
    if !FileType::from_raw_mode(found.st_mode).is_file() || found.st_size as usize > MAX_INPUT {
        return None;
    }
    let content = pump::read_all(file);
    rustix::fs::seek(file, SeekFrom::Start(0)).ok()?;
    Some(content)
}

/// Returns the environment of a FileCheck under test: its own, without FILECHECK_OPTS.
fn plain_environment(env: &[(OsString, OsString)]) -> Environment {
    env.iter().filter(|(name, _)| name != "FILECHECK_OPTS").cloned().collect()
}

/// Returns the same in the form that a process takes.
fn plain_block(env: &[(OsString, OsString)]) -> EnvBlock {
    EnvBlock::new(&plain_environment(env))
}
