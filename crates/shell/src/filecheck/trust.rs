//! Which FileChecks the matcher is believed in the place of.
//!
//! A FileCheck is known by its file, the libraries that it loads, and the variables that steer the loader. It is put to
//! the test once it was used often enough that this pays. Every use looks whether the files are still the same.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use hotstart_model::Environment;

use super::store;

/// Uses in a run before a FileCheck is put to the test, which takes about as long as so many runs of it, warm.
const USES: u32 = 60;

/// A FileCheck, as a call names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tool {
    pub program: PathBuf,
    /// The variables that steer the loader.
    pub loader: Vec<(OsString, OsString)>,
    /// Its environment at first sight; no part of its identity.
    pub environment: Ignored,
}

/// Variables that do not tell FileChecks apart.
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
    pub fn new(program: &Path, env: &Environment) -> Self {
        let is_loaders = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("LD_");
        let all = || env.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Tool {
            program: program.to_owned(),
            loader: all().filter(|(name, _)| is_loaders(name)).collect(),
            environment: Ignored(all().collect()),
        }
    }
}

/// A file, and by what it is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub path: PathBuf,
    /// Device, inode, size, and times of modification and change.
    pub numbers: [i64; 7],
}

impl Mark {
    /// Of the file as it is now.
    pub fn of(path: &Path) -> Option<Mark> {
        let found = std::fs::metadata(path).ok()?;
        let (device, inode, size) = (found.dev() as i64, found.ino() as i64, found.size() as i64);
        let modified = [found.mtime(), found.mtime_nsec()];
        let changed = [found.ctime(), found.ctime_nsec()];
        let numbers = [device, inode, size, modified[0], modified[1], changed[0], changed[1]];
        Some(Mark { path: path.to_owned(), numbers })
    }

    pub fn is_current(&self) -> bool {
        Mark::of(&self.path).as_ref() == Some(self)
    }
}

/// What came of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// What it answered otherwise, if it did.
    pub refusal: Option<String>,
    /// Its files.
    pub marks: Vec<Mark>,
}

#[derive(Debug)]
enum State {
    Used(u32),
    Pending,
    Settled(Verdict),
}

/// What is known of FileChecks.
#[derive(Debug)]
pub(super) struct Trust {
    dir: Option<PathBuf>,
    tools: Mutex<HashMap<Tool, State>>,
}

impl Trust {
    pub fn new(dir: Option<PathBuf>) -> Self {
        Trust { dir, tools: Mutex::default() }
    }

    /// Whether the matcher may decide for this FileCheck; else why not. Counts the use.
    pub fn ask(&self, tool: &Tool) -> Result<(), &'static str> {
        let mut tools = self.tools.lock().expect("no panic while locked");
        if !tools.contains_key(tool) {
            tools.insert(tool.clone(), self.at_first_sight(tool));
        }
        let state = tools.get_mut(tool).expect("entered above");
        match state {
            State::Used(uses) => {
                *uses += 1;
                if *uses >= USES {
                    *state = State::Pending;
                }
                Err("not put to the test yet")
            }
            State::Pending => Err("not put to the test yet"),
            State::Settled(verdict) if !verdict.marks.iter().all(Mark::is_current) => {
                *state = State::Used(1);
                Err("not put to the test yet")
            }
            State::Settled(Verdict { refusal: None, .. }) => Ok(()),
            State::Settled(_) => Err("it answered the test cases otherwise"),
        }
    }

    fn at_first_sight(&self, tool: &Tool) -> State {
        let kept = self.dir.as_ref().and_then(|dir| store::read(dir, tool));
        match kept.filter(|verdict| verdict.marks.iter().all(Mark::is_current)) {
            Some(verdict) => State::Settled(verdict),
            None => State::Used(0),
        }
    }

    /// Whether there is an answer already.
    pub fn is_known(&self, tool: &Tool) -> bool {
        let mut tools = self.tools.lock().expect("no panic while locked");
        let state = tools.entry(tool.clone()).or_insert_with(|| self.at_first_sight(tool));
        matches!(state, State::Settled(verdict) if verdict.marks.iter().all(Mark::is_current))
    }

    /// Whether the answer is yes.
    pub fn believes(&self, tool: &Tool) -> bool {
        let tools = self.tools.lock().expect("no panic while locked");
        matches!(tools.get(tool), Some(State::Settled(Verdict { refusal: None, .. })))
    }

    /// One that is to be put to the test.
    pub fn next_pending(&self) -> Option<Tool> {
        let tools = self.tools.lock().expect("no panic while locked");
        tools.iter().find(|(_, state)| matches!(state, State::Pending)).map(|(tool, _)| tool.clone())
    }

    /// Enters what came of the test; without a verdict it is not tried again in this run.
    pub fn settle(&self, tool: &Tool, verdict: Option<Verdict>) {
        if let (Some(dir), Some(verdict)) = (&self.dir, &verdict) {
            store::write(dir, tool, verdict);
        }
        let verdict = verdict.unwrap_or_else(|| Verdict {
            refusal: Some("it could not be put to the test".to_owned()),
            marks: Vec::new(),
        });
        self.tools.lock().expect("no panic while locked").insert(tool.clone(), State::Settled(verdict));
    }

    /// Believes none of those any more that were believed, and remembers that.
    pub fn refuse_all(&self, why: &str) {
        let mut tools = self.tools.lock().expect("no panic while locked");
        for (tool, state) in tools.iter_mut() {
            let State::Settled(verdict) = state else { continue };
            if verdict.refusal.is_none() {
                verdict.refusal = Some(why.replace('\n', " "));
                self.dir.iter().for_each(|dir| store::write(dir, tool, verdict));
            }
        }
    }

    /// Those that are not believed, and why.
    pub fn refused(&self) -> Vec<(PathBuf, String)> {
        let tools = self.tools.lock().expect("no panic while locked");
        let refused = tools.iter().filter_map(|(tool, state)| match state {
            State::Settled(Verdict { refusal: Some(why), .. }) => Some((tool.program.clone(), why.clone())),
            _ => None,
        });
        refused.collect()
    }
}
