//! Decides which FileChecks the matcher may replace.
//!
//! A FileCheck is identified by its file, the libraries that it loads, and the variables that control the loader. PyPI's filecheck
//! is identified by all files that a start looks at ([`python`](super::python)), and by its environment. The battery tests it once it
//! was used often enough that this pays. Every use checks whether the files are unchanged.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hotstart_filecheck::Dialect;
use hotstart_model::Environment;

use super::{python, store};

/// Uses in a run before the battery tests a FileCheck. The battery takes about as long as this number of its runs,
/// warm.
const USES: u32 = 60;
/// The same for a Python script, of which most starts are cold.
const USES_OF_SCRIPT: u32 = 150;
/// The same in a run of many tests, which will certainly use it so often. The first uses make it warm.
const FIRST_USES: u32 = 8;

/// A FileCheck, as a call names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tool {
    pub program: PathBuf,
    pub dialect: Dialect,
    /// The variables that control the loader, or for a Python script all that may matter.
    pub loader: Vec<(OsString, OsString)>,
    /// Its environment at the first use. It is no part of the identity.
    pub environment: Ignored,
}

/// Variables that do not distinguish FileChecks.
#[derive(Clone, Debug)]
pub(super) struct Ignored(pub Vec<(OsString, OsString)>);

impl PartialEq for Ignored {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Ignored {}

impl std::hash::Hash for Ignored {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Tool {
    pub fn new(program: &Path, dialect: Dialect, env: &Environment) -> Self {
        let counts = |name: &std::ffi::OsStr| match dialect {
            Dialect::Llvm => name.to_string_lossy().starts_with("LD_"),
            Dialect::Pypi => python::counts(name),
        };
        let all = || env.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut loader: Vec<_> = all().filter(|(name, _)| counts(name)).collect();
        loader.sort_unstable();
        Tool { program: program.to_owned(), dialect, loader, environment: Ignored(all().collect()) }
    }
}

/// What of a path a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aspect {
    /// The file that the path leads to.
    Target,
    /// What is at the path: a file, a link, or a directory with its names.
    Itself,
    /// That this directory is there, whatever is in it.
    Place,
    /// That nothing is there.
    Missing,
}

/// A file, and the numbers that identify its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub path: PathBuf,
    pub aspect: Aspect,
    /// Device, inode, size, and times of modification and change.
    pub numbers: [i64; 7],
}

impl Mark {
    /// Returns the mark of the file as it is now.
    pub fn of(path: &Path) -> Option<Mark> {
        Mark::seen(path, Aspect::Target)
    }

    /// Returns the mark of an aspect as it is now. `None` if it is another one now.
    pub fn seen(path: &Path, aspect: Aspect) -> Option<Mark> {
        let found = match aspect {
            Aspect::Target => std::fs::metadata(path),
            _ => std::fs::symlink_metadata(path),
        };
        let numbers = match (aspect, found) {
            (Aspect::Missing, Err(error)) => {
                let is_missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
                is_missing.then_some([0; 7])?
            }
            (Aspect::Missing, Ok(_)) | (_, Err(_)) => return None,
            (Aspect::Place, Ok(found)) => {
                let what = [found.dev() as i64, found.ino() as i64, i64::from(found.mode())];
                [what[0], what[1], what[2], 0, 0, 0, 0]
            }
            (Aspect::Target | Aspect::Itself, Ok(found)) => {
                let (device, inode, size) = (found.dev() as i64, found.ino() as i64, found.size() as i64);
                let modified = [found.mtime(), found.mtime_nsec()];
                let changed = [found.ctime(), found.ctime_nsec()];
                [device, inode, size, modified[0], modified[1], changed[0], changed[1]]
            }
        };
        Some(Mark { path: path.to_owned(), aspect, numbers })
    }

    pub fn is_current(&self) -> bool {
        Mark::seen(&self.path, self.aspect).as_ref() == Some(self)
    }
}

/// The result of the battery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The difference in its answers, if there was one.
    pub refusal: Option<String>,
    /// The files of the FileCheck.
    pub marks: Arc<[Mark]>,
}

#[derive(Debug)]
enum State {
    Used(u32),
    Pending,
    Settled(Verdict),
}

/// All verdicts on FileChecks.
#[derive(Debug)]
pub(super) struct Trust {
    dir: Option<PathBuf>,
    uses: u32,
    tools: Mutex<HashMap<Tool, State>>,
}

impl Trust {
    pub fn new(dir: Option<PathBuf>) -> Self {
        Trust { dir, uses: USES, tools: Mutex::default() }
    }

    /// Has FileChecks tested early, since there are so many tests that this pays.
    pub fn test_early(&mut self) {
        self.uses = FIRST_USES;
    }

    /// Returns the files of this FileCheck if the matcher may decide for it, or the reason why not. Counts the use.
    pub fn ask(&self, tool: &Tool) -> Result<Arc<[Mark]>, &'static str> {
        const NOT_YET: &str = "not put to the test yet";
        let mut tools = self.tools.lock().expect("no panic while locked");
        if !tools.contains_key(tool) {
            tools.insert(tool.clone(), self.at_first_sight(tool));
        }
        let state = tools.get_mut(tool).expect("entered above");
        let verdict = match state {
            State::Used(uses) => {
                *uses += 1;
                if *uses >= self.uses(tool) {
                    *state = State::Pending;
                }
                return Err(NOT_YET);
            }
            State::Pending => return Err(NOT_YET),
            State::Settled(verdict) => verdict.clone(),
        };
        // A Python script has hundreds of files.
        drop(tools);
        if !verdict.marks.iter().all(Mark::is_current) {
            self.tools.lock().expect("no panic while locked").insert(tool.clone(), State::Used(1));
            return Err(NOT_YET);
        }
        match verdict.refusal {
            None => Ok(verdict.marks),
            Some(_) => Err("it answered the test cases otherwise"),
        }
    }

    fn uses(&self, tool: &Tool) -> u32 {
        match tool.dialect {
            Dialect::Pypi if self.uses == USES => USES_OF_SCRIPT,
            _ => self.uses,
        }
    }

    fn at_first_sight(&self, tool: &Tool) -> State {
        let kept = self.dir.as_ref().and_then(|dir| store::read(dir, tool));
        match kept.filter(|verdict| verdict.marks.iter().all(Mark::is_current)) {
            Some(verdict) => State::Settled(verdict),
            None => State::Used(0),
        }
    }

    /// Whether there is a current verdict.
    pub fn is_known(&self, tool: &Tool) -> bool {
        let mut tools = self.tools.lock().expect("no panic while locked");
        let state = tools.entry(tool.clone()).or_insert_with(|| self.at_first_sight(tool));
        matches!(state, State::Settled(verdict) if verdict.marks.iter().all(Mark::is_current))
    }

    /// Whether the verdict allows the matcher.
    pub fn believes(&self, tool: &Tool) -> bool {
        let tools = self.tools.lock().expect("no panic while locked");
        matches!(tools.get(tool), Some(State::Settled(Verdict { refusal: None, .. })))
    }

    /// Returns one that the battery should test now.
    pub fn next_pending(&self) -> Option<Tool> {
        let tools = self.tools.lock().expect("no panic while locked");
        tools.iter().find(|(_, state)| matches!(state, State::Pending)).map(|(tool, _)| tool.clone())
    }

    /// Records a verdict. Without one, the FileCheck is not tested again in this run.
    pub fn settle(&self, tool: &Tool, verdict: Option<Verdict>) {
        if let (Some(dir), Some(verdict)) = (&self.dir, &verdict) {
            store::write(dir, tool, verdict);
        }
        let verdict = verdict.unwrap_or_else(|| Verdict {
            refusal: Some("it could not be put to the test".to_owned()),
            marks: Arc::default(),
        });
        self.tools.lock().expect("no panic while locked").insert(tool.clone(), State::Settled(verdict));
    }

    /// Revokes the trust in every FileCheck, and stores that.
    pub fn refuse_all(&self, why: &str) {
        self.refuse(why, |_| true);
    }

    /// Revokes the trust in these FileChecks, and stores that.
    pub fn refuse(&self, why: &str, which: impl Fn(&Tool) -> bool) {
        let mut tools = self.tools.lock().expect("no panic while locked");
        for (tool, state) in tools.iter_mut().filter(|(tool, _)| which(tool)) {
            let State::Settled(verdict) = state else { continue };
            if verdict.refusal.is_none() {
                verdict.refusal = Some(why.replace('\n', " "));
                self.dir.iter().for_each(|dir| store::write(dir, tool, verdict));
            }
        }
    }

    /// Returns the FileChecks that are not trusted, and why.
    pub fn refused(&self) -> Vec<(PathBuf, String)> {
        let tools = self.tools.lock().expect("no panic while locked");
        let refused = tools.iter().filter_map(|(tool, state)| match state {
            State::Settled(Verdict { refusal: Some(why), .. }) => Some((tool.program.clone(), why.clone())),
            _ => None,
        });
        refused.collect()
    }
}
